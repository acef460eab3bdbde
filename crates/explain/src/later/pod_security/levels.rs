//! The levels and versions that the labels of a namespace name (k8s.io/pod-security-admission v0.37.2,
//! `api/helpers.go`).

use serde_json::Value;

use super::super::{Effect, text, version::Version};

/// A level of the standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// What a namespace asks for in one mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    pub(super) effect: Effect,
    pub(super) level: Level,
    /// The version of the checks; `None` for the newest.
    pub(super) version: Option<Version>,
}

/// The modes: the name in labels, and the level that stands for one that is not valid.
const MODES: [(&str, Effect, Level); 3] = [
    ("enforce", Effect::Refuses, Level::Restricted),
    ("warn", Effect::Warns, Level::Privileged),
    ("audit", Effect::Audits, Level::Privileged),
];

impl Level {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }

    fn read(text: &str) -> Option<Self> {
        let all = [Self::Privileged, Self::Baseline, Self::Restricted];
        all.into_iter().find(|level| level.as_str() == text)
    }
}

/// The policies of a namespace, for each mode that its labels set.
pub(super) fn policies(namespace: Option<&Value>) -> impl Iterator<Item = Policy> {
    MODES.into_iter().filter_map(move |(mode, effect, otherwise)| {
        let label = |mode: &str| {
            let key = format!("pod-security.kubernetes.io~1{mode}");
            text(namespace?, &format!("/metadata/labels/{key}"))
        };
        let version_label = label(&format!("{mode}-version"));
        let level = match label(mode) {
            Some(level) => Level::read(level).unwrap_or(otherwise),
            // Warnings follow the enforced level; of the same version they would say nothing more.
            None if mode == "warn" && version_label.is_some() => {
                label("enforce").and_then(Level::read)?
            }
            None => return None,
        };
        Some(Policy { effect, level, version: version_label.and_then(version) })
    })
}

/// A version such as `v1.36`; `None` for `latest`, and for what is not valid, which counts as such. So do
/// larger numbers, which are newer than any API server.
fn version(text: &str) -> Option<Version> {
    Version::of_minor(text.strip_prefix("v1.")?)
}
