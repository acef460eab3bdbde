//! Pods with Istio's sidecar, and without.

use injectd_harness::{
    expect::{Outcome, expect, failed},
    objects::plain_pod,
    sidecar::names,
};
use serde_json::{Value, json};

pub(super) const PROXY: &str = "istio-proxy";
/// Shows who injected a pod.
pub(super) const INJECTOR: &str = "e2e/injector";

/// A pod with these labels.
pub(super) fn labelled(labels: &Value) -> Value {
    let mut pod = plain_pod("tried");
    pod["metadata"]["labels"] = labels.clone();
    pod
}

/// The container of the proxy, wherever it is.
pub(super) fn proxy(pod: &Value) -> Option<&Value> {
    let lists = ["initContainers", "containers"].map(|list| pod["spec"][list].as_array());
    lists.into_iter().flatten().flatten().find(|container| container["name"] == PROXY)
}

/// The image of the proxy; `None` without a proxy.
pub(super) fn image(pod: &Value) -> Option<&str> {
    proxy(pod)?["image"].as_str()
}

/// The annotation of a pod.
pub(super) fn annotation<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    pod["metadata"]["annotations"][key].as_str()
}

/// Whether the proxy is a native sidecar.
pub(super) fn is_native(pod: &Value) -> Outcome<bool> {
    match (names(pod, "initContainers").contains(&PROXY), names(pod, "containers").contains(&PROXY))
    {
        (is_native, is_container) if is_native != is_container => Ok(is_native),
        (is_native, _) => Err(failed(format!("in both lists or none: {is_native}"))),
    }
}

/// Fails unless the pod has the proxy of this image, from this injector.
pub(super) fn expect_injected(pod: &Value, image_: &str, injector: &str) -> Outcome {
    expect("the image of the proxy", Some(image_), image(pod))?;
    expect("the injector", Some(injector), annotation(pod, INJECTOR))
}

/// An annotation, as an object.
pub(super) fn annotated(key: &str, value: &str) -> Value {
    let mut pod = plain_pod("tried");
    pod["metadata"]["annotations"] = json!({key: value});
    pod
}
