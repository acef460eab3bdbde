//! How long a certificate lives, and when it should have been renewed: one measure for CAs and served
//! certificates.

use jiff::{Timestamp, tz::TimeZone};
use rustls::pki_types::CertificateDer;
use x509_parser::parse_x509_certificate;

/// A certificate is overdue when less than this part of its lifetime remains: whatever renews it should
/// have done so. cert-manager and injectd renew when a third remains.
const OVERDUE_PART: i64 = 10;
/// Seconds before the end after which each certificate is overdue, so that a CA of ten years is not
/// overdue for one of them: 30 days are enough to renew it by hand.
const MAX_OVERDUE: i64 = 30 * 86_400;

/// The lifetime of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lifetime {
    /// The subject, such as `CN=ca`; empty if it has none.
    subject: String,
    /// Seconds since 1970.
    begins: i64,
    ends: i64,
}

impl Lifetime {
    /// That of a certificate; `None` if it cannot be read.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = parse_x509_certificate(certificate).ok()?;
        let validity = parsed.validity();
        Some(Self {
            subject: parsed.subject().to_string(),
            begins: validity.not_before.timestamp(),
            ends: validity.not_after.timestamp(),
        })
    }

    /// When it ends, in seconds since 1970.
    pub(super) fn ends(&self) -> i64 {
        self.ends
    }

    /// What is wrong with it now, in seconds since 1970, behind the words for it and its subject.
    pub(super) fn problem(&self, words: &str, now: i64) -> Option<String> {
        let subject = match &*self.subject {
            "" => String::new(),
            subject => format!(" {subject}"),
        };
        let remaining = self.ends - now;
        let overdue = ((self.ends - self.begins) / OVERDUE_PART).min(MAX_OVERDUE);
        let when = if remaining <= 0 {
            format!("expired on {}", date(self.ends))
        } else if self.begins > now {
            format!("is not valid before {}", date(self.begins))
        } else if remaining <= overdue {
            let span = span(remaining);
            format!("expires in {span}, on {}, and was not renewed", date(self.ends))
        } else {
            return None;
        };
        Some(format!("{words}{subject} {when}"))
    }
}

/// The day in UTC.
fn date(seconds: i64) -> String {
    let time = Timestamp::from_second(seconds);
    time.map_or_else(
        |_| seconds.to_string(),
        |time| time.to_zoned(TimeZone::UTC).date().to_string(),
    )
}

/// Seconds for people.
fn span(seconds: i64) -> String {
    match seconds {
        ..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;
    const YEAR: i64 = 365 * DAY;

    fn problem(lives: i64, remaining: i64) -> Option<String> {
        let ends = 1_780_531_200;
        let lifetime = Lifetime { subject: "CN=ca".to_owned(), begins: ends - lives, ends };
        lifetime.problem("its last CA", ends - remaining)
    }

    #[test]
    fn a_certificate_is_overdue_by_its_own_lifetime() {
        for (lives, remaining, is_named) in [
            (2 * DAY, 2 * DAY, false),
            (2 * DAY, 5 * 3600, false),
            (2 * DAY, 4 * 3600, true),
            (120, 100, false),
            (120, 11, true),
            (90 * DAY, 10 * DAY, false),
            (90 * DAY, 8 * DAY, true),
            (10 * YEAR, 31 * DAY, false),
            (10 * YEAR, 29 * DAY, true),
            (YEAR, 0, true),
            (YEAR, -DAY, true),
            (YEAR, YEAR + DAY, true),
        ] {
            let found = problem(lives, remaining);
            assert_eq!(found.is_some(), is_named, "{lives} {remaining}: {found:?}");
        }
    }

    #[test]
    fn the_subject_and_the_date_are_named() {
        for (remaining, text) in [
            (-1, "its last CA CN=ca expired on 2026-06-04"),
            (3600, "its last CA CN=ca expires in 60 min, on 2026-06-04, and was not renewed"),
            (YEAR + 1, "its last CA CN=ca is not valid before 2025-06-04"),
        ] {
            assert_eq!(problem(YEAR, remaining).as_deref(), Some(text));
        }
    }
}
