//! Pods with a sidecar, and without.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    expect::{Outcome, expect, expect_listed, expect_same},
    objects::LOG_LEVEL,
};

const NATIVE_SIDECAR: &str = "config.linkerd.io/proxy-enable-native-sidecar";
const WORKLOAD_LABEL: &str = "linkerd.io/proxy-";
const VOLUMES: [&str; 3] =
    ["linkerd-proxy-init-xtables-lock", "linkerd-identity-end-entity", "linkerd-identity-token"];

/// The pod or the pod template of an object, if it has one.
#[must_use]
pub fn pod_of(object: &Value) -> Option<&Value> {
    if object["kind"] == "Pod" { Some(object) } else { object.pointer(template_path(object)) }
}

fn pod_of_mut(object: &mut Value) -> Option<&mut Value> {
    if object["kind"] == "Pod" {
        return Some(object);
    }
    let path = template_path(object);
    object.pointer_mut(path)
}

fn template_path(object: &Value) -> &'static str {
    let is_cron_job = object["spec"].get("jobTemplate").is_some();
    if is_cron_job { "/spec/jobTemplate/spec/template" } else { "/spec/template" }
}

/// The names in a list of a pod's spec, such as `initContainers`.
#[must_use]
pub fn names<'a>(object: &'a Value, field: &str) -> Vec<&'a str> {
    let list = pod_of(object).and_then(|pod| pod["spec"][field].as_array());
    list.into_iter().flatten().filter_map(|container| container["name"].as_str()).collect()
}

/// Fails unless a pod has the proxy among its init containers.
///
/// # Errors
///
/// Names the init containers that the pod has.
pub fn expect_proxy(pod: &Value) -> Outcome {
    expect_listed("the init containers", "linkerd-proxy", &names(pod, "initContainers"))
}

/// Fails if a pod has an init container: pods of scenarios have no init containers of their own.
///
/// # Errors
///
/// Names the init containers that the pod has.
pub fn expect_no_proxy(pod: &Value) -> Outcome {
    expect("the init containers", Vec::<&str>::new(), names(pod, "initContainers"))
}

/// The value of a variable of the proxy's container.
#[must_use]
pub fn proxy_variable<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    let lists = ["initContainers", "containers"].map(|list| pod["spec"][list].as_array());
    let mut containers = lists.into_iter().flatten().flatten();
    let proxy = containers.find(|container| container["name"] == "linkerd-proxy")?;
    let variable = proxy["env"].as_array()?.iter().find(|variable| variable["name"] == name)?;
    variable["value"].as_str()
}

/// Fails unless the proxy of a pod logs at this level.
///
/// # Errors
///
/// Names the level that was found, as the annotation [`LOG_LEVEL`] gives it.
pub fn expect_log_level(pod: &Value, level: &str) -> Outcome {
    let found = proxy_variable(pod, "LINKERD2_PROXY_LOG").unwrap_or_default();
    expect(LOG_LEVEL, Some(level), found.get(..level.len()))
}

/// Fails unless the labels of a pod that name its workload, by its kind, are these.
///
/// # Errors
///
/// Names the labels that the pod has.
pub fn expect_workload(pod: &Value, expected: &[(&str, &str)]) -> Outcome {
    let expected: BTreeMap<_, _> = expected.iter().copied().collect();
    let labels = pod["metadata"]["labels"].as_object().into_iter().flatten();
    let found: BTreeMap<_, _> = labels
        .filter_map(|(key, value)| Some((key.strip_prefix(WORKLOAD_LABEL)?, value.as_str()?)))
        .collect();
    expect("the labels of the workload", expected, found)
}

/// Fails unless an object is the plain one with a sidecar, and nothing else changed.
///
/// # Errors
///
/// Names the first difference.
pub fn expect_sidecar(object: &Value, plain: &Value) -> Outcome {
    let metadata = &pod_of(object).unwrap_or(&Value::Null)["metadata"];
    let annotations = &metadata["annotations"];
    let is_native = annotations[NATIVE_SIDECAR] != "false";
    let expected = &["linkerd-init", "linkerd-proxy"][..=usize::from(is_native)];
    let init_containers = names(object, "initContainers");
    let first = init_containers.get(..expected.len());
    expect("the first init containers", Some(expected), first)?;
    if !is_native {
        expect_listed("the containers", "linkerd-proxy", &names(object, "containers"))?;
    }
    for volume in VOLUMES {
        expect_listed("the volumes", volume, &names(object, "volumes"))?;
    }
    let control_plane = metadata["labels"]["linkerd.io/control-plane-ns"].as_str();
    expect("the label of the control plane", Some("linkerd"), control_plane)?;
    for key in ["linkerd.io/proxy-version", "linkerd.io/trust-root-sha256"] {
        expect(format!("whether {key} is there"), true, annotations[key].is_string())?;
    }
    let before = &pod_of(plain).unwrap_or(&Value::Null)["metadata"]["annotations"];
    for (key, value) in before.as_object().into_iter().flatten() {
        expect_same(&format!("the annotation {key}"), value, &annotations[key])?;
    }
    expect_same("the rest", &without_sidecar(plain), &without_sidecar(object))
}

/// An object without its sidecar, and without what differs from one creation to the next.
#[must_use]
pub fn without_sidecar(object: &Value) -> Value {
    let mut object = object.clone();
    let uid = object["metadata"]["uid"].as_str().unwrap_or("no uid").to_owned();
    neutralize(&mut object, &uid);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in
            ["creationTimestamp", "generation", "managedFields", "namespace", "resourceVersion"]
        {
            metadata.remove(key);
        }
    }
    strip(&mut object);
    if let Some(pod) = pod_of_mut(&mut object) {
        strip(pod);
    }
    object
}

/// Replaces the uid and the random ends of names of token volumes, wherever they are.
fn neutralize(value: &mut Value, uid: &str) {
    match value {
        Value::String(text) => {
            if let Some((before, after)) = text.split_once("kube-api-access-") {
                let after = after.trim_start_matches(char::is_alphanumeric);
                *text = format!("{before}kube-api-access{after}");
            }
            *text = text.replace(uid, "UID");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| neutralize(item, uid)),
        Value::Object(fields) => {
            let old = std::mem::take(fields);
            fields.extend(old.into_iter().map(|(key, mut value)| {
                neutralize(&mut value, uid);
                (key.replace(uid, "UID"), value)
            }));
        }
        _ => {}
    }
}

/// Removes from an object or a pod template what belongs to Linkerd.
fn strip(part: &mut Value) {
    for field in ["annotations", "labels"] {
        if let Some(Value::Object(map)) = part["metadata"].get_mut(field) {
            map.retain(|key, _| !key.contains("linkerd.io/"));
        }
        remove_if_empty(part["metadata"].as_object_mut(), field);
    }
    if !part["spec"].is_object() {
        return;
    }
    for field in ["containers", "initContainers", "volumes"] {
        if let Some(Value::Array(list)) = part["spec"].get_mut(field) {
            list.retain(|item| {
                !item["name"].as_str().is_some_and(|name| name.starts_with("linkerd-"))
            });
        }
        remove_if_empty(part["spec"].as_object_mut(), field);
    }
}

fn remove_if_empty(fields: Option<&mut Map<String, Value>>, name: &str) {
    let Some(fields) = fields else { return };
    let is_empty = match fields.get(name) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => false,
    };
    if is_empty {
        fields.remove(name);
    }
}
