//! Escapers of `html`, `js` and `urlquery`.

use injectd_gocompat::text::is_print;

use crate::runes::decode;

/// Go: `template.HTMLEscape`.
pub(super) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(*byte),
        }
    }
    out
}

/// Go: `template.JSEscape`.
pub(super) fn js(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let (char, width) = decode(&text[at..]);
        match (char, text[at]) {
            (_, byte @ (b'\\' | b'\'' | b'"')) => out.extend([b'\\', byte]),
            (_, byte @ (b'<' | b'>' | b'&' | b'=' | 0..=0x1f)) => {
                out.extend_from_slice(format!("\\u{byte:04X}").as_bytes());
            }
            (Some(char), _) if !char.is_ascii() && !is_print(char) => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(char)).as_bytes());
            }
            _ => out.extend_from_slice(&text[at..at + width]),
        }
        at += width;
    }
    out
}

/// Go: `url.QueryEscape`.
pub(super) fn url_query(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' => out.push(b'+'),
            byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) => out.push(*byte),
            byte => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}
