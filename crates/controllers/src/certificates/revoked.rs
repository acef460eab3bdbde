//! The CAs that an administrator revoked, and those that went with them, in the Secret.
//!
//! Their fingerprints stay there: a CA that is revoked is not used again, whatever Secret, `caBundle`
//! or replica still has it.

use std::collections::BTreeSet;

use super::authority::Certificate;

/// The key of the Secret: a SHA-256 fingerprint of a CA in each line, in hexadecimal, as `openssl x509
/// -fingerprint -sha256` prints it or without its colons.
pub(super) const KEY: &str = "revoked";
/// Hexadecimal digits of a fingerprint.
const DIGITS: usize = 64;

/// Fingerprints of CAs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Revoked {
    fingerprints: BTreeSet<String>,
    /// The first line that is no fingerprint, from 1.
    wrong_line: Option<usize>,
}

impl Revoked {
    pub(super) fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut found = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            match fingerprint(text) {
                Some(fingerprint) => drop(found.fingerprints.insert(fingerprint)),
                None if text.trim().is_empty() => {}
                None => drop(found.wrong_line.get_or_insert(line)),
            }
        }
        found
    }

    pub(super) fn has(&self, ca: &Certificate) -> bool {
        !self.fingerprints.is_empty() && self.fingerprints.contains(&ca.fingerprint())
    }

    /// Adds those of another state. Returns whether there are new ones.
    pub(super) fn add(&mut self, other: &Self) -> bool {
        let before = self.fingerprints.len();
        self.fingerprints.extend(other.fingerprints.iter().cloned());
        self.fingerprints.len() > before
    }

    /// Adds CAs.
    pub(super) fn revoke<'a>(&mut self, cas: impl IntoIterator<Item = &'a Certificate>) {
        self.fingerprints.extend(cas.into_iter().map(Certificate::fingerprint));
    }

    /// What is wrong with the text, if anything is.
    pub(super) fn problem(&self) -> Option<String> {
        let line = self.wrong_line?;
        Some(format!("line {line} is no SHA-256 fingerprint: expected {DIGITS} hexadecimal digits"))
    }

    /// A text with all fingerprints, those of an earlier text first and as they are.
    pub(super) fn text(&self, earlier: &[u8]) -> String {
        let known = Self::parse(earlier);
        let mut text = String::from_utf8_lossy(earlier).into_owned();
        for fingerprint in self.fingerprints.difference(&known.fingerprints) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.extend([fingerprint, "\n"]);
        }
        text
    }
}

/// The fingerprint of a line, such as `sha256 Fingerprint=AB:CD…`.
fn fingerprint(line: &str) -> Option<String> {
    let value = line.rsplit('=').next().unwrap_or(line);
    let is_separator = |letter: char| letter == ':' || letter.is_whitespace();
    let digits: String = value.chars().filter(|letter| !is_separator(*letter)).collect();
    let is_valid =
        digits.len() == DIGITS && digits.chars().all(|letter| letter.is_ascii_hexdigit());
    is_valid.then(|| digits.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::authority::Ca, *};

    #[test]
    fn fingerprints_are_read_as_openssl_prints_them() {
        let ca = Ca::make(1_800_000_000, Duration::from_hours(1)).expect("a CA").certificate;
        let plain = ca.fingerprint();
        let bytes: Vec<_> = plain.as_bytes().chunks(2).map(String::from_utf8_lossy).collect();
        let openssl = format!("sha256 Fingerprint={}\n", bytes.join(":").to_uppercase());
        for text in [plain.clone(), format!("\n  {plain} \n"), openssl] {
            let revoked = Revoked::parse(text.as_bytes());
            assert!(revoked.has(&ca) && revoked.problem().is_none(), "{text}");
        }
        let wrong = Revoked::parse(format!("{plain}\n{}", &plain[1..]).as_bytes());
        assert!(wrong.has(&ca));
        assert!(wrong.problem().is_some_and(|problem| problem.starts_with("line 2 is no SHA-256")));
    }

    #[test]
    fn a_text_keeps_what_is_there() {
        let [one, other] = ["a", "b"].map(|digit| digit.repeat(DIGITS));
        let revoked = Revoked::parse(format!("{one}\n{other}").as_bytes());
        let upper = one.to_uppercase();
        assert_eq!(revoked.text(upper.as_bytes()), format!("{upper}\n{other}\n"));
        assert_eq!(revoked.text(b""), format!("{one}\n{other}\n"));
    }
}
