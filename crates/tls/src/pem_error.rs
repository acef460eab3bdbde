//! What is wrong with a text of PEM, in words: the reader's own error prints its lines as numbers.

use std::fmt;

use rustls::pki_types::pem;

/// The most characters of a line that are shown.
// A line of PEM has 64 characters (RFC 7468).
const SHOWN_CHARS: usize = 64;

/// Why a text of PEM cannot be read. It has no source, which would print the numbers.
#[derive(Debug)]
pub struct PemError(pem::Error);

impl From<pem::Error> for PemError {
    fn from(error: pem::Error) -> Self {
        Self(error)
    }
}

impl std::error::Error for PemError {}

impl fmt::Display for PemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            pem::Error::MissingSectionEnd { end_marker } => {
                write!(f, "the section {} has no end", shown(end_marker))
            }
            pem::Error::IllegalSectionStart { line } => {
                write!(f, "a section begins with the invalid line {}", shown(line))
            }
            other => write!(f, "{other}"),
        }
    }
}

/// The beginning of a line, quoted.
fn shown(line: &[u8]) -> String {
    let line: String = String::from_utf8_lossy(line).trim_end().chars().take(SHOWN_CHARS).collect();
    format!("{line:?}")
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};

    use super::*;

    #[test]
    fn lines_of_a_problem_are_text() {
        for (text, expected) in [
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", r#"the section "CERTIFICATE" has no end"#),
            ("-----BEGIN CERTIFICATE--\nAAAA\n", r#"line "-----BEGIN CERTIFICATE--""#),
        ] {
            let found = CertificateDer::pem_slice_iter(text.as_bytes()).next();
            let error = found.expect("an item").expect_err("must be rejected");
            let shown = PemError::from(error).to_string();
            assert!(shown.ends_with(expected), "{shown}");
        }
    }
}
