//! The release of Kubernetes whose API server checks a pod.

use std::{fmt, str::FromStr};

/// A minor release of Kubernetes 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u16);

/// A text that is not a release of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a release of Kubernetes such as 1.36")]
pub struct NotVersion;

impl Version {
    /// The newest release whose checks are known.
    pub const NEWEST: Self = Self(37);

    /// The oldest release that Kubernetes maintains, besides newer ones.
    const OLDEST: Self = Self(34);

    /// The releases whose checks are known in each detail, the oldest first.
    pub(super) fn supported() -> impl DoubleEndedIterator<Item = Self> {
        (Self::OLDEST.0..=Self::NEWEST.0).map(Self)
    }

    /// A release 1.`minor`.
    #[must_use]
    pub const fn minor(minor: u16) -> Self {
        Self(minor)
    }

    /// Whether pods have `spec.resources`: `PodLevelResources` is on since then.
    pub(super) fn has_pod_resources(self) -> bool {
        self >= Self(34)
    }

    /// Whether `spec.resources` gets its defaults after the webhooks:
    /// `PodLevelResourcesFixDefaulting` is on since then.
    pub(super) fn defaults_pods_last(self) -> bool {
        self >= Self(37)
    }

    /// Whether a pod's own resources that name nothing leave its class to the containers:
    /// `PodLevelResourcesFixKubeletQOSClass` is on since then.
    pub(super) fn ignores_empty_pod_resources(self) -> bool {
        self >= Self(37)
    }
}

impl Default for Version {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// `1.36`, `v1.36` and `1.36.3`; also `1.36+`, as some distributions name theirs.
impl FromStr for Version {
    type Err = NotVersion;

    fn from_str(text: &str) -> Result<Self, NotVersion> {
        let minor = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.").ok_or(NotVersion)?;
        let digits = minor.find(|it: char| !it.is_ascii_digit()).unwrap_or(minor.len());
        let (digits, rest) = minor.split_at(digits);
        if !matches!(rest.chars().next(), None | Some('.' | '+' | '-')) {
            return Err(NotVersion);
        }
        digits.parse().map(Self).map_err(|_| NotVersion)
    }
}
