//! Digests of texts, to compare what was seen with what is seen now. Not for secrets.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Bytes of a digest: enough that two texts never have the same by chance.
const BYTES: usize = 16;

/// A digest of texts in their order, in hexadecimal. `["ab"]` and `["a", "b"]` differ.
#[must_use]
pub fn digest<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut all = Sha256::new();
    for text in texts {
        all.update(text.len().to_be_bytes());
        all.update(text);
    }
    hex(&all.finalize()[..BYTES])
}

/// Bytes in hexadecimal, in lower case.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // A text has room.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_texts_and_of_their_order() {
        let digests = [digest(["ab"]), digest(["a", "b"]), digest(["b", "a"]), digest([])];
        assert!(digests.iter().all(|digest| digest.len() == 2 * BYTES), "{digests:?}");
        for (index, one) in digests.iter().enumerate() {
            assert!(!digests[index + 1..].contains(one));
        }
        assert_eq!(digest(["a", "b"]), digests[1]);
    }
}
