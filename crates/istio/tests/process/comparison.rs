//! The form in which two pods are compared.

use serde_json::Value;

const ANNOTATIONS: [&str; 2] = ["proxy.istio.io/overrides", "sidecar.istio.io/status"];
const VARIABLES: [&str; 4] = [
    "ISTIO_KUBE_APP_PROBERS",
    "ISTIO_META_POD_PORTS",
    "ISTIO_PROMETHEUS_ANNOTATIONS",
    "PROXY_CONFIG",
];

/// The normal form, with the documents inside annotations and variables read.
pub(crate) fn comparable(pod: &Value) -> Value {
    let mut pod = injectd_merge::normal(pod);
    for key in ANNOTATIONS {
        if let Some(text) =
            pod.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(key))
        {
            read(text);
        }
    }
    for list in ["/spec/containers", "/spec/initContainers"] {
        let containers = pod.pointer_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let env = container.get_mut("env").and_then(Value::as_array_mut);
            for variable in env.into_iter().flatten() {
                if VARIABLES.iter().any(|name| variable["name"] == *name) {
                    variable.get_mut("value").into_iter().for_each(read);
                }
            }
        }
    }
    pod
}

fn read(text: &mut Value) {
    if let Some(json) = text.as_str().and_then(|text| serde_json::from_str(text).ok()) {
        *text = json;
    }
}
