//! The annotations that Linkerd reads: each with its key and who may set it, in one table.
//!
//! Not for what they mean: [`super::settings`] applies them.

use super::release::{Delta, Release};

/// Who may set an annotation, beside the pod itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inherited {
    /// The pod alone.
    No,
    /// The namespace as well.
    Yes,
    /// The namespace as well, in releases before the change.
    Before(Delta),
}

/// The releases that know an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Always,
    Since(Delta),
    Before(Delta),
}

macro_rules! annotations {
    ($($variant:ident, $key:literal, $known:expr, $inherited:expr;)*) => {
        /// An annotation. The order is that of the keys, byte by byte.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each is named after its key")]
        pub enum Annotation { $($variant,)* }

        const TABLE: &[(Annotation, &str, Known, Inherited)] = {
            use Known::{Always, Before, Since};
            use Inherited::{No, Yes};
            &[$((Annotation::$variant, $key, $known, $inherited),)*]
        };
    };
}

annotations! {
    AlphaNativeSidecar, "config.alpha.linkerd.io/proxy-enable-native-sidecar", Since(Delta::NativeSidecar), Yes;
    WaitBeforeExitSeconds, "config.alpha.linkerd.io/proxy-wait-before-exit-seconds", Always, Yes;
    BetaNativeSidecar, "config.beta.linkerd.io/proxy-enable-native-sidecar", Since(Delta::BetaNativeSidecar), Inherited::Before(Delta::StableNativeSidecar);
    AccessLog, "config.linkerd.io/access-log", Always, Yes;
    AdminPort, "config.linkerd.io/admin-port", Always, Yes;
    CloseWaitTimeout, "config.linkerd.io/close-wait-timeout", Always, No;
    ControlPort, "config.linkerd.io/control-port", Always, Yes;
    DebugImage, "config.linkerd.io/debug-image", Since(Delta::DebugImages), No;
    DebugImagePullPolicy, "config.linkerd.io/debug-image-pull-policy", Since(Delta::DebugImages), No;
    DebugImageVersion, "config.linkerd.io/debug-image-version", Since(Delta::DebugImages), No;
    DefaultInboundPolicy, "config.linkerd.io/default-inbound-policy", Always, Yes;
    EnableDebugSidecar, "config.linkerd.io/enable-debug-sidecar", Always, Yes;
    EnableExternalProfiles, "config.linkerd.io/enable-external-profiles", Always, Yes;
    EnableGateway, "config.linkerd.io/enable-gateway", Always, No;
    ImagePullPolicy, "config.linkerd.io/image-pull-policy", Always, Yes;
    InboundPort, "config.linkerd.io/inbound-port", Always, Yes;
    InitImage, "config.linkerd.io/init-image", Before(Delta::InitUsesProxyImage), Yes;
    InitImageVersion, "config.linkerd.io/init-image-version", Before(Delta::InitUsesProxyImage), Yes;
    OpaquePorts, "config.linkerd.io/opaque-ports", Always, Yes;
    OutboundPort, "config.linkerd.io/outbound-port", Always, Yes;
    PodInboundPorts, "config.linkerd.io/pod-inbound-ports", Always, Yes;
    AdditionalEnv, "config.linkerd.io/proxy-additional-env", Since(Delta::AdditionalEnvAnnotation), Yes;
    AdminShutdown, "config.linkerd.io/proxy-admin-shutdown", Since(Delta::ShutdownEndpoint), Yes;
    Await, "config.linkerd.io/proxy-await", Always, Yes;
    CpuLimit, "config.linkerd.io/proxy-cpu-limit", Always, Yes;
    CpuRatioLimit, "config.linkerd.io/proxy-cpu-ratio-limit", Since(Delta::Workers), No;
    CpuRequest, "config.linkerd.io/proxy-cpu-request", Always, Yes;
    DisableInboundDetectTimeout, "config.linkerd.io/proxy-disable-inbound-protocol-detect-timeout", Since(Delta::DetectTimeout), Yes;
    DisableOutboundDetectTimeout, "config.linkerd.io/proxy-disable-outbound-protocol-detect-timeout", Since(Delta::DetectTimeout), Yes;
    NativeSidecar, "config.linkerd.io/proxy-enable-native-sidecar", Since(Delta::StableNativeSidecar), Yes;
    EphemeralStorageLimit, "config.linkerd.io/proxy-ephemeral-storage-limit", Always, Yes;
    EphemeralStorageRequest, "config.linkerd.io/proxy-ephemeral-storage-request", Always, Yes;
    ProxyGid, "config.linkerd.io/proxy-gid", Since(Delta::Gid), Yes;
    ProxyImage, "config.linkerd.io/proxy-image", Always, Yes;
    InboundConnectTimeout, "config.linkerd.io/proxy-inbound-connect-timeout", Always, Yes;
    InboundDiscoveryTimeout, "config.linkerd.io/proxy-inbound-discovery-cache-unused-timeout", Always, Yes;
    LogFormat, "config.linkerd.io/proxy-log-format", Always, Yes;
    LogHttpHeaders, "config.linkerd.io/proxy-log-http-headers", Since(Delta::LogWithoutHeaders), Yes;
    LogLevel, "config.linkerd.io/proxy-log-level", Always, Yes;
    MemoryLimit, "config.linkerd.io/proxy-memory-limit", Always, Yes;
    MemoryRequest, "config.linkerd.io/proxy-memory-request", Always, Yes;
    MetricsHostnameLabels, "config.linkerd.io/proxy-metrics-hostname-labels", Since(Delta::HostnameLabels), Yes;
    OutboundConnectTimeout, "config.linkerd.io/proxy-outbound-connect-timeout", Always, Yes;
    OutboundDiscoveryTimeout, "config.linkerd.io/proxy-outbound-discovery-cache-unused-timeout", Always, Yes;
    RequireIdentity, "config.linkerd.io/proxy-require-identity-inbound-ports", Always, Yes;
    ProxyUid, "config.linkerd.io/proxy-uid", Always, Yes;
    ProxyVersion, "config.linkerd.io/proxy-version", Always, Yes;
    ShutdownGracePeriod, "config.linkerd.io/shutdown-grace-period", Always, Yes;
    SkipInboundPorts, "config.linkerd.io/skip-inbound-ports", Always, Yes;
    SkipOutboundPorts, "config.linkerd.io/skip-outbound-ports", Always, Yes;
    SkipSubnets, "config.linkerd.io/skip-subnets", Always, Yes;
    Inject, "linkerd.io/inject", Always, Yes;
}

/// Written on injected pods: the injector and its version.
pub const CREATED_BY_ANNOTATION: &str = "linkerd.io/created-by";
/// Written on injected pods: the proxy's version.
pub const PROXY_VERSION_ANNOTATION: &str = "linkerd.io/proxy-version";
/// Written on injected pods: SHA-256 of the trust roots.
pub const TRUST_ROOT_SHA256_ANNOTATION: &str = "linkerd.io/trust-root-sha256";
/// Read from pods: each gives a label of the proxy's traces.
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

// === impl Annotation ===

impl Annotation {
    /// The key.
    #[must_use]
    pub fn key(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The annotation of a key.
    #[must_use]
    pub fn of(key: &str) -> Option<Self> {
        TABLE.binary_search_by(|entry| entry.1.cmp(key)).ok().map(|index| TABLE[index].0)
    }
}

// === impl Keys ===

impl Keys {
    /// The annotations that a release knows.
    #[must_use]
    pub fn known_to(release: Release) -> Self {
        Self::matching(|_, known, _| match known {
            Known::Always => true,
            Known::Since(delta) => release.has(delta),
            Known::Before(delta) => !release.has(delta),
        })
    }

    /// The annotations that pods take over from their namespace (`inject.go`, `ProxyAnnotations`).
    #[must_use]
    pub fn inherited_in(release: Release) -> Self {
        let listed = Self::matching(|_, _, inherited| match inherited {
            Inherited::No => false,
            Inherited::Yes => true,
            Inherited::Before(delta) => !release.has(delta),
        });
        Self(listed.0 & Self::known_to(release).0)
    }

    /// All but the given annotations.
    #[must_use]
    pub fn without(self, others: &[Annotation]) -> Self {
        others.iter().fold(self, |keys, &other| keys.not_in(Self(bit(other))))
    }

    /// Whether the annotation is one of them.
    #[must_use]
    pub fn contains(self, annotation: Annotation) -> bool {
        self.0 & bit(annotation) != 0
    }

    /// Those that are not among `others`.
    #[must_use]
    pub fn not_in(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The annotations in the order of their keys.
    pub fn iter(self) -> impl Iterator<Item = Annotation> {
        std::iter::successors(Some(self.0), |&bits| Some(bits & bits.wrapping_sub(1)))
            .take_while(|&bits| bits != 0)
            .map(|bits| TABLE[bits.trailing_zeros() as usize].0)
    }

    fn matching(matches: impl Fn(Annotation, Known, Inherited) -> bool) -> Self {
        let chosen = TABLE
            .iter()
            .filter(|(annotation, _, known, inherited)| matches(*annotation, *known, *inherited));
        Self(chosen.fold(0, |bits, entry| bits | bit(entry.0)))
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
    /// Sorts entries by annotation; keys that are none are passed over.
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

    /// Which annotations there are.
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
        assert!(TABLE.is_sorted_by(|a, b| a.1 < b.1));
        assert!(TABLE.len() <= 64);
        for (index, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.0 as usize, index);
            assert_eq!(Annotation::of(entry.1), Some(entry.0));
        }
    }

    #[test]
    fn beta_native_sidecar_was_inherited_until_it_was_stable() {
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
