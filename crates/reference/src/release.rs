//! L§1: releases, and the changes between them.

use serde_json::Value;

/// An edge release: year, month, number.
pub type Edge = (u32, u32, u32);

/// A Linkerd release as the edge release it equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The edge release with the same behaviour.
    pub edge: Edge,
    /// stable-2.14.x is edge 23.9.2 with some later changes.
    pub stable_2_14: bool,
}

/// The newest release that was studied: main.
const NEWEST: Edge = (26, 8, 3);

/// L§1.3: keys that came with a release.
const MARKERS: &[(&str, Edge)] = &[
    ("podMonitor.controller.honorTimestamps", (26, 5, 2)),
    ("proxy.securityContext", (25, 8, 4)),
    ("networkValidator.securityContext", (25, 8, 4)),
    ("proxy.tracing", (25, 6, 4)),
    ("proxy.metrics", (25, 3, 4)),
    ("proxy.runtime", (25, 3, 3)),
    ("proxyInjector.podAnnotations", (25, 1, 1)),
    ("egress", (24, 11, 1)),
    ("proxy.logHTTPHeaders", (24, 6, 2)),
    ("disableIPv6", (24, 4, 1)),
    ("proxy.control", (23, 12, 4)),
];

impl Release {
    /// The oldest supported release: stable-2.14.
    pub const OLDEST: Self = Self { edge: (23, 9, 2), stable_2_14: true };

    /// Whether the release has the behaviour since `edge`.
    pub fn since(self, edge: Edge) -> bool {
        self.edge >= edge
    }

    /// The same for a change that was back-ported to stable-2.14.x.
    pub fn since_or_stable(self, edge: Edge) -> bool {
        self.stable_2_14 || self.since(edge)
    }

    /// L§1.3: reads `edge-26.6.3`, `stable-2.14.10`, `version-2.18`, `2.18`, `main`.
    pub fn parse(version: &str) -> Option<Self> {
        if version == "main" {
            return Some(Self::at(NEWEST));
        }
        if let Some(edge) = version.strip_prefix("edge-") {
            let mut parts = edge.split('.').map(str::parse);
            let mut next = || parts.next()?.ok();
            return Some(Self::at((next()?, next()?, next()?)));
        }
        let number = ["stable-", "version-", "enterprise-"]
            .iter()
            .find_map(|prefix| version.strip_prefix(prefix))
            .unwrap_or(version);
        let mut parts = number.split('.');
        let ("2", minor) = (parts.next()?, parts.next()?) else {
            return None;
        };
        Some(match minor {
            "14" => Self { edge: (23, 9, 2), stable_2_14: true },
            "15" => Self::at((24, 2, 4)),
            "16" => Self::at((24, 8, 2)),
            "17" => Self::at((24, 11, 8)),
            "18" => Self::at((25, 4, 4)),
            "19" => Self::at((25, 10, 7)),
            "20" => Self::at((26, 6, 3)),
            _ => return None,
        })
    }

    /// L§1.3: the release of the values: by their version if it is known, else the one that was
    /// set, else by the newest key that is present, else the oldest.
    pub fn of_values(tree: &Value, set: Option<Self>) -> Self {
        let version = tree["linkerdVersion"].as_str().unwrap_or_default();
        let named = version.contains('-').then(|| Self::parse(version)).flatten();
        let known = |release: &Self| (Self::OLDEST.edge..=NEWEST).contains(&release.edge);
        named.filter(known).or(set).unwrap_or_else(|| {
            let there = |path: &str| {
                let mut keys = path.split('.');
                keys.try_fold(tree, |at, key| at.get(key)).is_some()
            };
            let keys = MARKERS.iter().filter(|(path, _)| there(path));
            keys.map(|(_, edge)| *edge).max().map_or(Self::OLDEST, Self::at)
        })
    }

    fn at(edge: Edge) -> Self {
        Self { edge, stable_2_14: false }
    }
}
