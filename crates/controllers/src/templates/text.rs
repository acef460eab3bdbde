//! Texts of conditions: bounded, on one line. What they quote may be of any origin.

use std::fmt::Write as _;

/// Maximum number of bytes of a message. The schema has room for more, and `kubectl describe` has not.
pub(super) const MAX_MESSAGE: usize = 4 << 10;
/// What stands for a part that is left out.
const CUT: &str = " …";

/// A text without control characters, cut to a number of bytes.
pub(super) fn plain(text: &str, most: usize) -> String {
    let plain: String =
        text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    if plain.len() <= most {
        return plain;
    }
    let end = plain.floor_char_boundary(most.saturating_sub(CUT.len()));
    format!("{}{CUT}", &plain[..end])
}

/// Texts in one message: as many as have room, and the number of the others.
pub(super) fn listed(texts: &[String]) -> String {
    let mut message = String::new();
    for (index, text) in texts.iter().enumerate() {
        let text = plain(text, MAX_MESSAGE / 2);
        if index > 0 && message.len() + text.len() > MAX_MESSAGE / 2 {
            // A text has room.
            let _ = write!(message, "; and {} more", texts.len() - index);
            break;
        }
        if index > 0 {
            message.push_str("; ");
        }
        message.push_str(&text);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_bounded_and_has_no_control_characters() {
        assert_eq!(plain("a\nb\u{1b}[31m", 100), "a b [31m");
        assert_eq!(plain(&"é".repeat(10), 11), "ééé …");
        let long = vec!["é".repeat(MAX_MESSAGE); 3];
        assert!(listed(&long).len() <= MAX_MESSAGE);
        assert_eq!(listed(&["a".to_owned(), "b".to_owned()]), "a; b");
        assert!(listed(&vec!["word".repeat(100); 100]).ends_with(" more"));
    }
}
