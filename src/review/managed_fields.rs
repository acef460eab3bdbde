//! Cuts the contents of `managedFields` out of a body before it is decoded.
//!
//! The bytes `"managedFields":[` cannot stand inside a JSON string, where the quotes would be
//! escaped: in valid JSON a hit is always the key. Only our view is cut, not anybody's object.

use memchr::{memchr, memchr_iter, memmem};

const KEY: &[u8] = br#""managedFields":["#;

/// Empties every `managedFields` list of `body` in place. A list without an end is left alone.
pub fn cut(body: &mut Vec<u8>) {
    let finder = memmem::Finder::new(KEY);
    let mut read = 0;
    let mut written = 0;
    while let Some(hit) = finder.find(&body[read..]) {
        let start = read + hit + KEY.len();
        let Some(length) = list_length(&body[start..]) else {
            break;
        };
        body.copy_within(read..start, written);
        written += start - read;
        read = start + length;
    }
    if read > 0 {
        body.copy_within(read.., written);
        body.truncate(written + body.len() - read);
    }
}

/// The bytes up to the bracket that closes a list whose opening bracket is just behind.
fn list_length(text: &[u8]) -> Option<usize> {
    let first = memchr(b']', text)?;
    if is_flat(&text[..first]) { Some(first) } else { nested_list_length(text) }
}

/// Whether no list is opened in `text`, and its end is outside of strings.
fn is_flat(text: &[u8]) -> bool {
    if memchr(b'[', text).is_some() {
        return false;
    }
    let mut quotes = memchr_iter(b'"', text).count();
    let mut at = 0;
    while let Some(hit) = text.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        quotes -= usize::from(text.get(at + hit + 1) == Some(&b'"'));
        at += hit + 2;
    }
    quotes.is_multiple_of(2)
}

fn nested_list_length(text: &[u8]) -> Option<usize> {
    let mut depth = 1_usize;
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => at = string_end(text, at + 1)?,
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at),
            b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// Where the closing quote is of a string that begins at `at`.
fn string_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_cut(body: &str) -> String {
        let mut bytes = body.as_bytes().to_vec();
        cut(&mut bytes);
        String::from_utf8(bytes).expect("utf-8")
    }

    #[test]
    fn lists_are_emptied_and_the_rest_stays() {
        assert_eq!(
            after_cut(
                r#"{"a":1,"managedFields":[{"k:{\"x\":[}":["]"]},[]],"b":"\\","managedFields":[1]}"#
            ),
            r#"{"a":1,"managedFields":[],"b":"\\","managedFields":[]}"#
        );
    }

    #[test]
    fn a_bracket_in_a_string_does_not_end_a_list() {
        for list in [r#"[{"k:]":1}]"#, r#"["\"]",{"a\\":"]"}]"#, r#"[{"a":"\"\\"}]"#, r#"[""]"#] {
            let body = format!(r#"{{"managedFields":{list},"z":0}}"#);
            assert_eq!(after_cut(&body), r#"{"managedFields":[],"z":0}"#, "{list}");
        }
    }

    #[test]
    fn text_that_looks_like_the_key_stays() {
        let body = r#"{"a":"\"managedFields\":[1,2]","b":[]}"#;
        assert_eq!(after_cut(body), body);
    }

    #[test]
    fn a_list_without_an_end_stays() {
        for body in
            [r#"{"managedFields":[{"a":"#, r#"{"managedFields":["a\"#, r#"{"managedFields":["#]
        {
            assert_eq!(after_cut(body), body);
        }
    }
}
