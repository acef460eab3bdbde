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
pub(super) fn plain_bytes(text: &[u8]) -> usize {
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
mod tests;
