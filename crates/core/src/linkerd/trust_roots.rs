//! The trust roots: the bundle of certificates that proxies trust
//! (`docs/spec/linkerd/template.md` §2.2.3).

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// A placeholder for trust roots: no CA key exists for it.
pub const EXAMPLE_TRUST_ROOTS: &[u8] = include_bytes!("example-root.crt");

/// A bundle of trust roots, as the patch needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRoots {
    /// The PEM text: trimmed, with one newline at its end.
    pub anchors: String,
    /// SHA-256 of the bytes as they were read, in lower-case hex.
    pub sha256: String,
    is_missing: bool,
}

impl TrustRoots {
    /// Prepares the bytes of a bundle.
    #[must_use]
    pub fn new(bundle: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bundle).replace("\r\n", "\n");
        let anchors = match text.trim() {
            "" => String::new(),
            anchors => format!("{anchors}\n"),
        };
        let sha256 = Sha256::digest(bundle).iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string must succeed");
            hex
        });
        Self { anchors, sha256, is_missing: bundle.is_empty() }
    }

    /// Whether the bundle is empty: no pod can be injected.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.is_missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_trimmed_and_the_hash_is_of_the_bytes() {
        let roots = TrustRoots::new(b"\n a\r\n\r\nb \r\n");
        assert_eq!(roots.anchors, "a\n\nb\n");
        assert_ne!(roots.sha256, TrustRoots::new(b"a\n\nb\n").sha256);
    }

    #[test]
    fn a_blank_bundle_is_not_a_missing_one() {
        assert!(TrustRoots::new(b"").is_missing());
        assert!(!TrustRoots::new(b" \n").is_missing());
        assert_eq!(TrustRoots::new(b" \n").anchors, "");
    }
}
