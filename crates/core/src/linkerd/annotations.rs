//! The annotations that Linkerd reads, in one table: key, releases, inheritance from the namespace,
//! and the effect on settings.

use super::{
    release::{Delta, Release},
    settings::{
        Settings,
        effects::{
            Effect, Problem, SLOT, boolean, count_of_seconds, cpu_limit, cpu_ratio, cpu_request,
            debug_sidecar, inbound_policy, init_image, integer, milliseconds, native_sidecar,
            optional_seconds, port, pull_policy, quantity, seconds_with_unit, switch, text,
        },
    },
};
use crate::{object::Kind, outcome::Warning};

/// Whether pods inherit an annotation from their namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inherited {
    /// Only the pod's annotation counts.
    No,
    /// Inherited.
    Yes,
    /// Inherited in releases before the change.
    Before(Delta),
}

/// The releases that support an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Availability {
    Always,
    Since(Delta),
    Before(Delta),
}

/// A row of the table.
struct Row {
    annotation: Annotation,
    key: &'static str,
    availability: Availability,
    inherited: Inherited,
    effect: Effect,
}

macro_rules! annotations {
    ($($variant:ident, $key:literal, $availability:expr, $inherited:expr, $effect:expr;)*) => {
        /// An annotation, in the byte order of the keys.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each is named after its key")]
        pub enum Annotation { $($variant,)* }

        const TABLE: &[Row] = {
            use Availability::{Always, Before, Since};
            use Inherited::{No, Yes};
            &[$(Row {
                annotation: Annotation::$variant,
                key: $key,
                availability: $availability,
                inherited: $inherited,
                effect: $effect,
            },)*]
        };
    };
}

annotations! {
    AlphaNativeSidecar, "config.alpha.linkerd.io/proxy-enable-native-sidecar", Since(Delta::NativeSidecar), Yes,
        |s, v, _| native_sidecar(s, Annotation::AlphaNativeSidecar.key(), v);
    WaitBeforeExitSeconds, "config.alpha.linkerd.io/proxy-wait-before-exit-seconds", Always, Yes,
        |s, v, _| count_of_seconds(&mut s.values.proxy.wait_before_exit_seconds, v);
    BetaNativeSidecar, "config.beta.linkerd.io/proxy-enable-native-sidecar", Since(Delta::BetaNativeSidecar), Inherited::Before(Delta::StableNativeSidecar),
        |s, v, _| native_sidecar(s, Annotation::BetaNativeSidecar.key(), v);
    AccessLog, "config.linkerd.io/access-log", Always, Yes,
        |s, v, _| text(&mut s.values.proxy.access_log, v);
    AdminPort, "config.linkerd.io/admin-port", Always, Yes,
        |s, v, _| port(s, |ports| &mut ports.admin, v);
    CloseWaitTimeout, "config.linkerd.io/close-wait-timeout", Always, No,
        |s, v, _| optional_seconds(&mut s.values.proxy_init.close_wait_timeout_secs, v);
    ControlPort, "config.linkerd.io/control-port", Always, Yes,
        |s, v, _| port(s, |ports| &mut ports.control, v);
    DebugImage, "config.linkerd.io/debug-image", Since(Delta::DebugImages), No,
        |s, v, _| text(&mut s.values.debug_image.name, v);
    DebugImagePullPolicy, "config.linkerd.io/debug-image-pull-policy", Since(Delta::DebugImages), No,
        |s, v, _| text(&mut s.values.debug_image.pull_policy, v);
    DebugImageVersion, "config.linkerd.io/debug-image-version", Since(Delta::DebugImages), No,
        |s, v, _| text(&mut s.values.debug_image.version, v);
    DefaultInboundPolicy, "config.linkerd.io/default-inbound-policy", Always, Yes,
        inbound_policy;
    EnableDebugSidecar, "config.linkerd.io/enable-debug-sidecar", Always, Yes,
        |s, v, _| debug_sidecar(s, v);
    EnableExternalProfiles, "config.linkerd.io/enable-external-profiles", Always, Yes,
        |s, v, _| boolean(&mut s.values.proxy.enable_external_profiles, v);
    EnableGateway, "config.linkerd.io/enable-gateway", Always, No,
        |s, v, _| boolean(&mut s.values.proxy.is_gateway, v);
    ImagePullPolicy, "config.linkerd.io/image-pull-policy", Always, Yes,
        pull_policy;
    InboundPort, "config.linkerd.io/inbound-port", Always, Yes,
        |s, v, _| port(s, |ports| &mut ports.inbound, v);
    InitImage, "config.linkerd.io/init-image", Before(Delta::InitUsesProxyImage), Yes,
        |s, v, _| init_image(s, |image| &mut image.name, v);
    InitImageVersion, "config.linkerd.io/init-image-version", Before(Delta::InitUsesProxyImage), Yes,
        |s, v, _| init_image(s, |image| &mut image.version, v);
    OpaquePorts, "config.linkerd.io/opaque-ports", Always, Yes,
        SLOT;
    OutboundPort, "config.linkerd.io/outbound-port", Always, Yes,
        |s, v, _| port(s, |ports| &mut ports.outbound, v);
    PodInboundPorts, "config.linkerd.io/pod-inbound-ports", Always, Yes,
        |s, v, _| text(s.values.proxy.pod_inbound_ports.get_or_insert_default(), v);
    AdditionalEnv, "config.linkerd.io/proxy-additional-env", Since(Delta::AdditionalEnvAnnotation), Yes,
        SLOT;
    AdminShutdown, "config.linkerd.io/proxy-admin-shutdown", Since(Delta::ShutdownEndpoint), Yes,
        |s, v, _| switch(&mut s.values.proxy.enable_shutdown_endpoint, v);
    Await, "config.linkerd.io/proxy-await", Always, Yes,
        |s, v, _| switch(&mut s.values.proxy.r#await, v);
    CpuLimit, "config.linkerd.io/proxy-cpu-limit", Always, Yes,
        cpu_limit;
    CpuRatioLimit, "config.linkerd.io/proxy-cpu-ratio-limit", Since(Delta::Workers), No,
        |s, v, _| cpu_ratio(s, v);
    CpuRequest, "config.linkerd.io/proxy-cpu-request", Always, Yes,
        cpu_request;
    DisableInboundDetectTimeout, "config.linkerd.io/proxy-disable-inbound-protocol-detect-timeout", Since(Delta::DetectTimeout), Yes,
        |s, v, _| boolean(&mut s.values.proxy.disable_inbound_protocol_detect_timeout, v);
    DisableOutboundDetectTimeout, "config.linkerd.io/proxy-disable-outbound-protocol-detect-timeout", Since(Delta::DetectTimeout), Yes,
        |s, v, _| boolean(&mut s.values.proxy.disable_outbound_protocol_detect_timeout, v);
    NativeSidecar, "config.linkerd.io/proxy-enable-native-sidecar", Since(Delta::StableNativeSidecar), Yes,
        |s, v, _| native_sidecar(s, Annotation::NativeSidecar.key(), v);
    EphemeralStorageLimit, "config.linkerd.io/proxy-ephemeral-storage-limit", Always, Yes,
        |s, v, _| quantity(s, |resources| &mut resources.ephemeral_storage.limit, v);
    EphemeralStorageRequest, "config.linkerd.io/proxy-ephemeral-storage-request", Always, Yes,
        |s, v, _| quantity(s, |resources| &mut resources.ephemeral_storage.request, v);
    ProxyGid, "config.linkerd.io/proxy-gid", Since(Delta::Gid), Yes,
        |s, v, _| integer(&mut s.values.proxy.gid, v);
    ProxyImage, "config.linkerd.io/proxy-image", Always, Yes,
        |s, v, _| text(&mut s.values.proxy.image.name, v);
    InboundConnectTimeout, "config.linkerd.io/proxy-inbound-connect-timeout", Always, Yes,
        |s, v, _| milliseconds(&mut s.values.proxy.inbound_connect_timeout, v);
    InboundDiscoveryTimeout, "config.linkerd.io/proxy-inbound-discovery-cache-unused-timeout", Always, Yes,
        |s, v, _| seconds_with_unit(&mut s.values.proxy.inbound_discovery_cache_unused_timeout, v);
    LogFormat, "config.linkerd.io/proxy-log-format", Always, Yes,
        |s, v, _| text(&mut s.values.proxy.log_format, v);
    LogHttpHeaders, "config.linkerd.io/proxy-log-http-headers", Since(Delta::LogWithoutHeaders), Yes,
        |s, v, _| text(&mut s.values.proxy.log_http_headers, v);
    LogLevel, "config.linkerd.io/proxy-log-level", Always, Yes,
        |s, v, _| text(&mut s.values.proxy.log_level, v);
    MemoryLimit, "config.linkerd.io/proxy-memory-limit", Always, Yes,
        |s, v, _| quantity(s, |resources| &mut resources.memory.limit, v);
    MemoryRequest, "config.linkerd.io/proxy-memory-request", Always, Yes,
        |s, v, _| quantity(s, |resources| &mut resources.memory.request, v);
    MetricsHostnameLabels, "config.linkerd.io/proxy-metrics-hostname-labels", Since(Delta::HostnameLabels), Yes,
        |s, v, _| boolean(&mut s.values.proxy.hostname_labels, v);
    OutboundConnectTimeout, "config.linkerd.io/proxy-outbound-connect-timeout", Always, Yes,
        |s, v, _| milliseconds(&mut s.values.proxy.outbound_connect_timeout, v);
    OutboundDiscoveryTimeout, "config.linkerd.io/proxy-outbound-discovery-cache-unused-timeout", Always, Yes,
        |s, v, _| seconds_with_unit(&mut s.values.proxy.outbound_discovery_cache_unused_timeout, v);
    RequireIdentity, "config.linkerd.io/proxy-require-identity-inbound-ports", Always, Yes,
        |s, v, _| text(&mut s.values.proxy.require_identity_on_inbound_ports, v);
    ProxyUid, "config.linkerd.io/proxy-uid", Always, Yes,
        |s, v, _| integer(&mut s.values.proxy.uid, v);
    ProxyVersion, "config.linkerd.io/proxy-version", Always, Yes,
        |s, v, _| text(&mut s.values.proxy.image.version, v);
    ShutdownGracePeriod, "config.linkerd.io/shutdown-grace-period", Always, Yes,
        |s, v, _| milliseconds(&mut s.values.proxy.shutdown_grace_period, v);
    SkipInboundPorts, "config.linkerd.io/skip-inbound-ports", Always, Yes,
        |s, v, _| text(&mut s.values.proxy_init.ignore_inbound_ports, v);
    SkipOutboundPorts, "config.linkerd.io/skip-outbound-ports", Always, Yes,
        |s, v, _| text(&mut s.values.proxy_init.ignore_outbound_ports, v);
    SkipSubnets, "config.linkerd.io/skip-subnets", Always, Yes,
        |s, v, _| text(&mut s.values.proxy_init.skip_subnets, v);
    Inject, "linkerd.io/inject", Always, Yes,
        SLOT;
}

/// The annotations about native sidecars, of which the first one that is present decides.
pub(super) const NATIVE_SIDECAR: [Annotation; 3] =
    [Annotation::NativeSidecar, Annotation::BetaNativeSidecar, Annotation::AlphaNativeSidecar];

/// Written on injected pods: the injector and its version.
pub const CREATED_BY_ANNOTATION: &str = "linkerd.io/created-by";
/// Written on injected pods: the proxy's version.
pub const PROXY_VERSION_ANNOTATION: &str = "linkerd.io/proxy-version";
/// Written on injected pods: SHA-256 of the trust roots.
pub const TRUST_ROOT_SHA256_ANNOTATION: &str = "linkerd.io/trust-root-sha256";
/// Label of injected pods: the namespace of the control plane.
pub const CONTROL_PLANE_NAMESPACE_LABEL: &str = "linkerd.io/control-plane-ns";
/// Label of injected pods: the namespace of the pod.
pub const WORKLOAD_NAMESPACE_LABEL: &str = "linkerd.io/workload-ns";
/// Prefix of the label of injected pods with the name of the workload; the kind follows.
pub const WORKLOAD_LABEL_PREFIX: &str = "linkerd.io/proxy-";
/// Prefix of annotations that become labels of the proxy's traces.
pub const RESOURCE_ATTRIBUTE_PREFIX: &str = "resource.opentelemetry.io/";

/// A set of annotations, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keys(u64);

/// Annotations with their values.
#[derive(Debug, Clone, Copy)]
pub struct AnnotationSet<'a> {
    keys: Keys,
    values: [&'a str; TABLE.len()],
}

/// Whether injection writes an annotation or label of this key on every pod, whatever the pod has.
#[must_use]
pub fn is_written(key: &str) -> bool {
    const WRITTEN: [&str; 5] = [
        CREATED_BY_ANNOTATION,
        PROXY_VERSION_ANNOTATION,
        TRUST_ROOT_SHA256_ANNOTATION,
        CONTROL_PLANE_NAMESPACE_LABEL,
        WORKLOAD_NAMESPACE_LABEL,
    ];
    let kind = key.strip_prefix(WORKLOAD_LABEL_PREFIX);
    let is_workload = |kind| matches!(Kind::of(kind), Kind::Workload(_));
    WRITTEN.contains(&key) || kind.is_some_and(is_workload)
}

// === impl Annotation ===

impl Annotation {
    /// The key.
    #[must_use]
    pub const fn key(self) -> &'static str {
        TABLE[self as usize].key
    }

    /// Every annotation.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.annotation)
    }

    /// Applies a value of the annotation to the settings of a release.
    pub(super) fn apply(
        self,
        value: &str,
        settings: &mut Settings,
        release: Release,
    ) -> Result<(), Problem> {
        (TABLE[self as usize].effect)(settings, value, release)
    }

    /// A warning about a value of the annotation, which is shortened.
    #[must_use]
    pub fn warning(self, value: &str, problem: &str) -> Warning {
        // API servers may cut a warning of more than 256 characters, and the problem is at its end.
        const SHOWN_CHARS: usize = 64;
        let shown: String = value.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
        let more = if value.chars().nth(SHOWN_CHARS).is_some() { "…" } else { "" };
        Warning { annotation: self.key(), problem: format!("\"{shown}{more}\" {problem}") }
    }

    /// The annotation of a key.
    #[must_use]
    pub fn of(key: &str) -> Option<Self> {
        TABLE.binary_search_by(|row| row.key.cmp(key)).ok().map(|index| TABLE[index].annotation)
    }
}

// === impl Keys ===

impl Keys {
    /// The annotations that a release supports.
    #[must_use]
    pub fn supported_by(release: Release) -> Self {
        Self::matching(|row| match row.availability {
            Availability::Always => true,
            Availability::Since(delta) => release.has(delta),
            Availability::Before(delta) => !release.has(delta),
        })
    }

    /// The annotations that pods inherit from their namespace (`inject.go`, `ProxyAnnotations`).
    #[must_use]
    pub fn inherited_in(release: Release) -> Self {
        let listed = Self::matching(|row| match row.inherited {
            Inherited::No => false,
            Inherited::Yes => true,
            Inherited::Before(delta) => !release.has(delta),
        });
        Self(listed.0 & Self::supported_by(release).0)
    }

    /// All except the given annotations.
    #[must_use]
    pub fn without(self, others: &[Annotation]) -> Self {
        others.iter().fold(self, |keys, &other| keys.not_in(Self(bit(other))))
    }

    /// Whether the set contains the annotation.
    #[must_use]
    pub fn contains(self, annotation: Annotation) -> bool {
        self.0 & bit(annotation) != 0
    }

    /// The annotations that are not in `others`.
    #[must_use]
    pub fn not_in(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The annotations in the order of their keys.
    pub fn iter(self) -> impl Iterator<Item = Annotation> {
        std::iter::successors(Some(self.0), |&bits| Some(bits & bits.wrapping_sub(1)))
            .take_while(|&bits| bits != 0)
            .map(|bits| TABLE[bits.trailing_zeros() as usize].annotation)
    }

    fn matching(matches: impl Fn(&Row) -> bool) -> Self {
        let chosen = TABLE.iter().filter(|row| matches(row));
        Self(chosen.fold(0, |bits, row| bits | bit(row.annotation)))
    }
}

impl std::ops::BitAnd for Keys {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl std::ops::BitOr for Keys {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

fn bit(annotation: Annotation) -> u64 {
    1 << annotation as u8
}

// === impl AnnotationSet ===

impl<'a> AnnotationSet<'a> {
    /// Collects entries by annotation; skips other keys.
    pub fn of(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut set = Self { keys: Keys::default(), values: [""; TABLE.len()] };
        for (key, value) in entries {
            if let Some(annotation) = Annotation::of(key) {
                set.keys.0 |= bit(annotation);
                set.values[annotation as usize] = value;
            }
        }
        set
    }

    /// The annotations in the set.
    #[must_use]
    pub fn keys(&self) -> Keys {
        self.keys
    }

    /// The value of an annotation.
    #[must_use]
    pub fn get(&self, annotation: Annotation) -> Option<&'a str> {
        self.keys.contains(annotation).then(|| self.values[annotation as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_fits_a_bit_set() {
        assert!(TABLE.is_sorted_by(|a, b| a.key < b.key));
        assert!(TABLE.len() <= 64);
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.annotation as usize, index);
            assert_eq!(Annotation::of(row.key), Some(row.annotation));
        }
    }

    #[test]
    fn beta_native_sidecar_was_inherited_until_it_became_stable() {
        let inherited =
            |release| Keys::inherited_in(release).contains(Annotation::BetaNativeSidecar);
        assert!(!inherited(Release::edge(25, 10, 1)));
        assert!(inherited(Release::edge(25, 10, 7)));
        assert!(!inherited(Release::edge(26, 5, 2)));
    }

    #[test]
    fn keys_iterate_in_order() {
        let set = AnnotationSet::of(
            [("linkerd.io/inject", "a"), ("x", "y"), ("config.linkerd.io/access-log", "b")]
                .into_iter(),
        );
        let keys: Vec<_> = set.keys().iter().collect();
        assert_eq!(keys, [Annotation::AccessLog, Annotation::Inject]);
        assert_eq!(set.get(Annotation::Inject), Some("a"));
        assert_eq!(set.get(Annotation::ProxyUid), None);
    }
}
