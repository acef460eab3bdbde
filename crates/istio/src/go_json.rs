//! JSON as Go's `encoding/json` writes it.

use serde::Serialize;

/// Compact JSON with `<`, `>`, `&`, U+2028 and U+2029 escaped. Keys keep their order.
///
/// Go: `json.Marshal`.
///
/// # Panics
/// Never: any value can be serialised into memory.
pub(crate) fn go_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("a value must serialise into memory");
    // Go escapes them for HTML in all its JSON, which templates compare and write as text.
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    // These letters occur in strings only.
    let mut escaped = String::with_capacity(text.len() + 32);
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            letter => escaped.push(letter),
        }
    }
    escaped
}
