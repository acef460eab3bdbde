//! Moves a proxy that the user declared to where a native sidecar belongs.

use serde_json::Value;

use super::{
    Warning,
    names::{NATIVE_SIDECAR_ANNOTATION, PROXY},
    tree::{CONTAINERS, INIT_CONTAINERS, annotation, find, list, list_mut, name},
};
use crate::release::{Delta, Release};

/// Moves the user's `istio-proxy` from the containers to the end of the init containers, if the
/// templates put it there.
///
/// To be called before each template is merged into `pod`; `rendered` is the empty pod with the
/// same template merged. `native` is the injector's setting, which the annotation
/// `sidecar.istio.io/nativeSidecar` overrides since 1.24. Another value of it than `true` and
/// `false` counts as `true`, as in the templates. Upstream ignores it here, and the pod has two
/// proxies.
///
/// Istio: `RunTemplate` and `moveContainer` (`pkg/kube/inject/inject.go`).
pub fn native_move(
    pod: &mut Value,
    rendered: &Value,
    native: bool,
    release: Release,
) -> Option<Warning> {
    let is_native = |container: &Value| name(container) == PROXY;
    let declared = list(pod, CONTAINERS).iter().position(is_native)?;
    find(list(rendered, INIT_CONTAINERS), PROXY)?;
    let asked = annotation(pod, NATIVE_SIDECAR_ANNOTATION)
        .filter(|asked| release.has(Delta::NativeAnnotation) && !asked.is_empty());
    let warning = match asked {
        Some("false") => return None,
        None if !native => return None,
        Some("true") | None => None,
        Some(other) => Some(Warning::NativeSidecar(other.to_owned())),
    };
    let spec = pod.get_mut("spec")?.as_object_mut()?;
    if spec.get(INIT_CONTAINERS).is_none_or(Value::is_null) {
        spec.insert(INIT_CONTAINERS.to_owned(), Value::Array(Vec::new()));
    }
    spec.get(INIT_CONTAINERS)?.as_array()?;
    let proxy = list_mut(pod, CONTAINERS)?.remove(declared);
    list_mut(pod, INIT_CONTAINERS)?.push(proxy);
    warning
}
