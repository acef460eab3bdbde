//! Which values of a pod may be tainted, and the pod with neutral values in their place.

use std::{collections::HashSet, mem};

use serde_json::{Map, Value as Json};

use super::{
    NameOf, Source,
    neutral::{self, Form, is_plain},
};
use crate::{
    annotations::PROXY_CONFIG_ANNOTATION,
    fields::{annotations, labels, text_of},
    owner::Owner,
    strip::OVERRIDES_ANNOTATION,
};

const ANNOTATIONS: &str = "/metadata/annotations";
const LABELS: &str = "/metadata/labels";

/// The values of a pod that are not plain, but for those in its `spec`.
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

/// Whether a tree has a text or a key that is not plain.
pub(crate) fn is_odd(tree: &Json) -> bool {
    match tree {
        Json::String(text) => !is_plain(text),
        Json::Object(members) => members.iter().any(|(key, value)| !is_plain(key) || is_odd(value)),
        Json::Array(items) => items.iter().any(is_odd),
        _ => false,
    }
}

/// The forms in which the pod with neutral values at these sources differs: that of JSON only if a value is
/// JSON.
pub(crate) fn forms(pod: &Json, sources: &[Source]) -> &'static [Form] {
    let is_json = |source: &Source| {
        let value = match source {
            Source::Annotation(key) => annotations(pod).and_then(|map| map.get(key)),
            Source::Label(key) => labels(pod).and_then(|map| map.get(key)),
            Source::Name(_) => None,
        };
        value.and_then(Json::as_str).is_some_and(neutral::is_json)
    };
    if sources.iter().any(is_json) { &[Form::Text, Form::Json] } else { &[Form::Text] }
}

/// A pod with neutral values at these sources.
pub(crate) fn neutral_pod(pod: &Json, sources: &[Source], form: Form) -> Json {
    let mut pod = pod.clone();
    let [mut annotations, mut labels] = [HashSet::new(), HashSet::new()];
    let mut is_other_spec = false;
    for source in sources {
        match source {
            Source::Annotation(key) => {
                // Its containers are in the spec that templates read.
                is_other_spec |= key == OVERRIDES_ANNOTATION;
                annotations.insert(key.as_str());
            }
            Source::Label(key) => _ = labels.insert(key.as_str()),
            Source::Name(NameOf::Pod) => {
                for key in ["/metadata/name", "/metadata/generateName"] {
                    if let Some(Json::String(name)) = pod.pointer_mut(key) {
                        *name = neutral::text(name);
                    }
                }
            }
            Source::Name(NameOf::Part) => is_other_spec = true,
            // The injection has them.
            Source::Name(NameOf::Namespace | NameOf::Owner) => {}
        }
    }
    for (map, keys) in [(ANNOTATIONS, annotations), (LABELS, labels)] {
        if let Some(Json::Object(entries)) = pod.pointer_mut(map).filter(|_| !keys.is_empty()) {
            neutralize(entries, &keys, form);
        }
    }
    if let Some(spec) = pod.get_mut("spec").filter(|_| is_other_spec) {
        *spec = neutral::tree(spec);
    }
    pod
}

fn neutralize(entries: &mut Map<String, Json>, keys: &HashSet<&str>, form: Form) {
    let member = |(key, value): (String, Json)| {
        if !keys.contains(key.as_str()) {
            return (key, value);
        }
        let value = match value {
            Json::String(own) => neutral::value(&own, form).into(),
            other => other,
        };
        (neutral::text(&key), value)
    };
    let all: Vec<_> = mem::take(entries).into_iter().map(member).collect();
    *entries = neutral::members(all.into_iter());
}

/// An owner with neutral texts.
pub(crate) fn neutral_owner(owner: &Owner) -> Owner {
    let [kind, api_version, name, namespace] =
        [&owner.kind, &owner.api_version, &owner.name, &owner.namespace]
            .map(|text| neutral::text(text));
    Owner { kind, api_version, name, namespace }
}
