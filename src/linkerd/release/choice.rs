//! The release that is spoken for an installation, what decided it, and why its own version did not.

use super::{Release, Version};

/// Longest part of `linkerdVersion` that is kept, in bytes: it becomes the label of a metric, and
/// the versions of Linkerd's builds are shorter.
const MAX_VERSION_BYTES: usize = 64;

/// The release that is spoken, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseChoice {
    /// The release that is spoken.
    pub release: Release,
    /// `linkerdVersion` as the values have it, cut to 64 bytes; empty if it is missing.
    pub version: String,
    /// What decided.
    pub source: Source,
    problem: Option<Problem>,
}

/// What decided which release is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `linkerdVersion` of the values, which is known.
    Values,
    /// The release that the operator set for values whose own is unknown.
    Variable,
    /// Unknown: the newest key of the values that came with a release.
    Markers,
    /// Unknown, and newer than every known release: the newest of those.
    Newest,
    /// Unknown, and no key tells: the oldest known release.
    Oldest,
}

/// Why `linkerdVersion` does not name a known release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The values have none.
    #[error("linkerdVersion is missing")]
    Missing,
    /// It is not the version of a release.
    #[error("linkerdVersion {0:?} is not a release of Linkerd")]
    Unreadable(String),
    /// This build is too old for it.
    #[error("linkerdVersion {0:?} is newer than {newest}, the newest known release", newest = Release::NEWEST)]
    Newer(String),
    /// It was never supported.
    #[error("linkerdVersion {0:?} is older than {oldest}, the oldest known release", oldest = Release::stable_2_14())]
    Older(String),
}

impl ReleaseChoice {
    /// Chooses by `version`, the `linkerdVersion` of the values, if it is known; else takes
    /// `fallback`; else the newest release for a newer version, or the release that the marker keys
    /// lead to, or the oldest one.
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
    fn the_variable_settles_what_the_version_leaves_unknown() {
        for version in ["stable-2.99.0", "edge-26.8.4", "stable-2.13.0", "my-fork-1", ""] {
            assert_eq!(chosen(version, Some(SET)), (SET, Source::Variable, true), "{version}");
        }
    }

    #[test]
    fn an_unknown_version_is_spoken_as_the_nearest_guess() {
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
    fn the_problem_names_the_key_what_was_found_and_the_known_range() {
        for (version, problem) in [
            ("", "linkerdVersion is missing"),
            ("my-fork-1", "linkerdVersion \"my-fork-1\" is not a release of Linkerd"),
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
    fn a_version_is_kept_up_to_the_length_of_a_label() {
        let choice = ReleaseChoice::new(&"ü".repeat(100), None, || None);
        assert_eq!(choice.version, "ü".repeat(32));
        let long = format!("edge-26.6.3{}", "x".repeat(100));
        assert_eq!(ReleaseChoice::new(&long, None, || None).source, Source::Oldest);
        assert_eq!(ReleaseChoice::new(&long, None, || None).version.len(), 64);
    }
}
