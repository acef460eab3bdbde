//! The release of Kubernetes whose API server checks a pod.

use std::{fmt, str::FromStr};

/// A minor release of Kubernetes 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u16);

/// A text that is not a release of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a release of Kubernetes: write 1.36, 1.36.3, v1.36.3 or v1.36.3-gke.100")]
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

    /// The release whose checks apply: itself, or the nearest whose checks are known.
    pub(super) fn judged(self) -> Self {
        self.clamp(Self::OLDEST, Self::NEWEST)
    }

    /// A note for a release whose checks are not known.
    #[must_use]
    pub fn note(self) -> Option<String> {
        let judged = self.judged();
        (judged != self).then(|| {
            format!(
                "the checks of Kubernetes {self} are not known, only those of {} to {}: what objects to \
                 the pod is that of {judged}",
                Self::OLDEST,
                Self::NEWEST
            )
        })
    }

    /// A release 1.`minor`.
    #[must_use]
    pub const fn minor(minor: u16) -> Self {
        Self(minor)
    }

    /// A release of a minor number as releases have it: digits without a zero before them.
    pub(super) fn of_minor(text: &str) -> Option<Self> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let has_zero = text.len() > 1 && text.starts_with('0');
        text.parse().ok().filter(|_| is_number && !has_zero).map(Self)
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

/// `1.36`, `1.36.3` and `v1.36.3`; also with what distributions add: `1.36+`, `v1.36.3-gke.100`,
/// `v1.36.3+k3s1`.
impl FromStr for Version {
    type Err = NotVersion;

    fn from_str(text: &str) -> Result<Self, NotVersion> {
        let numbers =
            text.strip_prefix('v').unwrap_or(text).strip_prefix("1.").ok_or(NotVersion)?;
        let (numbers, added) = numbers.split_at(numbers.find(['+', '-']).unwrap_or(numbers.len()));
        let (minor, patch) = numbers.split_once('.').unwrap_or((numbers, "0"));
        let is_of_added = |letter: char| letter.is_ascii_alphanumeric() || "+-._~".contains(letter);
        let is_valid = Self::of_minor(patch).is_some() && added.chars().all(is_of_added);
        Self::of_minor(minor).filter(|_| is_valid).ok_or(NotVersion)
    }
}
