//! Why Linkerd skips a pod (`pkg/inject/report.go`): upstream's codes and texts, in its order.

use crate::outcome::SkipReason;

/// Defines the reasons: name, code and text of each.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal: $text:expr;)*) => {
        /// A reason; its number is its index in [`ALL`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        /// Every reason.
        pub static ALL: [SkipReason; [$(Reason::$name),*].len()] =
            [$(SkipReason { code: $code, text: $text }),*];
    };
}

reasons! {
    /// The pod uses the network of its node.
    HostNetwork = "host_network_enabled": "hostNetwork is enabled";
    /// The pod has a sidecar already.
    SidecarExists = "sidecar_already_exists": "pod has a sidecar injected already";
    /// The kind has no pods.
    UnsupportedResource = "unsupported_resource": "this resource kind is unsupported";
    /// The namespace's inject annotation holds an unknown value.
    InvalidNamespaceAnnotation = "invalid_inject_annotation_at_ns":
        r#"invalid value for annotation "linkerd.io/inject" at namespace"#;
    /// The pod's inject annotation holds an unknown value.
    InvalidPodAnnotation = "invalid_inject_annotation_at_workload":
        r#"invalid value for annotation "linkerd.io/inject" at workload"#;
    /// The pod opted out.
    DisabledByPod = "injection_disable_annotation_present":
        r#"pod has the annotation "linkerd.io/inject:disabled""#;
    /// Neither the pod nor its namespace opted in.
    NotEnabled = "injection_enable_annotation_absent":
        r#"neither the namespace nor the pod have the annotation "linkerd.io/inject:enabled""#;
    /// The sidecar needs the service account's token, which is not mounted.
    NoServiceAccountToken = "disabled_automount_service_account_token_account": concat!(
        r#"automountServiceAccountToken set to "false", "#,
        r#"with Values.identity.serviceAccountTokenProjection set to "false""#
    );
}
