//! Writes the strings of a line, quoted and escaped where necessary.

use std::io::Write as _;

use injectd_core::{json, text::printable_json};

/// Writes a string as logrus does: in quotes unless every character is harmless.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    let is_harmless = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'/' | b'@' | b'^' | b'+')
    };
    if !text.is_empty() && text.bytes().all(is_harmless) {
        out.extend_from_slice(text.as_bytes());
    } else {
        write!(out, "{text:?}").expect("memory must take text");
    }
}

/// Writes a JSON string with an escape for every character that is not printable.
pub(super) fn write_json(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return json::write_string(out, text);
    }
    let mut token = Vec::new();
    json::write_string(&mut token, text);
    let token = str::from_utf8(&token).expect("the token of a text must be text");
    out.extend_from_slice(printable_json(token).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_what_is_not_printable_and_nothing_else() {
        for (text, written) in [
            ("web-1 \"x\" \\", r#""web-1 \"x\" \\""#),
            ("a\tb\nc\u{1b}", r#""a\tb\nc\u001b""#),
            ("ü 中 🚀", r#""ü 中 🚀""#),
            ("\u{7f}\u{9b}[31m", r#""\u007f\u009b[31m""#),
            ("x\u{202e}y\u{2028}", r#""x\u202ey\u2028""#),
            ("\u{e0001}ü", r#""\udb40\udc01ü""#),
            ("", r#""""#),
        ] {
            let mut out = Vec::new();
            write_json(&mut out, text);
            assert_eq!(String::from_utf8_lossy(&out), written);
            assert_eq!(serde_json::from_slice::<String>(&out).expect("JSON"), text);
        }
    }
}
