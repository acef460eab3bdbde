//! Cuts the contents of `managedFields` out of a body before it is decoded.
//!
//! The bytes `"managedFields":[` cannot stand inside a JSON string, where the quotes would be
//! escaped: in valid JSON a hit is always the key. Only our view is cut, not anybody's object.

use memchr::memmem;

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
///
/// Byte by byte: strings and brackets are so close together here that searching costs more.
fn list_length(text: &[u8]) -> Option<usize> {
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
