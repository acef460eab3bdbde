//! Texts and bytes between quotes.

use super::Kind;

/// How a text is written.
#[derive(Debug, Clone, Copy)]
struct Form<'q> {
    quote: &'q str,
    is_raw: bool,
    is_bytes: bool,
}

/// The text at the beginning, with its length; `None` if there is none.
pub(super) fn read(rest: &str) -> Option<Result<(Kind, usize), String>> {
    let (prefix, after) = prefix(rest)?;
    let is_bytes = prefix.starts_with(['b', 'B']);
    let is_raw = prefix.ends_with(['r', 'R']);
    let mark = &after[..1];
    let triple =
        &after[..if after.starts_with("\"\"\"") || after.starts_with("'''") { 3 } else { 1 }];
    // Without an end of three quotes, two of them are an empty text.
    for quote in [triple, mark] {
        let form = Form { quote, is_raw, is_bytes };
        if let Some(end) = end(&after[quote.len()..], form) {
            let inner = &after[quote.len()..quote.len() + end];
            let length = prefix.len() + 2 * quote.len() + end;
            return Some(unescape(inner, form).map(|kind| (kind, length)));
        }
    }
    Some(Err("a text does not end, or has an escape that is not valid".to_owned()))
}

/// The letters before a quote, and the rest from the quote.
fn prefix(rest: &str) -> Option<(&str, &str)> {
    let at = rest.bytes().take(3).position(|byte| matches!(byte, b'"' | b'\''))?;
    let (prefix, after) = rest.split_at_checked(at)?;
    let is_prefix = match prefix.as_bytes() {
        [] | [b'r' | b'R' | b'b' | b'B'] => true,
        [first, second] => matches!((first, second), (b'b' | b'B', b'r' | b'R')),
        _ => false,
    };
    is_prefix.then_some((prefix, after))
}

/// Where the text ends.
fn end(text: &str, form: Form<'_>) -> Option<usize> {
    let is_line = form.quote.len() == 1;
    let mut at = 0;
    loop {
        let rest = &text[at..];
        if rest.starts_with(form.quote) {
            return Some(at);
        }
        let next = rest.chars().next()?;
        at += match next {
            '\n' | '\r' if is_line => return None,
            '\\' if !form.is_raw => escape(rest)?,
            _ => next.len_utf8(),
        };
    }
}

/// The length of an escape; `None` if it is not valid.
fn escape(rest: &str) -> Option<usize> {
    let digits = |from: usize, length: usize| {
        let digits = rest.get(from..from + length)?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(from + length)
    };
    match rest.as_bytes().get(1)? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => {
            Some(2)
        }
        b'x' | b'X' => digits(2, 2),
        b'u' => digits(2, 4),
        b'U' => digits(2, 8),
        b'0'..=b'3' => {
            let octal = rest.as_bytes().get(2..4)?;
            octal.iter().all(|digit| (b'0'..=b'7').contains(digit)).then_some(4)
        }
        _ => None,
    }
}

fn unescape(inner: &str, form: Form<'_>) -> Result<Kind, String> {
    // As cel-go reads source lines.
    let inner = inner.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = &*inner;
    while let Some(next) = rest.chars().next() {
        let length = if next == '\\' && !form.is_raw {
            let length = escape(rest).ok_or("an escape is not valid")?;
            write(&rest[..length], form.is_bytes, &mut out)?;
            length
        } else {
            let length = next.len_utf8();
            out.extend_from_slice(&rest.as_bytes()[..length]);
            length
        };
        rest = &rest[length..];
    }
    if form.is_bytes {
        return Ok(Kind::Bytes(out.into()));
    }
    let text = String::from_utf8(out).map_err(|_| "a text is not UTF-8")?;
    Ok(Kind::Text(text.into()))
}

/// Writes what an escape stands for.
fn write(escape: &str, is_bytes: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).unwrap_or(u32::MAX);
    let code = match escape.as_bytes()[1] {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'v' => 11,
        b'u' | b'U' if is_bytes => return Err("bytes have no escapes of code points".to_owned()),
        b'u' | b'U' | b'x' | b'X' => number(&escape[2..], 16),
        b'0'..=b'3' => number(&escape[1..], 8),
        other => u32::from(other),
    };
    match (is_bytes, u8::try_from(code), char::from_u32(code)) {
        (true, Ok(byte), _) => out.push(byte),
        (false, _, Some(character)) => {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        _ => return Err("an escape is not a code point".to_owned()),
    }
    Ok(())
}
