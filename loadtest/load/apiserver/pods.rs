//! The pod that is created, and pods without what differs from one to the next.

use injectd_harness::{
    expect::{Outcome, failed},
    objects::INJECT,
};
use json_patch::{Patch, patch};
use serde_json::Value;

pub(super) const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The pod as its creator sent it: without what the API server added before the webhook.
pub(super) fn as_created(admitted: &Value) -> Outcome<Value> {
    let (token, mut pod) = (token_volume(admitted)?, admitted.clone());
    remove(&mut pod, &["status"]);
    let added = ["managedFields", "namespace", "creationTimestamp", "ownerReferences"];
    remove(&mut pod["metadata"], &added);
    // The namespace has this annotation.
    remove(&mut pod["metadata"]["annotations"], &[INJECT]);
    let spec = &mut pod["spec"];
    remove(spec, &["serviceAccountName", "serviceAccount", "priority", "preemptionPolicy"]);
    retain(&mut spec["volumes"], |volume| volume["name"] != token);
    for list in ["containers", "initContainers"] {
        for container in items(&mut spec[list]) {
            retain(&mut container["volumeMounts"], |mount| mount["name"] != token);
        }
    }
    retain(&mut spec["tolerations"], |toleration| toleration.get("tolerationSeconds").is_none());
    Ok(pod)
}

/// The name of the volume of the pod's token, which differs from pod to pod.
pub(super) fn token_volume(pod: &Value) -> Outcome<String> {
    let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array();
    let mount = mounts.into_iter().flatten().find(|mount| mount["mountPath"] == TOKEN_PATH);
    let name = mount.and_then(|mount| mount["name"].as_str());
    name.map(str::to_owned).ok_or_else(|| failed("the pod has no token"))
}

/// The pod with its sidecar, but without the token's volume, which admission adds.
pub(super) fn with_sidecar(pod: &Value, operations: &[Value]) -> Outcome<Value> {
    let operations: Value = operations.iter().map(without_nulls).collect();
    let mut pod = pod.clone();
    patch(&mut pod, &serde_json::from_value::<Patch>(operations)?)?;
    for container in items(&mut pod["spec"]["initContainers"]) {
        retain(&mut container["volumeMounts"], |mount| mount["mountPath"] != TOKEN_PATH);
    }
    Ok(pod)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, member)| !member.is_null());
            present.map(|(key, member)| (key.clone(), without_nulls(member))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        _ => value.clone(),
    }
}

/// A stored pod without the values that differ from pod to pod.
pub(super) fn alike(mut pod: Value) -> Outcome<Value> {
    for field in items(&mut pod["metadata"]["managedFields"]) {
        remove(field, &["time"]);
    }
    let metadata = &pod["metadata"];
    let owner = metadata["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
    // A key in managedFields also has the owner's uid.
    let mut text = pod.to_string().replace(owner, "-");
    let fields = ["name", "uid", "creationTimestamp", "resourceVersion", "namespace"];
    let values = fields.iter().map(|field| metadata[field].to_string());
    for value in values.chain([Value::from(token_volume(&pod)?).to_string()]) {
        text = text.replace(&value, "\"-\"");
    }
    let mut pod: Value = serde_json::from_str(&text)?;
    if let Some(volumes) = pod["spec"]["volumes"].as_array_mut() {
        volumes.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    }
    Ok(pod)
}

pub(super) fn remove(object: &mut Value, names: &[&str]) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
}

fn retain(list: &mut Value, is_kept: impl FnMut(&Value) -> bool) {
    if let Some(items) = list.as_array_mut() {
        items.retain(is_kept);
    }
}

fn items(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}
