//! Releases of Istio, and the changes of the output between them.
//!
//! A release is 1.N.P. A [`Delta`] is a change of the output; its row below has the first releases with it.
//! A new release needs new rows. The code that depends on a change implements it. Not for how the release of
//! a configuration is found: [`crate::detect`].

use std::fmt;

/// A release: 1.N.P.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    minor: u16,
    patch: u16,
}

/// The table of changes: what each is, its name, and the first releases with it.
macro_rules! deltas {
    ($($(#[$what:meta])* $name:ident: $($release:expr),+;)+) => {
        /// A change of the output between releases.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Delta {
            $($(#[$what])* $name,)+
        }

        impl Delta {
            /// All of them, in the order of the releases.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The first releases with the change, as minor and patch: the patch releases of earlier minors
            /// that got it, then the first minor with it.
            #[must_use]
            pub const fn first(self) -> &'static [(u16, u16)] {
                match self {
                    $(Self::$name => &[$($release),+],)+
                }
            }
        }
    };
}

// The files and pull requests are in docs/spec/istio, or beside the code that a change decides.
deltas! {
    /// A layer of `ProxyConfig` keeps the headers of the layers below it that it does not set.
    KeptHeaders: (19, 1);
    /// The init container has the ids that a user gave to the proxy (`adjustInitContainerUser`).
    InitUser: (20, 0);
    /// Templates see `.ProxyUID` and `.ProxyGID`.
    ProxyIds: (20, 0);
    /// Templates have the function `mergeMaps`.
    MergeMaps: (21, 0);
    /// `.DeploymentMeta` has the name and namespace of the owner alone, not the metadata of the Pod.
    BareOwner: (22, 0);
    /// There is no default tracer.
    NoDefaultTracer: (22, 0);
    /// A drain duration has no maximum (istio/istio#50508). 1.22.8 has none, 1.19.10 has.
    DrainWithoutLimit: (22, 0);
    /// The server compares the path as it is written, not decoded, and redirects with 307, not 301
    /// (`http.ServeMux` of Go 1.22).
    PathAsWritten: (22, 0);
    /// `global.variant` is the image type of a pod without a message `image`.
    Variant: (22, 0);
    /// The owner of a `ReplicaSet` may be a `Rollout` of Argo.
    Rollouts: (22, 0);
    /// A `CronJob` is of `batch/v1`, not of `batch/v1beta1`.
    CronJobsV1: (22, 0);
    /// Templates see `.InboundTrafficPolicyMode`.
    TrafficPolicyMode: (22, 0);
    /// On `OpenShift` the proxy does not keep the user of the application.
    ApplicationUser: (23, 1);
    /// Templates have the function `sha512sum`.
    Sha512: (24, 0);
    /// Reads `sidecar.istio.io/nativeSidecar`.
    NativeAnnotation: (24, 0);
    /// `sidecar.istio.io/enableCoreDump` may have any value.
    AnyCoreDump: (25, 0);
    /// Handlers of `lifecycle` are rewritten as probes are.
    HandlerProbes: (25, 0);
    /// `appendMultusNetwork` knows a network `ns/name`.
    QualifiedNetworks: (23, 6), (24, 4), (25, 1);
    /// An answer of any kind counts as a success, and every error as a failure.
    AnswersCount: (26, 0);
    /// `sidecar.istio.io/inject` is `true` or `false`; other values have no effect.
    StrictInject: (27, 0);
    /// `ENABLE_NATIVE_SIDECARS` may be `auto`, and is if it is not set: the nodes decide.
    NativeByNodes: (27, 0);
    /// An injected proxy has the variable of rewritten probes even without one.
    EmptyProbers: (27, 0);
    /// The users of init containers are users of the application, too.
    InitApplicationUser: (27, 0);
    /// Templates see `.NativeSidecars`.
    NativeSidecarsField: (27, 0);
    /// The annotations of the proxy's resources must be quantities.
    CheckedResources: (27, 6), (28, 4), (29, 0);
    /// Templates have the function `omitNil`.
    OmitNil: (28, 6), (29, 1), (30, 0);
    /// Templates have the function `otelResourceAttributes`.
    OtelAttributes: (30, 0);
    /// The annotations of interfaces must be names of interfaces.
    CheckedInterfaces: (30, 0);
    /// `connectionSettings` of a `ProxyConfig` are checked.
    ConnectionSettings: (31, 0);
    /// `global.variant` is also the image type of a message `image` without a type.
    EmptyImageType: (31, 0);
    /// Reads `prometheus.istio.io/scrape-targets`.
    ScrapeTargets: (31, 0);
    /// Pods with a secure port of metrics get its annotation.
    SecurePort: (31, 0);
    /// Templates see `.ProxyInitImage`.
    ProxyInitImage: (31, 0);
}

// === impl Release ===

impl Release {
    /// The newest release that is known.
    pub const NEWEST: Self = Self::new(31, 0);
    /// The oldest release that is supported.
    pub const OLDEST: Self = Self::new(19, 0);

    /// 1.`minor`.`patch`.
    #[must_use]
    pub const fn new(minor: u16, patch: u16) -> Self {
        Self { minor, patch }
    }

    /// The minor version.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.minor
    }

    /// Whether the release has a change.
    #[must_use]
    pub fn has(self, delta: Delta) -> bool {
        self.is_from(delta.first())
    }

    /// Whether this is one of these releases, one later of the same minor, or of a minor after all of them.
    fn is_from(self, first: &[(u16, u16)]) -> bool {
        let same = first.iter().find(|(minor, _)| *minor == self.minor);
        let newest = first.iter().map(|(minor, _)| *minor).max().unwrap_or(0);
        same.map_or(self.minor > newest, |(_, patch)| self.patch >= *patch)
    }

    /// The minor version of `k8s.io/api`, with which the release reads Pods (`go.mod`).
    #[must_use]
    pub const fn kubernetes_api(self) -> u16 {
        match self.minor {
            0..=20 => 28,
            21 => 29,
            22 | 23 => 30,
            24 => 31,
            25 | 26 => 32,
            27 => 33,
            28 | 29 => 34,
            30 => 35,
            _ => 36,
        }
    }

    /// Reads `1.24.6`, `1.31` or `v1.20.0-distroless`; `None` if it is no version of Istio.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.")?;
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let end = digits(rest);
        let minor = rest[..end].parse().ok()?;
        let Some(rest) = rest[end..].strip_prefix('.') else {
            let is_end = rest[end..].is_empty() || rest[end..].starts_with('-');
            return is_end.then_some(Self::new(minor, 0));
        };
        let end = digits(rest);
        let is_end = rest[end..].is_empty() || rest[end..].starts_with(['-', '+']);
        let patch = rest[..end].parse().ok()?;
        is_end.then_some(Self::new(minor, patch))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}.{}", self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_with_their_suffixes() {
        for (text, expected) in [
            ("1.24.6", Some((24, 6))),
            ("1.31", Some((31, 0))),
            ("1.20.0-distroless", Some((20, 0))),
            ("1.28-alpha.1", Some((28, 0))),
            ("v1.19.10", Some((19, 10))),
            ("latest", None),
            ("2.1", None),
            ("1.", None),
            ("1.2x", None),
        ] {
            let expected = expected.map(|(minor, patch)| Release::new(minor, patch));
            assert_eq!(Release::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn the_newest_release_has_every_change_and_the_oldest_none() {
        let oldest_first = Delta::ALL.is_sorted_by_key(|delta| delta.first().last());
        assert!(oldest_first, "{:?}", Delta::ALL);
        for delta in Delta::ALL {
            assert!(Release::NEWEST.has(*delta) && !Release::OLDEST.has(*delta), "{delta:?}");
            assert!(delta.first().is_sorted(), "{delta:?}");
        }
    }

    #[test]
    fn a_change_may_have_come_with_patches_of_several_minors() {
        let first = [(23, 6), (24, 4), (25, 1)];
        for (release, expected) in [
            ((23, 5), false),
            ((23, 6), true),
            ((24, 3), false),
            ((25, 1), true),
            ((26, 0), true),
            ((22, 9), false),
        ] {
            assert_eq!(Release::new(release.0, release.1).is_from(&first), expected, "{release:?}");
        }
    }
}
