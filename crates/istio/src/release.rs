//! The release of Istio whose rules apply.

use std::fmt;

/// A release: 1.N.P.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    minor: u16,
    patch: u16,
}

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

    /// Whether a change is in this release that came with the last releases of several minors:
    /// `since(&[(23, 6), (24, 4), (25, 1)])` for 1.23.6, 1.24.4, 1.25.1 and all later minors.
    #[must_use]
    pub fn since(self, first: &[(u16, u16)]) -> bool {
        let same = first.iter().find(|(minor, _)| *minor == self.minor);
        let newest = first.iter().map(|(minor, _)| *minor).max().unwrap_or(0);
        same.map_or(self.minor > newest, |(_, patch)| self.patch >= *patch)
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
            assert_eq!(Release::new(release.0, release.1).since(&first), expected, "{release:?}");
        }
    }
}
