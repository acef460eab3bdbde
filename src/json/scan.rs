//! Finding where strings, lists and objects end, many bytes at a time.
//!
//! Not for checking: what is passed over is looked at for quotes and brackets alone.

use wide::u8x16;

const BLOCK: usize = 64;
const LANE: usize = 16;
const LAST_CONTROL: u8 = b' ' - 1;

/// Where a string ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StringEnd {
    /// Index of its closing quote.
    pub(super) at: usize,
    /// Whether it stands for itself: no escapes, and no control characters either.
    pub(super) is_plain: bool,
}

/// The end of a string whose opening quote is just before `at`.
pub(super) fn string_end(text: &[u8], mut at: usize) -> Option<StringEnd> {
    let mut is_plain = true;
    loop {
        at += plain_bytes(text.get(at..)?);
        match *text.get(at)? {
            b'"' => return Some(StringEnd { at, is_plain }),
            b'\\' => {
                is_plain = false;
                at += 2;
            }
            byte => {
                is_plain &= byte > LAST_CONTROL;
                at += 1;
            }
        }
    }
}

/// Whether a text can stand in a string as it is.
pub(super) fn is_plain(text: &[u8]) -> bool {
    let (plain, rest) = text.split_at(plain_bytes(text));
    plain.len() + LANE > text.len()
        && rest.iter().all(|&byte| byte > LAST_CONTROL && byte != b'"' && byte != b'\\')
}

/// Bytes up to the next that means something in a string, or up to the last few of the text.
fn plain_bytes(text: &[u8]) -> usize {
    let (lanes, _) = text.as_chunks::<LANE>();
    for (index, lane) in lanes.iter().enumerate() {
        let lane = u8x16::new(*lane);
        let is_control = is(lane.max(u8x16::splat(LAST_CONTROL)), LAST_CONTROL);
        let marks = (is(lane, b'"') | is(lane, b'\\') | is_control).to_bitmask();
        if marks != 0 {
            return index * LANE + marks.trailing_zeros() as usize;
        }
    }
    lanes.len() * LANE
}

/// All bits are set in the bytes of a lane that are `byte`.
fn is(lane: u8x16, byte: u8) -> u8x16 {
    lane.simd_eq(u8x16::splat(byte))
}

/// Index of the bracket that closes a list or an object whose opening bracket is just before `at`.
pub(super) fn container_end(text: &[u8], at: usize) -> Option<usize> {
    let mut nesting = Nesting { depth: 1, ..Nesting::default() };
    nesting.end_in(text.get(at..)?).map(|end| at + end)
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
            at_every_offset(text, |bytes, at| assert_eq!(container_end(bytes, at), None, "{text}"));
        }
    }

    #[test]
    fn deep_nesting_is_counted() {
        let deep = "[{\"a\":".repeat(5000) + "1" + &"}]".repeat(5000);
        assert_eq!(container_end(deep.as_bytes(), 1), Some(deep.len() - 1));
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
                let end = StringEnd { at: at + length, is_plain };
                assert_eq!(string_end(bytes, at), Some(end), "{text} at {at}");
            });
        }
        for text in ["", "a", r"a\", r#"\""#, "a string without an end"] {
            at_every_offset(text, |bytes, at| assert_eq!(string_end(bytes, at), None, "{text}"));
        }
    }
}
