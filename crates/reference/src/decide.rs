//! L§2.4: whether a pod is injected, and otherwise every reason in upstream's order.

use super::Context;
use super::object::{Container, PodSpec};
use super::ports::SERVICE_ACCOUNT_PATH;

/// The reasons against injection; `None` means injection.
pub(super) fn reasons(context: &Context<'_>) -> Option<Vec<&'static str>> {
    let mut reasons = Vec::new();
    let Some((meta, spec)) = &context.workload.pod else {
        // A Service or a Namespace is allowed without a reason.
        if !["service", "namespace"].contains(&context.workload.kind.as_str()) {
            reasons.push("unsupported_resource");
        }
        return Some(reasons);
    };
    if spec.host_network {
        reasons.push("host_network_enabled");
    }
    if has_sidecar(context, spec) {
        reasons.push("sidecar_already_exists");
    }
    let annotation = |annotations: &serde_json::Map<String, serde_json::Value>| {
        let value = annotations.get("linkerd.io/inject");
        value.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let at_pod = annotation(&meta.annotations);
    let at_namespace = annotation(&context.namespace_annotations);
    reasons.extend(by_annotation(&at_namespace, &at_pod));
    if !automounts_token(context, spec) {
        reasons.push("disabled_automount_service_account_token_account");
    }
    (!reasons.is_empty()).then_some(reasons)
}

fn by_annotation(at_namespace: &str, at_pod: &str) -> Option<&'static str> {
    let valid = |value| ["", "enabled", "disabled", "ingress"].contains(&value);
    let enables = |value| ["enabled", "ingress"].contains(&value);
    if !valid(at_namespace) {
        Some("invalid_inject_annotation_at_ns")
    } else if !valid(at_pod) {
        Some("invalid_inject_annotation_at_workload")
    } else if enables(at_namespace) {
        (at_pod == "disabled").then_some("injection_disable_annotation_present")
    } else {
        (!enables(at_pod)).then_some("injection_enable_annotation_absent")
    }
}

/// L§2.4: existing sidecars. Before 24.5.1, only the regular containers are searched for a proxy.
fn has_sidecar(context: &Context<'_>, spec: &PodSpec) -> bool {
    let is_proxy = |container: &Container| {
        ["cr.l5d.io/linkerd/proxy:", "gcr.io/istio-release/proxyv2:"]
            .iter()
            .any(|image| container.image.starts_with(image))
            || ["linkerd-proxy", "istio-proxy"].contains(&container.name.as_str())
    };
    let is_init = |container: &Container| {
        ["cr.l5d.io/linkerd/proxy-init:", "gcr.io/istio-release/proxy_init:"]
            .iter()
            .any(|image| container.image.starts_with(image))
            || ["linkerd-init", "istio-init"].contains(&container.name.as_str())
    };
    let native = context.release.since((24, 5, 1)) && spec.init_containers.iter().any(is_proxy);
    native || spec.containers.iter().any(is_proxy) || spec.init_containers.iter().any(is_init)
}

/// L§2.4: the token must be mounted, unless the sidecar mounts its own projected token.
fn automounts_token(context: &Context<'_>, spec: &PodSpec) -> bool {
    let projection = context.values.flag("identity.serviceAccountTokenProjection");
    if projection || !context.values.has("identity") {
        return true;
    }
    let first = spec.containers.first();
    let mounted = first.is_some_and(|container| {
        let mut mounts = container.mounts.iter();
        mounts.any(|(_, path, _)| path == SERVICE_ACCOUNT_PATH)
    });
    spec.automount != Some(false) && mounted
}

/// L§2.4: the text of a skip reason.
pub(super) fn sentence(reason: &str) -> &'static str {
    match reason {
        "host_network_enabled" => "hostNetwork is enabled",
        "sidecar_already_exists" => "pod has a sidecar injected already",
        "unsupported_resource" => "this resource kind is unsupported",
        "injection_enable_annotation_absent" => {
            "neither the namespace nor the pod have the annotation \"linkerd.io/inject:enabled\""
        }
        "injection_disable_annotation_present" => {
            "pod has the annotation \"linkerd.io/inject:disabled\""
        }
        "invalid_inject_annotation_at_workload" => {
            "invalid value for annotation \"linkerd.io/inject\" at workload"
        }
        "invalid_inject_annotation_at_ns" => {
            "invalid value for annotation \"linkerd.io/inject\" at namespace"
        }
        "disabled_automount_service_account_token_account" => {
            "automountServiceAccountToken set to \"false\", with \
             Values.identity.serviceAccountTokenProjection set to \"false\""
        }
        _ => "an unknown reason",
    }
}
