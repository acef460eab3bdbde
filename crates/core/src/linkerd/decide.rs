//! Decides whether a pod is injected, with every reason for a skip (`pkg/inject/report.go`).
//!
//! A pure function of annotations and spec.

use super::{
    annotations::Annotation,
    overrides::Overrides,
    pod::{Container, Spec},
    reasons::{self, Reason},
    release::{Delta, Release},
};
use crate::{object::Kind, outcome::SkipReasons};

/// The part of the configuration that the decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Decider {
    sidecars_in_init_containers: bool,
    needs_mounted_token: bool,
}

/// The names and images of a container that marks a pod as already injected
/// (`pkg/healthcheck/sidecar.go`).
struct Mark {
    names: [&'static str; 2],
    image_prefixes: [&'static str; 2],
}

const PROXY: Mark = Mark {
    names: ["linkerd-proxy", "istio-proxy"],
    image_prefixes: ["cr.l5d.io/linkerd/proxy:", "gcr.io/istio-release/proxyv2:"],
};

const INIT: Mark = Mark {
    names: ["linkerd-init", "istio-init"],
    image_prefixes: ["cr.l5d.io/linkerd/proxy-init:", "gcr.io/istio-release/proxy_init:"],
};

impl Mark {
    fn is_on(&self, name: &str, image: &str) -> bool {
        self.names.contains(&name)
            || self.image_prefixes.iter().any(|prefix| image.starts_with(prefix))
    }
}

impl Decider {
    /// `token_projection`: whether the sidecar mounts its own projected token.
    #[must_use]
    pub fn new(release: Release, token_projection: bool) -> Self {
        Self {
            sidecars_in_init_containers: release.has(Delta::SidecarsInInitContainers),
            needs_mounted_token: !token_projection,
        }
    }

    /// Every reason to skip the pod; empty if the pod is injected. `spec` is `None` for kinds
    /// without pods. They are not supported, except Service and Namespace, which have no reason.
    #[must_use]
    pub fn decide(
        self,
        kind: Kind,
        spec: Option<&Spec<'_>>,
        overrides: &Overrides<'_>,
    ) -> SkipReasons {
        let mut reasons = SkipReasons::empty(&reasons::ALL);
        let Some(spec) = spec else {
            if !matches!(kind, Kind::Service | Kind::Namespace) {
                reasons.insert(Reason::UnsupportedResource as usize);
            }
            return reasons;
        };
        // Every reason is looked for: Linkerd lists all of them in the event.
        if spec.host_network == Some(true) {
            reasons.insert(Reason::HostNetwork as usize);
        }
        if self.has_sidecar(spec) {
            reasons.insert(Reason::SidecarExists as usize);
        }
        if let Some(reason) = disabled_by_annotation(overrides) {
            reasons.insert(reason as usize);
        }
        if self.lacks_token(spec) {
            reasons.insert(Reason::NoServiceAccountToken as usize);
        }
        reasons
    }

    fn has_sidecar(self, spec: &Spec<'_>) -> bool {
        let is_sidecar =
            |is_init| move |own: &Container<'_>| self.is_sidecar(&own.name, &own.image, is_init);
        spec.init_containers.iter().any(is_sidecar(true))
            || spec.containers.iter().any(is_sidecar(false))
    }

    /// Whether a container marks its pod as already injected.
    pub(super) fn is_sidecar(self, name: &str, image: &str, is_init: bool) -> bool {
        let proxy_counts = !is_init || self.sidecars_in_init_containers;
        (is_init && INIT.is_on(name, image)) || (proxy_counts && PROXY.is_on(name, image))
    }

    /// Whether the sidecar needs the token of the pod's service account.
    pub(super) fn needs_mounted_token(self) -> bool {
        self.needs_mounted_token
    }

    /// Whether the sidecar needs the token of the pod's service account, which is not mounted.
    pub(super) fn lacks_token(self, spec: &Spec<'_>) -> bool {
        let is_mounted = spec.automount_service_account_token != Some(false)
            && spec.service_account_mount().is_some();
        self.needs_mounted_token && !is_mounted
    }
}

/// The object whose annotation enables or disables injection: `workload`, `namespace` or empty
/// (`report.go`, `disabledByAnnotation`).
#[must_use]
pub fn annotation_at(overrides: &Overrides<'_>) -> &'static str {
    let enables = |value: Option<&str>| matches!(value, Some("enabled" | "ingress"));
    let namespace = overrides.of_namespace(Annotation::Inject);
    let pod = overrides.of_pod(Annotation::Inject);
    match disabled_by_annotation(overrides) {
        Some(Reason::DisabledByPod) => "workload",
        None if enables(namespace) => "namespace",
        None if enables(pod) => "workload",
        _ => "",
    }
}

/// Checks the namespace's annotation first: an invalid value disables injection even for pods that
/// enable it.
pub(super) fn disabled_by_annotation(overrides: &Overrides<'_>) -> Option<Reason> {
    let is_valid = |value| matches!(value, "" | "enabled" | "disabled" | "ingress");
    let enables = |value| matches!(value, "enabled" | "ingress");
    let namespace = overrides.of_namespace(Annotation::Inject).unwrap_or_default();
    let pod = overrides.of_pod(Annotation::Inject).unwrap_or_default();
    if !is_valid(namespace) {
        Some(Reason::InvalidNamespaceAnnotation)
    } else if !is_valid(pod) {
        Some(Reason::InvalidPodAnnotation)
    } else if enables(namespace) {
        (pod == "disabled").then_some(Reason::DisabledByPod)
    } else {
        (!enables(pod)).then_some(Reason::NotEnabled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{linkerd::overrides::Rules, linkerd::pod::TextMap};

    fn reasons(
        spec: &str,
        namespace: &str,
        pod: &str,
        token_projection: bool,
    ) -> Vec<&'static str> {
        let spec: Spec<'_> = crate::json::read(spec).expect("spec");
        let json = format!(r#"{{"linkerd.io/inject":"{pod}"}}"#);
        let pod = crate::json::read(&json).expect("annotations");
        let rules = Rules::of(Release::NEWEST);
        let namespace = [("linkerd.io/inject", namespace)].into_iter();
        let overrides = Overrides::new(&rules, &pod, None, namespace);
        let decider = Decider::new(Release::NEWEST, token_projection);
        let reasons = decider.decide(Kind::Pod, Some(&spec), &overrides);
        reasons.iter().map(|(_, reason)| reason.code).collect()
    }

    #[test]
    fn a_kind_without_pods_is_unsupported_but_a_service_or_namespace_is_not() {
        let (rules, annotations) = (Rules::of(Release::NEWEST), TextMap::default());
        let overrides = Overrides::new(&rules, &annotations, None, [].into_iter());
        let decider = Decider::new(Release::NEWEST, true);
        let reasons = |kind| decider.decide(kind, None, &overrides).joined();
        assert_eq!(reasons(Kind::Other), "unsupported_resource");
        assert_eq!(reasons(Kind::Service), "");
        assert_eq!(reasons(Kind::Namespace), "");
    }

    #[test]
    fn namespace_and_pod_decide_together() {
        for (namespace, pod, expected) in [
            ("enabled", "", None),
            ("enabled", "enabled", None),
            ("ingress", "", None),
            ("enabled", "disabled", Some("injection_disable_annotation_present")),
            ("disabled", "enabled", None),
            ("", "ingress", None),
            ("", "", Some("injection_enable_annotation_absent")),
            ("disabled", "", Some("injection_enable_annotation_absent")),
            ("", "disabled", Some("injection_enable_annotation_absent")),
            ("true", "enabled", Some("invalid_inject_annotation_at_ns")),
            ("enabled", "true", Some("invalid_inject_annotation_at_workload")),
        ] {
            let found = reasons("{}", namespace, pod, true);
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{namespace} {pod}");
        }
    }

    #[test]
    fn the_place_is_that_of_the_deciding_annotation() {
        for (namespace, pod, expected) in [
            ("enabled", "", "namespace"),
            ("enabled", "enabled", "namespace"),
            ("enabled", "disabled", "workload"),
            ("", "ingress", "workload"),
            ("", "", ""),
            ("true", "enabled", ""),
            ("", "true", ""),
        ] {
            let json = format!(r#"{{"linkerd.io/inject":"{pod}"}}"#);
            let pod_map = crate::json::read(&json).expect("annotations");
            let rules = Rules::of(Release::NEWEST);
            let namespace_map = [("linkerd.io/inject", namespace)].into_iter();
            let overrides = Overrides::new(&rules, &pod_map, None, namespace_map);
            assert_eq!(annotation_at(&overrides), expected, "{namespace} {pod}");
        }
    }

    #[test]
    fn reasons_come_in_upstreams_order() {
        let spec = r#"{"hostNetwork":true,"containers":[{"name":"istio-proxy"}]}"#;
        assert_eq!(
            reasons(spec, "", "", false),
            [
                "host_network_enabled",
                "sidecar_already_exists",
                "injection_enable_annotation_absent",
                "disabled_automount_service_account_token_account",
            ]
        );
    }

    #[test]
    fn existing_sidecars_are_found_by_name_and_image() {
        for spec in [
            r#"{"containers":[{"image":"cr.l5d.io/linkerd/proxy:edge-1"}]}"#,
            r#"{"initContainers":[{"name":"linkerd-proxy"}]}"#,
            r#"{"initContainers":[{"image":"gcr.io/istio-release/proxy_init:1"}]}"#,
        ] {
            assert_eq!(reasons(spec, "enabled", "", true), ["sidecar_already_exists"], "{spec}");
        }
        let other = r#"{"containers":[{"name":"linkerd-init","image":"me/linkerd/proxy:1"}]}"#;
        assert!(reasons(other, "enabled", "", true).is_empty());
    }

    #[test]
    fn without_projection_the_first_container_needs_the_mounted_token() {
        let spec = |automount: &str, mount: &str| {
            format!(
                r#"{{"automountServiceAccountToken":{automount},
                "containers":[{{"volumeMounts":[{{"mountPath":"{mount}"}}]}}]}}"#
            )
        };
        let path = crate::linkerd::pod::SERVICE_ACCOUNT_MOUNT_PATH;
        assert!(reasons(&spec("null", path), "enabled", "", false).is_empty());
        for (automount, mount) in [("false", path), ("true", "/elsewhere")] {
            let found = reasons(&spec(automount, mount), "enabled", "", false);
            assert_eq!(found, ["disabled_automount_service_account_token_account"]);
        }
    }
}
