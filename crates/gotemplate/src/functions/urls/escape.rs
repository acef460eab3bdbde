//! Percent signs.

use crate::quote::quote;

/// A part of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Fragment,
    Host,
    Path,
    User,
    Zone,
}

/// Whether a byte is written as a percent sign and digits.
fn is_escaped(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return false;
    }
    let in_host = matches!(part, Part::Host | Part::Zone);
    match byte {
        b'!' | b'(' | b')' | b'*' => !in_host && part != Part::Fragment,
        b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => !in_host,
        b'$' | b'&' | b'+' | b',' | b';' | b'=' => false,
        b':' => part == Part::User,
        b'/' | b'@' => in_host || part == Part::User,
        b'?' => part != Part::Fragment,
        _ => true,
    }
}

/// Go: `escape`.
pub(super) fn escape(text: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if is_escaped(*byte, part) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
    out
}

/// Go: `unescape`.
pub(super) fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let in_host = matches!(part, Part::Host | Part::Zone);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'%' {
            if in_host && text[at].is_ascii() && is_escaped(text[at], part) {
                let shown = quote(&text[at..=at], false);
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(text[at]);
            at += 1;
            continue;
        }
        let shown = &text[at..text.len().min(at + 3)];
        let digits = shown.get(1..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let plain = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = plain.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let wrong = match byte {
            None => true,
            Some(_) if shown == b"%25" => false,
            Some(byte) if part == Part::Host => byte < 0x80,
            Some(byte) if part == Part::Zone => byte != b' ' && is_escaped(byte, Part::Host),
            Some(_) => false,
        };
        if wrong {
            return Err(format!("invalid URL escape {}", quote(shown, false)));
        }
        out.extend(byte);
        at += 3;
    }
    Ok(out)
}
