//! Pods that run to completion, and a sidecar that keeps them from it.
//!
//! A native sidecar is an init container that restarts, and ends with the pod. One among the containers
//! runs until something stops it, so that the pod, and the Job that waits for it, is never complete.

use std::collections::HashSet;

use injectd_core::explain::Explain;
use serde_json::Value;

/// Whether a pod, or a pod template, runs to completion.
#[must_use]
pub fn ends(pod: &Value) -> bool {
    matches!(restart_policy(pod), "Never" | "OnFailure")
}

/// A warning about a container that injection adds beside those of a pod that runs to completion.
#[must_use]
pub fn warning(before: &Value, injected: &Value, mesh: &impl Explain) -> Option<String> {
    warning_about(before, injected, &mesh.native_sidecar())
}

/// The same, with how the container becomes a native sidecar.
#[must_use]
pub fn warning_about(before: &Value, injected: &Value, native: &str) -> Option<String> {
    let note = note(before, injected)?;
    Some(format!("{note}; for a native sidecar, {native}"))
}

/// The same without what to do.
pub(super) fn note(before: &Value, injected: &Value) -> Option<String> {
    if !ends(before) {
        return None;
    }
    let own: HashSet<_> = names(before).collect();
    let container = names(injected).find(|name| !own.contains(name))?;
    let policy = restart_policy(before);
    Some(format!(
        "the pod runs to completion (restartPolicy {policy}), but container {container} does not end with \
         the pod's own: neither the pod nor a Job that waits for it is complete until something stops it"
    ))
}

fn restart_policy(pod: &Value) -> &str {
    pod.pointer("/spec/restartPolicy").and_then(Value::as_str).unwrap_or_default()
}

fn names(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let names = containers.into_iter().flatten().map(|container| container.get("name"));
    names.filter_map(|name| name?.as_str())
}
