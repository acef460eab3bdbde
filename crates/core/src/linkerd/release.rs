//! Linkerd releases, and the changes of the output between them.
//!
//! A release is one edge number; a [`Delta`] is one comparison with it. [`Delta::first_edge`] is
//! the table of changes: a new release needs new rows. The code that depends on a change implements
//! it.

use std::fmt;

use smallvec::SmallVec;

mod choice;

pub use choice::{Problem, ReleaseChoice, Source};

/// An edge release `YY.M.N`, comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge(u32);

/// A Linkerd release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    edge: Edge,
    stable_2_14: bool,
}

/// A version, compared with the known releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// From 2.14 to [`Release::NEWEST`].
    Known(Release),
    /// Newer than [`Release::NEWEST`]: its changes are unknown.
    Newer,
    /// Older than 2.14.
    Older,
    /// Not the version of a release: `dev-…`, `git-…`, or a fork's version.
    Unreadable,
}

/// A change of the output between releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta {
    /// Supports `proxy.disable*ProtocolDetectTimeout`; back-ported to 2.14.
    DetectTimeout,
    /// The destination context contains the pod's name; back-ported to 2.14.
    ContextNamesPod,
    /// The debug container has probes.
    DebugProbes,
    /// Supports `proxy.nativeSidecar`.
    NativeSidecar,
    /// Adds the three `CONTROL_STREAM` variables.
    ControlStreams,
    /// The policy workload is a JSON object.
    PolicyWorkloadIsJson,
    /// Supports `proxy.experimentalEnv`.
    ExperimentalEnv,
    /// Probe delays and timeouts come from the values.
    ProbesFromValues,
    /// Supports `proxy.additionalEnv`.
    AdditionalEnv,
    /// The init container has an argument for IPv6.
    InitIpv6,
    /// The computed port list wins over the pod-inbound-ports annotation.
    InboundPortsComputed,
    /// The last port of a name wins; ports without a name do not match the empty name.
    LastPortNameWins,
    /// Supports `proxy.inbound` and `proxy.outbound`.
    Parameters,
    /// The proxy listens on IPv6 as well.
    DualStack,
    /// The outbound addresses follow `disableIPv6`.
    LoopbackFollowsIpv6,
    /// A proxy among the init containers counts as an existing sidecar.
    SidecarsInInitContainers,
    /// Proxy, init container and validator set `runAsGroup`.
    Gid,
    /// Supports a shutdown endpoint on the proxy's admin port.
    ShutdownEndpoint,
    /// Keeps HTTP headers out of the proxy's log.
    LogWithoutHeaders,
    /// Init container and validator have the proxy's resources.
    SharedResources,
    /// Accepts an empty `proxy.logHTTPHeaders`.
    EmptyLogHeaders,
    /// Supports the inbound policy `audit`.
    AuditPolicy,
    /// The validator's connect address follows `disableIPv6`.
    ValidatorConnectAddr,
    /// Keeps HTTP headers and requests out of the proxy's log.
    LogWithoutRequests,
    /// Addresses follow `disableIPv6`.
    AddressesFollowIpv6,
    /// Adds the two `USER_TIMEOUT` variables.
    UserTimeouts,
    /// Adds the variables `_pod_uid` and `_pod_containerName`.
    PodUid,
    /// A close-wait timeout requires an init container that runs as root.
    CloseWaitNeedsRoot,
    /// Supports `proxy.runtime.workers`.
    Workers,
    /// Supports the debug-image annotations.
    DebugImages,
    /// Supports `proxy.metrics.hostnameLabels`.
    HostnameLabels,
    /// Adds the variable `_pod_ip`.
    PodIp,
    /// Supports tracing, enabled by `proxy.tracing.enable`.
    Tracing,
    /// Supports custom security contexts.
    SecurityContexts,
    /// Supports `fileKeyRef` in additional variables.
    FileKeyRef,
    /// Tracing is enabled by `proxy.tracing.enabled`; the collector has a namespace.
    TracingEnabled,
    /// Supports tracing labels.
    TracingLabels,
    /// Supports the beta native-sidecar annotation, inherited until the annotation is stable.
    BetaNativeSidecar,
    /// Adds the podinfo volume.
    PodinfoVolume,
    /// The init container runs the proxy's image.
    InitUsesProxyImage,
    /// Uses the ports of init containers.
    InitContainerPorts,
    /// Supports the proxy-additional-env annotation.
    AdditionalEnvAnnotation,
    /// Supports the stable native-sidecar annotation.
    StableNativeSidecar,
    /// Accepts `waitBeforeExitSeconds` for a native sidecar, but ignores it.
    NativeSidecarMayWait,
    /// The collector's name ends in the trust domain.
    TraceTrustDomain,
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Edge(number) = self.edge;
        let (year, month, number) = (number / 1_000_000, number / 10_000 % 100, number % 10_000);
        if self.stable_2_14 {
            f.write_str("stable-2.14")
        } else {
            write!(f, "edge-{year}.{month}.{number}")
        }
    }
}

// === impl Edge ===

impl Edge {
    /// The edge release `year.month.number`, such as 26.6.3.
    #[must_use]
    pub const fn new(year: u32, month: u32, number: u32) -> Self {
        Self(year * 1_000_000 + month * 10_000 + number)
    }
}

// === impl Delta ===

impl Delta {
    /// The first edge release that has the change: `docs/spec/linkerd/injection.md` §1.1 and the source
    /// of the rules, the chart and `pkg/inject` of that release.
    #[must_use]
    pub const fn first_edge(self) -> Edge {
        match self {
            Self::DetectTimeout => Edge::new(23, 11, 1),
            Self::ContextNamesPod => Edge::new(23, 10, 4),
            Self::DebugProbes => Edge::new(23, 11, 2),
            Self::NativeSidecar => Edge::new(23, 11, 4),
            Self::ControlStreams => Edge::new(23, 12, 4),
            Self::PolicyWorkloadIsJson => Edge::new(24, 1, 1),
            Self::ExperimentalEnv => Edge::new(24, 1, 2),
            Self::ProbesFromValues => Edge::new(24, 2, 2),
            Self::AdditionalEnv => Edge::new(24, 2, 3),
            Self::InitIpv6 => Edge::new(24, 4, 1),
            Self::InboundPortsComputed | Self::LastPortNameWins => Edge::new(24, 4, 2),
            Self::Parameters => Edge::new(24, 4, 5),
            Self::DualStack | Self::SidecarsInInitContainers => Edge::new(24, 5, 1),
            Self::LoopbackFollowsIpv6 => Edge::new(24, 5, 2),
            Self::Gid => Edge::new(24, 5, 4),
            Self::ShutdownEndpoint | Self::LogWithoutHeaders => Edge::new(24, 6, 2),
            Self::SharedResources | Self::EmptyLogHeaders => Edge::new(24, 6, 4),
            Self::AuditPolicy => Edge::new(24, 7, 3),
            Self::ValidatorConnectAddr => Edge::new(24, 7, 4),
            Self::LogWithoutRequests => Edge::new(24, 8, 1),
            Self::AddressesFollowIpv6 => Edge::new(24, 8, 2),
            Self::UserTimeouts => Edge::new(24, 10, 1),
            Self::PodUid | Self::CloseWaitNeedsRoot => Edge::new(25, 1, 1),
            Self::Workers | Self::DebugImages => Edge::new(25, 3, 3),
            Self::HostnameLabels => Edge::new(25, 3, 4),
            Self::PodIp => Edge::new(25, 5, 5),
            Self::Tracing => Edge::new(25, 6, 4),
            Self::SecurityContexts => Edge::new(25, 8, 4),
            Self::FileKeyRef => Edge::new(25, 9, 1),
            Self::TracingEnabled => Edge::new(25, 10, 1),
            Self::TracingLabels | Self::BetaNativeSidecar => Edge::new(25, 10, 2),
            Self::PodinfoVolume => Edge::new(25, 11, 1),
            Self::InitUsesProxyImage => Edge::new(25, 11, 3),
            Self::InitContainerPorts => Edge::new(25, 12, 2),
            Self::AdditionalEnvAnnotation => Edge::new(26, 4, 3),
            Self::StableNativeSidecar | Self::NativeSidecarMayWait => Edge::new(26, 5, 2),
            Self::TraceTrustDomain => Edge::new(26, 7, 1),
        }
    }
}

// === impl Release ===

impl Release {
    /// The newest known release.
    pub const NEWEST: Self = Self::edge(26, 8, 3);

    /// An edge release.
    #[must_use]
    pub const fn edge(year: u32, month: u32, number: u32) -> Self {
        Self { edge: Edge::new(year, month, number), stable_2_14: false }
    }

    /// The last release with its own stable branch: an edge release with back-ports.
    #[must_use]
    pub const fn stable_2_14() -> Self {
        Self { edge: Edge::new(23, 9, 2), stable_2_14: true }
    }

    /// Whether the release has the change.
    #[must_use]
    pub fn has(self, delta: Delta) -> bool {
        let back_ported = matches!(delta, Delta::DetectTimeout | Delta::ContextNamesPod);
        self.edge >= delta.first_edge() || (self.stable_2_14 && back_ported)
    }

    /// The release of a version, if it is known; see [`Version::read`].
    #[must_use]
    pub fn parse(version: &str) -> Option<Self> {
        match Version::read(version) {
            Version::Known(release) => Some(release),
            Version::Newer | Version::Older | Version::Unreadable => None,
        }
    }

    /// The release whose marker key is the newest among those that are there
    /// (`docs/spec/linkerd/injection.md` §1.3).
    ///
    /// The newest key decides: the values may also contain keys of older releases.
    #[must_use]
    pub fn of_markers(is_present: impl Fn(&[&str]) -> bool) -> Option<Self> {
        const MARKERS: [(&[&str], Release); 10] = [
            (&["podMonitor", "controller", "honorTimestamps"], Release::edge(26, 5, 2)),
            (&["proxy", "securityContext"], Release::edge(25, 8, 4)),
            (&["networkValidator", "securityContext"], Release::edge(25, 8, 4)),
            (&["proxy", "tracing"], Release::edge(25, 6, 4)),
            (&["proxy", "metrics"], Release::edge(25, 3, 4)),
            (&["proxy", "runtime"], Release::edge(25, 3, 3)),
            (&["proxyInjector", "podAnnotations"], Release::edge(25, 1, 1)),
            (&["egress"], Release::edge(24, 11, 1)),
            (&["proxy", "logHTTPHeaders"], Release::edge(24, 6, 2)),
            (&["disableIPv6"], Release::edge(24, 4, 1)),
        ];
        let oldest = is_present(&["proxy", "control"]).then_some(Self::edge(23, 12, 4));
        MARKERS.iter().find(|(key, _)| is_present(key)).map(|(_, release)| *release).or(oldest)
    }
}

// === impl Version ===

impl Version {
    /// Reads a version: `edge-26.6.3`, `stable-2.14.10`, `version-2.19`, `enterprise-2.18.4`.
    ///
    /// `2.N` stands for the edge release it was branched from. Linkerd's releases have no suffix: a
    /// version with a suffix is a fork's.
    #[must_use]
    pub fn read(version: &str) -> Self {
        let (channel, numbers) = version.split_once('-').unwrap_or_default();
        // One part more than any release has, so that longer versions do not match.
        let numbers: Option<SmallVec<[u32; 4]>> = numbers.split('.').take(4).map(number).collect();
        match (channel, numbers.as_deref().unwrap_or_default()) {
            ("edge", &[year @ ..100, month @ 1..=12, number]) => {
                Self::of_edge(Release::edge(year, month, number))
            }
            ("stable" | "version" | "enterprise", &[major, minor] | &[major, minor, _]) => {
                match major {
                    ..2 => Self::Older,
                    2 => Self::of_minor(minor),
                    3.. => Self::Newer,
                }
            }
            _ => Self::Unreadable,
        }
    }

    fn of_edge(release: Release) -> Self {
        if release.edge > Release::NEWEST.edge {
            Self::Newer
        } else if release.edge < Release::stable_2_14().edge {
            Self::Older
        } else {
            Self::Known(release)
        }
    }

    /// The version of Linkerd 2.`minor`.
    fn of_minor(minor: u32) -> Self {
        Self::Known(match minor {
            ..14 => return Self::Older,
            14 => Release::stable_2_14(),
            15 => Release::edge(24, 2, 4),
            16 => Release::edge(24, 8, 2),
            17 => Release::edge(24, 11, 8),
            18 => Release::edge(25, 4, 4),
            19 => Release::edge(25, 10, 7),
            20 => Release::edge(26, 6, 3),
            21.. => return Self::Newer,
        })
    }
}

/// Parses a number of a version: digits only.
fn number(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    // An edge has four digits for its number: a larger one would count as a later month.
    text.parse().ok().filter(|&number| is_number && number < 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_from_2_14_to_the_newest_release() {
        let known = |year, month, number| Version::Known(Release::edge(year, month, number));
        for (version, read) in [
            ("edge-26.6.3", known(26, 6, 3)),
            ("edge-23.9.2", known(23, 9, 2)),
            ("edge-23.9.1", Version::Older),
            ("edge-26.8.3", Version::Known(Release::NEWEST)),
            ("edge-26.8.4", Version::Newer),
            ("stable-2.14.10", Version::Known(Release::stable_2_14())),
            ("version-2.19", known(25, 10, 7)),
            ("enterprise-2.18.4", known(25, 4, 4)),
            ("enterprise-2.99.0", Version::Newer),
            ("stable-2.13.1", Version::Older),
            ("stable-1.30", Version::Older),
            ("stable-3.0", Version::Newer),
            ("edge-26.6", Version::Unreadable),
            ("edge-26.13.1", Version::Unreadable),
            ("edge-9999.1.1", Version::Unreadable),
            ("edge-99999999999.1.1", Version::Unreadable),
            ("dev-undefined", Version::Unreadable),
            ("edge-26x.6y.3z", Version::Unreadable),
            ("edge-26.6.3-acme", Version::Unreadable),
            ("edge-26.6.3.1", Version::Unreadable),
            ("edge-26.6.", Version::Unreadable),
            ("edge-+26.6.3", Version::Unreadable),
            ("stable-2.14.10-acme", Version::Unreadable),
            ("stable-2.14.", Version::Unreadable),
            ("stable-2", Version::Unreadable),
            ("version-2.19.0.1", Version::Unreadable),
            ("", Version::Unreadable),
        ] {
            assert_eq!(Version::read(version), read, "{version}");
        }
    }

    #[test]
    fn edges_compare_by_year_month_and_number() {
        assert!(Edge::new(24, 10, 1) > Edge::new(24, 9, 30));
        assert!(Edge::new(25, 1, 1) > Edge::new(24, 12, 9));
    }

    #[test]
    fn the_highest_marker_wins() {
        let present = |keys: &'static [&'static [&'static str]]| {
            Release::of_markers(move |key| keys.contains(&key))
        };
        assert_eq!(present(&[]), None);
        assert_eq!(present(&[&["proxy", "control"]]), Some(Release::edge(23, 12, 4)));
        assert_eq!(
            present(&[&["disableIPv6"], &["proxy", "metrics"]]),
            Some(Release::edge(25, 3, 4))
        );
    }

    #[test]
    fn back_ports_are_only_in_stable_2_14() {
        assert!(Release::stable_2_14().has(Delta::DetectTimeout));
        assert!(!Release::edge(23, 9, 2).has(Delta::DetectTimeout));
        assert!(!Release::stable_2_14().has(Delta::DebugProbes));
    }
}
