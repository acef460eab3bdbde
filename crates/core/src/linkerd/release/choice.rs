//! Chooses the Linkerd release to use for an installation, and records the reason.

use super::{Release, Version};

/// Maximum length of the kept part of `linkerdVersion`, in bytes. The part becomes a metric label;
/// versions of Linkerd's builds are shorter.
const MAX_VERSION_BYTES: usize = 64;

/// The release in use, and how it was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseChoice {
    /// The release in use.
    pub release: Release,
    /// `linkerdVersion` from the values, cut to 64 bytes; empty if missing.
    pub version: String,
    /// The source of the choice.
    pub source: Source,
    problem: Option<Problem>,
}

/// The source of a choice of release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `linkerdVersion` of the values names a known release.
    Values,
    /// The version is unknown; the operator set this release.
    Variable,
    /// The version is unknown; a key of the values shows at least this release.
    Markers,
    /// The version is newer than all known releases; the newest of them is used.
    Newest,
    /// The version is unknown, and no key shows a release; the oldest known release is used.
    Oldest,
}

/// Why `linkerdVersion` does not name a known release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The values do not set it.
    #[error("linkerdVersion is missing")]
    Missing,
    /// Not the version of a release.
    #[error("linkerdVersion {0:?} is not a Linkerd release")]
    Unreadable(String),
    /// Newer than the releases that this build knows.
    #[error("linkerdVersion {0:?} is newer than {newest}, the newest known release", newest = Release::NEWEST)]
    Newer(String),
    /// Older than all supported releases.
    #[error("linkerdVersion {0:?} is older than {oldest}, the oldest known release", oldest = Release::stable_2_14())]
    Older(String),
}

impl ReleaseChoice {
    /// Chooses the release of `version`, the `linkerdVersion` of the values, if it is known; else
    /// `fallback`; else the newest release for a newer version, the release of the marker keys, or
    /// the oldest release.
    #[must_use]
    pub fn new(
        version: &str,
        fallback: Option<Release>,
        of_markers: impl FnOnce() -> Option<Release>,
    ) -> Self {
        let read = Version::read(version);
        let version = version[..version.floor_char_boundary(MAX_VERSION_BYTES)].to_owned();
        let problem = match read {
            Version::Known(_) => None,
            Version::Newer => Some(Problem::Newer(version.clone())),
            Version::Older => Some(Problem::Older(version.clone())),
            Version::Unreadable if version.is_empty() => Some(Problem::Missing),
            Version::Unreadable => Some(Problem::Unreadable(version.clone())),
        };
        let (release, source) = match (read, fallback) {
            (Version::Known(release), _) => (release, Source::Values),
            (_, Some(release)) => (release, Source::Variable),
            (Version::Newer, None) => (Release::NEWEST, Source::Newest),
            (Version::Older | Version::Unreadable, None) => match of_markers() {
                Some(release) => (release, Source::Markers),
                None => (Release::stable_2_14(), Source::Oldest),
            },
        };
        Self { release, version, source, problem }
    }

    /// Whether the values or the operator named a known release.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.unknown().is_none()
    }

    /// Why an installation should leave a known release, if it should.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        const REVERTED: Release = Release::edge(25, 10, 2);
        (self.release == REVERTED).then_some(
            "edge-25.10.2 has a change of labels and events that edge-25.10.3 took back; injecting as \
             edge-25.10.3; upgrade Linkerd to edge-25.10.3 or later",
        )
    }

    /// Why the release is unknown, if it is.
    #[must_use]
    pub fn unknown(&self) -> Option<&Problem> {
        self.problem.as_ref().filter(|_| self.source != Source::Variable)
    }
}

impl Source {
    /// The value of the metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Variable => "variable",
            Self::Markers => "markers",
            Self::Newest => "newest",
            Self::Oldest => "oldest",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKED: Release = Release::edge(25, 3, 4);
    const SET: Release = Release::edge(24, 8, 2);

    fn chosen(version: &str, fallback: Option<Release>) -> (Release, Source, bool) {
        let choice = ReleaseChoice::new(version, fallback, || Some(MARKED));
        (choice.release, choice.source, choice.is_known())
    }

    #[test]
    fn a_known_version_wins_over_the_variable() {
        for fallback in [None, Some(SET)] {
            for (version, release) in [
                ("edge-26.6.3", Release::edge(26, 6, 3)),
                ("enterprise-2.18.4", Release::edge(25, 4, 4)),
                ("version-2.19", Release::edge(25, 10, 7)),
                ("edge-23.9.2", Release::edge(23, 9, 2)),
                ("edge-26.8.3", Release::NEWEST),
            ] {
                assert_eq!(chosen(version, fallback), (release, Source::Values, true), "{version}");
            }
        }
    }

    #[test]
    fn the_variable_decides_for_an_unknown_version() {
        for version in ["stable-2.99.0", "edge-26.8.4", "stable-2.13.0", "my-fork-1", ""] {
            assert_eq!(chosen(version, Some(SET)), (SET, Source::Variable, true), "{version}");
        }
    }

    #[test]
    fn an_unknown_version_uses_the_nearest_known_release() {
        for version in
            ["stable-2.99.0", "edge-26.8.4", "edge-27.12.1", "version-2.21", "stable-3.0"]
        {
            let newest = (Release::NEWEST, Source::Newest, false);
            assert_eq!(chosen(version, None), newest, "{version}");
        }
        for version in ["stable-2.13.0", "edge-23.9.1", "my-fork-1", "dev-undefined", ""] {
            assert_eq!(chosen(version, None), (MARKED, Source::Markers, false), "{version}");
            let unmarked = ReleaseChoice::new(version, None, || None);
            assert_eq!(unmarked.release, Release::stable_2_14(), "{version}");
            assert_eq!(unmarked.source, Source::Oldest, "{version}");
        }
    }

    #[test]
    fn the_problem_names_the_key_the_version_and_the_known_range() {
        for (version, problem) in [
            ("", "linkerdVersion is missing"),
            ("my-fork-1", "linkerdVersion \"my-fork-1\" is not a Linkerd release"),
            (
                "edge-27.1.1",
                "linkerdVersion \"edge-27.1.1\" is newer than edge-26.8.3, the newest known release",
            ),
            (
                "stable-2.13.0",
                "linkerdVersion \"stable-2.13.0\" is older than stable-2.14, the oldest known release",
            ),
        ] {
            let choice = ReleaseChoice::new(version, None, || None);
            assert_eq!(choice.unknown().map(ToString::to_string).as_deref(), Some(problem));
        }
    }

    #[test]
    fn only_the_edge_that_was_reverted_is_one_to_leave() {
        for (version, is_named) in
            [("edge-25.10.1", false), ("edge-25.10.2", true), ("edge-25.10.3", false)]
        {
            let choice = ReleaseChoice::new(version, None, || None);
            assert_eq!(choice.advice().is_some(), is_named, "{version}");
        }
    }

    #[test]
    fn a_version_is_cut_to_64_bytes() {
        let choice = ReleaseChoice::new(&"ü".repeat(100), None, || None);
        assert_eq!(choice.version, "ü".repeat(32));
        let long = format!("edge-26.6.3{}", "x".repeat(100));
        assert_eq!(ReleaseChoice::new(&long, None, || None).source, Source::Oldest);
        assert_eq!(ReleaseChoice::new(&long, None, || None).version.len(), 64);
    }
}
