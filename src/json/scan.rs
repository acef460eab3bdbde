//! Finding where strings, scalars, lists and objects end, many bytes at a time.
//!
//! Not for checking: what is passed over is looked at for quotes and brackets alone.

use memchr::memchr2;
use wide::u8x16;

const BLOCK: usize = 64;
const LANE: usize = 16;
const LAST_CONTROL: u8 = b' ' - 1;

/// Index of the closing quote of a string whose opening quote is just before `begin`, if the string
/// stands for itself and a lane's length of text is left wherever it is looked at.
#[expect(clippy::inline_always, reason = "runs for each of the two hundred strings of a review")]
#[inline(always)]
pub(super) fn plain_string_end(text: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin;
    loop {
        let marks = string_marks(text.get(at..)?.first_chunk::<LANE>()?);
        if marks != 0 {
            let end = at + marks.trailing_zeros() as usize;
            return (*text.get(end)? == b'"').then_some(end);
        }
        at += LANE;
    }
}

/// Index of the closing quote of any string whose opening quote is just before `at`.
#[cold]
pub(super) fn string_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += plain_bytes(text.get(at..)?);
        match *text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Whether a text can stand in a string as it is.
pub(super) fn is_plain(text: &[u8]) -> bool {
    let (plain, rest) = text.split_at(plain_bytes(text));
    plain.len() + LANE > text.len()
        && rest.iter().all(|&byte| byte > LAST_CONTROL && byte != b'"' && byte != b'\\')
}

/// Length of the number, the boolean or the `null` at the beginning of a text. Any control character
/// ends it.
pub(super) fn scalar_len(text: &[u8]) -> usize {
    if let Some(lane) = text.first_chunk::<LANE>() {
        let lane = u8x16::new(*lane);
        // Folds ] into }.
        let is_blank = is(lane.max(u8x16::splat(b' ')), b' ');
        let is_bracket = is(lane | u8x16::splat(b'{' ^ b'['), b'}');
        let ends = is_blank | is_bracket | is(lane, b',') | is(lane, b':');
        let marks = ends.to_bitmask();
        if marks != 0 {
            return marks.trailing_zeros() as usize;
        }
    }
    let is_end = |&byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | ..=b' ');
    text.iter().position(is_end).unwrap_or(text.len())
}

/// Bytes up to the next that means something in a string, or up to the last few of the text.
fn plain_bytes(text: &[u8]) -> usize {
    let (lanes, _) = text.as_chunks::<LANE>();
    for (index, lane) in lanes.iter().enumerate() {
        let marks = string_marks(lane);
        if marks != 0 {
            return index * LANE + marks.trailing_zeros() as usize;
        }
    }
    lanes.len() * LANE
}

/// The bytes of a lane that mean something in a string, a bit for each.
#[inline]
fn string_marks(lane: &[u8; LANE]) -> u32 {
    let lane = u8x16::new(*lane);
    let is_control = is(lane.max(u8x16::splat(LAST_CONTROL)), LAST_CONTROL);
    (is(lane, b'"') | is(lane, b'\\') | is_control).to_bitmask()
}

/// All bits are set in the bytes of a lane that are `byte`.
fn is(lane: u8x16, byte: u8) -> u8x16 {
    lane.simd_eq(u8x16::splat(byte))
}

/// Index of the bracket that closes an object or a list that is open at `at`.
pub(super) fn container_end(text: &[u8], at: usize) -> Option<usize> {
    let mut nesting = Nesting { depth: 1, ..Nesting::default() };
    nesting.end_in(text.get(at..)?).map(|end| at + end)
}

/// Index of the bracket that closes a list that is open at `at`.
pub(super) fn list_end(text: &[u8], at: usize) -> Option<usize> {
    flat_list_end(text, at).or_else(|| container_end(text, at))
}

/// The end of a list without lists in it, where what follows proves it: `managedFields` above all,
/// a third of a review, and most of what else is skipped.
///
/// The first square bracket of all either closes the list or stands in a string. Behind one in a
/// string, the quote of `],"` or `]},"` would end that string; only where the quote begins one can
/// a letter follow.
fn flat_list_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let end = memchr2(b'[', b']', rest)?;
    let ([b']', b'}', behind @ ..] | [b']', behind @ ..]) = rest.get(end..)? else {
        return None;
    };
    matches!(behind, [b',', b'"', b'a'..=b'z' | b'A'..=b'Z', ..]).then_some(at + end)
}

/// How deep in brackets a text has come that is looked at piece by piece.
#[derive(Debug, Default)]
pub struct Nesting {
    depth: usize,
    /// All bits are set in a string.
    in_string: u64,
    /// 1 after a backslash that counts.
    is_escaped: u64,
}

/// The bytes of a block that count, a bit for each.
#[derive(Default)]
struct Marks {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut marks = Self::default();
        let (lanes, _) = block.as_chunks::<LANE>();
        for (index, lane) in lanes.iter().enumerate() {
            let lane = u8x16::new(*lane);
            // Folds [ into { and ] into }.
            let folded = lane | u8x16::splat(b'{' ^ b'[');
            let at = |found: u8x16| u64::from(found.to_bitmask()) << (index * LANE);
            marks.quotes |= at(is(lane, b'"'));
            marks.backslashes |= at(is(lane, b'\\'));
            marks.opening |= at(is(folded, b'{'));
            marks.closing |= at(is(folded, b'}'));
        }
        marks
    }
}

impl Nesting {
    /// Where in the next piece of text the outermost bracket closes, or one too many. A piece ends
    /// with a line: no escape reaches into the next.
    pub fn end_in(&mut self, text: &[u8]) -> Option<usize> {
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        for (index, block) in blocks.iter().enumerate() {
            if let Some(end) = self.end_in_block(block) {
                return Some(index * BLOCK + end);
            }
        }
        let mut last = [b' '; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        self.end_in_block(&last).map(|end| blocks.len() * BLOCK + end)
    }

    /// Whether a bracket is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn end_in_block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let marks = Marks::of(block);
        let quotes = marks.quotes & !self.escaped(marks.backslashes);
        let strings = between(quotes) ^ self.in_string;
        self.in_string = 0_u64.wrapping_sub(strings >> (BLOCK - 1));
        let (opening, closing) = (marks.opening & !strings, marks.closing & !strings);
        // What is empty ends where it begins, and there is much of it.
        let empty = if self.depth == 0 { 0 } else { opening & (closing >> 1) };
        let (opening, closing) = (opening & !empty, closing & !(empty << 1));
        if closing.count_ones() as usize >= self.depth {
            let mut rest = closing;
            for closed in 1.. {
                if rest == 0 {
                    break;
                }
                let at = rest.trailing_zeros();
                let opened = opening & ((1 << at) - 1);
                if self.depth + opened.count_ones() as usize <= closed {
                    return Some(at as usize);
                }
                rest &= rest - 1;
            }
        }
        self.depth += opening.count_ones() as usize;
        self.depth -= closing.count_ones() as usize;
        None
    }

    /// The bytes behind backslashes that are not escaped themselves.
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let mut escaped = std::mem::take(&mut self.is_escaped);
        let mut rest = backslashes & !escaped;
        while rest != 0 {
            let at = rest.trailing_zeros();
            escaped |= 2 << at;
            self.is_escaped = u64::from(at == 63);
            rest &= !(3 << at);
        }
        escaped
    }
}

/// Sets the bits from each odd quote up to the next even one.
fn between(quotes: u64) -> u64 {
    (0..6).fold(quotes, |bits, step| bits ^ (bits << (1 << step)))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec as list, prelude::*, sample::select};

    use super::*;

    /// Byte for byte, as slow as obvious.
    fn container_end_slowly(text: &[u8], begin: usize) -> Option<usize> {
        let mut depth = 1;
        let mut in_string = false;
        let mut at = begin;
        while at < text.len() {
            match text[at] {
                b'\\' if in_string => at += 1,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// Wherever a block ends in it.
    fn at_every_offset(text: &str, check: impl Fn(&[u8], usize)) {
        for length in 0..2 * BLOCK {
            let padded = format!("{}{text}", "x".repeat(length));
            check(padded.as_bytes(), length);
        }
    }

    #[test]
    fn a_container_ends_where_its_bracket_closes() {
        for text in [
            r#"],"next":]"#,
            r#""a":{"b":[{},[]],"]":"}"}},"next":1}"#,
            r#""\"]\\","\\\"}",""],[""#,
            r#"{"f:spec":{"k:{\"name\":\"c\"}":{".":{},"f:x\\":{}}}},{"a":"\\\\\""}]]"#,
            r#""a much longer string, longer than a block of sixty-four bytes: ]}]}]}]}"]"#,
        ] {
            let end = container_end_slowly(text.as_bytes(), 0).expect("an end");
            at_every_offset(text, |bytes, at| {
                assert_eq!(container_end(bytes, at), Some(at + end), "{text} at {at}");
            });
        }
    }

    #[test]
    fn what_is_not_closed_has_no_end() {
        for text in ["", "[", "{}", r#""]"#, r#""\"]"#, r#"["a","b\"#, r#"{"a":[}"#] {
            at_every_offset(text, |bytes, at| {
                assert_eq!(container_end(bytes, at), None, "{text}");
                assert_eq!(list_end(bytes, at), None, "{text}");
            });
        }
    }

    #[test]
    fn deep_nesting_is_counted() {
        let deep = "[{\"a\":".repeat(5000) + "1" + &"}]".repeat(5000);
        assert_eq!(list_end(deep.as_bytes(), 1), Some(deep.len() - 1));
    }

    #[test]
    fn a_list_ends_where_its_bracket_closes() {
        for text in [
            r#"],"next":1"#,
            r#"]},"next":1"#,
            r#"{"f:name":{},"k:{\"name\":\"c\"}":{".":{}}}]},"spec":{}"#,
            r#""],",","],"next":1"#,
            r#""]},","a"]},"next":1"#,
            r#""]}","a"],"next":1"#,
            r#""],\"a",1],"next":1"#,
            r#"[1],"a"],"next":1"#,
            r#"{"a":[]},"b"],"next":1"#,
            r#""[","a"],"next":1"#,
            r#"1],"":1"#,
            r#"{}]}],"next":1"#,
            r#""]}],","a"]}],"next":1"#,
            r"{}]]",
        ] {
            let end = container_end_slowly(text.as_bytes(), 0).expect("an end");
            at_every_offset(text, |bytes, at| {
                assert_eq!(list_end(bytes, at), Some(at + end), "{text} at {at}");
            });
        }
    }

    proptest! {
        #[test]
        fn anything_ends_where_it_does(items in list(any_json(), 0..8), tail in tail()) {
            let text = format!("[{}]{tail}", items.join(","));
            prop_assert_eq!(list_end(text.as_bytes(), 1), container_end_slowly(text.as_bytes(), 1));
            let members: Vec<_> = items.iter().map(|item| format!("\"a\":{item}")).collect();
            let text = format!("{{{}}}{tail}", members.join(","));
            prop_assert_eq!(container_end(text.as_bytes(), 1), container_end_slowly(text.as_bytes(), 1));
        }
    }

    fn tail() -> impl Strategy<Value = &'static str> {
        select(&["", ",\"a\":1}", "},\"a\":1}", "]", "}}", " ,\"a\":1}"][..])
    }

    /// Much of what ends lists, in strings and outside of them.
    fn any_json() -> impl Strategy<Value = String> {
        let string = || {
            let text = r#"([\[\]{}",:\\ ab]|\],"|\},"|\]\},"|\}\],"){0,6}"#;
            text.prop_map(|text| serde_json::to_string(&text).expect("a string"))
        };
        prop_oneof![Just("null".to_owned()), string()].prop_recursive(4, 32, 4, move |inner| {
            let member =
                (string(), inner.clone()).prop_map(|(key, value)| format!("{key}:{value}"));
            prop_oneof![
                list(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
                list(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))),
            ]
        })
    }

    #[test]
    fn a_list_without_lists_ends_where_that_is_proven() {
        for (text, end) in [
            (r#"{"f:name":{},"k:{\"name\":\"c\"}":{".":{}}}]},"spec":{}"#, Some(43)),
            (r#"1],"next":1"#, Some(1)),
            (r#"1],"":1"#, None),
            (r#"1],"1":1"#, None),
            (r"1],1", None),
            (r#"1]}],"next":1"#, None),
            (r#""],","a"],"next":1"#, None),
            (r#"[1]],"next":1"#, None),
        ] {
            assert_eq!(flat_list_end(text.as_bytes(), 0), end, "{text}");
        }
    }

    #[test]
    fn a_scalar_ends_before_its_delimiter() {
        for scalar in ["", "0", "null", "-12.5e+300", "123456789012345", "1234567890123456[{\""] {
            for delimiter in [",", "}", "]", ":", " ", "\t", "\n", "\r", "\u{1}", ""] {
                for rest in 0..=LANE {
                    let text = format!("{scalar}{delimiter}{}", "x".repeat(rest));
                    let expected = if delimiter.is_empty() { text.len() } else { scalar.len() };
                    assert_eq!(scalar_len(text.as_bytes()), expected, "{text}");
                }
            }
        }
    }

    #[test]
    fn what_was_never_open_is_closed_at_once() {
        assert_eq!(Nesting::default().end_in(b"{}"), Some(1));
        assert_eq!(Nesting::default().end_in(b"]{}"), Some(0));
    }

    #[test]
    fn plain_strings_of_any_length_end_at_their_quote() {
        let after = "x".repeat(LANE);
        for length in 0..=3 * LANE {
            let plain = "x".repeat(length);
            let text = format!("{plain}\"{after}");
            assert_eq!(plain_string_end(text.as_bytes(), 0), Some(length), "{text}");
            let is_whole = (length + 1) % LANE == 0;
            let at_the_end = &text.as_bytes()[..=length];
            assert_eq!(plain_string_end(at_the_end, 0), is_whole.then_some(length), "{text}");
            for odd in ["\\n", "\\\"", "\t", "\\"] {
                let text = format!("{plain}{odd}x\"{after}");
                assert_eq!(plain_string_end(text.as_bytes(), 0), None, "{text}");
            }
            let text = format!("{plain}ü€\"{after}");
            assert_eq!(plain_string_end(text.as_bytes(), 0), Some(length + 5), "{text}");
        }
    }

    #[test]
    fn a_string_ends_at_its_quote() {
        for (text, length, is_plain) in [
            (r#"""#, 0, true),
            (r#"a","b""#, 1, true),
            (r#"a longer string, ends here","b""#, 26, true),
            (r#"\"""#, 2, false),
            (r#"\\","#, 2, false),
            (r#"ein längerer Text über \n""#, 27, false),
            ("a\tb\"", 3, false),
        ] {
            at_every_offset(text, |bytes, at| {
                let end = at + length;
                assert_eq!(string_end(bytes, at), Some(end), "{text} at {at}");
                let padded = [bytes, &[b'"'; LANE]].concat();
                let plain = is_plain.then_some(end);
                assert_eq!(plain_string_end(&padded, at), plain, "{text} at {at}");
            });
        }
        for text in ["", "a", r"a\", r#"\""#, "a string without an end"] {
            at_every_offset(text, |bytes, at| assert_eq!(string_end(bytes, at), None, "{text}"));
        }
    }
}
