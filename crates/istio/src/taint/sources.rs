//! Which values of a pod may be tainted, and the pod with neutral values in their place.

use serde_json::{Map, Value as Json};

use super::{
    NameOf, Source,
    neutral::{self, Form, is_plain},
};
use crate::{
    annotations::PROXY_CONFIG_ANNOTATION,
    fields::{annotations, labels, text_of},
    owner::Owner,
};

const ANNOTATIONS: &str = "/metadata/annotations";
const LABELS: &str = "/metadata/labels";

/// The values of a pod that are not plain.
pub(crate) fn of(pod: &Json, namespace: &str, owner: &Owner) -> Vec<Source> {
    let annotations = odd_entries(annotations(pod)).map(Source::Annotation);
    let labels = odd_entries(labels(pod)).map(Source::Label);
    let is_odd = |key: &str| {
        let name =
            pod.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Json::as_str);
        name.is_some_and(|name| !is_plain(name))
    };
    let is_odd_owner =
        [&owner.name, &owner.kind, &owner.api_version].iter().any(|text| !is_plain(text));
    let names = [
        (NameOf::Pod, is_odd("name") || is_odd("generateName")),
        (NameOf::Namespace, !is_plain(namespace)),
        (NameOf::Owner, is_odd_owner),
        (NameOf::Part, pod.get("spec").is_some_and(has_odd_names)),
    ];
    let names = names.into_iter().filter(|(_, is_odd)| *is_odd);
    annotations.chain(labels).chain(names.map(|(name, _)| Source::Name(name))).collect()
}

/// The keys of the entries that are not plain.
fn odd_entries(map: Option<&Map<String, Json>>) -> impl Iterator<Item = String> {
    let entries = map.into_iter().flatten();
    let odd = entries.filter(|(key, value)| {
        let is_plain_value = text_of(value).is_none_or(|text| match &***key {
            PROXY_CONFIG_ANNOTATION => is_plain(text) || neutral::is_plain_proxy_config(text),
            _ => is_plain(text),
        });
        !is_plain_value || !is_plain(key)
    });
    odd.map(|(key, _)| key.clone())
}

/// Whether a member of an object is a name: `name`, `serviceAccountName`, …
fn is_name(key: &str) -> bool {
    key.ends_with("ame") && (key == "name" || key.ends_with("Name"))
}

fn has_odd_names(tree: &Json) -> bool {
    match tree {
        Json::Object(members) => members.iter().any(|(key, value)| match value {
            Json::String(name) => is_name(key) && !is_plain(name),
            value => has_odd_names(value),
        }),
        Json::Array(items) => items.iter().any(has_odd_names),
        _ => false,
    }
}

/// A pod with neutral values at these sources.
pub(crate) fn neutral_pod(pod: &Json, sources: &[Source], form: Form) -> Json {
    let mut pod = pod.clone();
    for source in sources {
        match source {
            Source::Annotation(key) => neutralize(pod.pointer_mut(ANNOTATIONS), key, form),
            Source::Label(key) => neutralize(pod.pointer_mut(LABELS), key, form),
            Source::Name(NameOf::Pod) => {
                for key in ["/metadata/name", "/metadata/generateName"] {
                    if let Some(Json::String(name)) = pod.pointer_mut(key) {
                        *name = neutral::text(name);
                    }
                }
            }
            Source::Name(NameOf::Part) => {
                pod.get_mut("spec").into_iter().for_each(neutralize_names);
            }
            // The injection has them.
            Source::Name(NameOf::Namespace | NameOf::Owner) => {}
        }
    }
    pod
}

fn neutralize(entries: Option<&mut Json>, key: &str, form: Form) {
    let Some(entries) = entries.and_then(Json::as_object_mut) else { return };
    let Some(value) = entries.shift_remove(key) else { return };
    let value = match value {
        Json::String(own) => neutral::value(&own, form).into(),
        other => other,
    };
    entries.insert(neutral::text(key), value);
}

fn neutralize_names(tree: &mut Json) {
    match tree {
        Json::Object(members) => {
            for (key, value) in members {
                match value {
                    Json::String(name) if is_name(key) => *name = neutral::text(name),
                    value => neutralize_names(value),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(neutralize_names),
        _ => {}
    }
}

/// An owner with neutral texts.
pub(crate) fn neutral_owner(owner: &Owner) -> Owner {
    let [kind, api_version, name, namespace] =
        [&owner.kind, &owner.api_version, &owner.name, &owner.namespace]
            .map(|text| neutral::text(text));
    Owner { kind, api_version, name, namespace }
}
