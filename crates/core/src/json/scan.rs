//! Finds the ends of strings, scalars, lists and objects, many bytes at a time.
//!
//! Not for validation: skipped text is searched only for quotes and brackets.

use memchr::memchr2;
use wide::u8x16;

// Four lanes: one bit for each byte fits into a word.
const BLOCK: usize = 64;
// The registers that every processor of x86-64 and arm64 has.
const LANE: usize = 16;
// Lanes of a short list, which a call of `memchr2` takes longer for.
const FEW_LANES: usize = 8;
// JSON allows no control characters in strings.
const LAST_CONTROL: u8 = b' ' - 1;

/// Index of the closing quote of a string whose opening quote is just before `begin`, if the string
/// has no escapes and every lane that is read ends within the text.
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

/// Length of the string that a text begins with, if it has no escapes and ends within a lane.
#[expect(clippy::inline_always, reason = "runs for each of the hundred keys of a review")]
#[inline(always)]
pub(super) fn short_string(text: &[u8]) -> Option<usize> {
    let [b'"', lane @ ..] = text.first_chunk::<{ 1 + LANE }>()? else { return None };
    let marks = string_marks(lane);
    let length = marks.trailing_zeros() as usize;
    (*lane.get(length)? == b'"').then_some(length)
}

/// Index of the closing quote of any string whose opening quote is just before `at`.
#[cold]
pub(super) fn string_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += plain_bytes(text.get(at..)?);
        match *text.get(at)? {
            b'"' => return Some(at),
            // The byte after a backslash may be a quote. The digits of `\u0022` are plain.
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Whether a text can stand in a string as it is.
pub(super) fn is_plain(text: &[u8]) -> bool {
    let (plain, rest) = text.split_at(plain_bytes(text));
    // A special byte in a complete lane ends the count before the last lane.
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

/// Number of bytes before the next special byte of a string, or before the last, incomplete lane.
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

/// The special bytes of a string in a lane, a bit for each.
#[inline]
fn string_marks(lane: &[u8; LANE]) -> u32 {
    let lane = u8x16::new(*lane);
    let is_control = is(lane.max(u8x16::splat(LAST_CONTROL)), LAST_CONTROL);
    (is(lane, b'"') | is(lane, b'\\') | is_control).to_bitmask()
}

/// Sets all bits in those bytes of a lane that equal `byte`.
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

/// The end of a list without nested lists, if the following text proves it: `managedFields`, a
/// third of a review, and most other skipped lists.
///
/// The first square bracket either closes the list or is part of a string. In a string, the quote
/// of `],"` or `]},"` would end that string, and no letter could follow. A letter can follow only a
/// quote that begins a string.
fn flat_list_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let end = square_bracket(rest)?;
    let ([b']', b'}', behind @ ..] | [b']', behind @ ..]) = rest.get(end..)? else {
        return None;
    };
    matches!(behind, [b',', b'"', b'a'..=b'z' | b'A'..=b'Z', ..]).then_some(at + end)
}

/// The first square bracket of a text.
fn square_bracket(text: &[u8]) -> Option<usize> {
    let (lanes, _) = text.as_chunks::<LANE>();
    for (index, lane) in lanes.iter().take(FEW_LANES).enumerate() {
        let lane = u8x16::new(*lane);
        let marks = (is(lane, b'[') | is(lane, b']')).to_bitmask();
        if marks != 0 {
            return Some(index * LANE + marks.trailing_zeros() as usize);
        }
    }
    let begin = lanes.len().min(FEW_LANES) * LANE;
    memchr2(b'[', b']', &text[begin..]).map(|end| begin + end)
}

/// The depth of brackets in a text that is scanned piece by piece.
#[derive(Debug, Default)]
pub struct Nesting {
    depth: usize,
    /// All bits are set inside a string.
    in_string: u64,
    /// 1 after an unescaped backslash.
    is_escaped: u64,
}

/// Quotes, backslashes and brackets of a block, a bit for each byte.
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
    /// Index in the next piece of text at which the outermost bracket closes, or of an unmatched
    /// closing bracket. A piece ends with a line, so that no escape spans two pieces.
    pub fn end_in(&mut self, text: &[u8]) -> Option<usize> {
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        for (index, block) in blocks.iter().enumerate() {
            if let Some(end) = self.end_in_block(block) {
                return Some(index * BLOCK + end);
            }
        }
        // Blanks are neither quotes nor brackets.
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
        // The last bit of this block in all bits of the next: a string goes on there or does not.
        self.in_string = 0_u64.wrapping_sub(strings >> (BLOCK - 1));
        let (opening, closing) = (marks.opening & !strings, marks.closing & !strings);
        // Empty lists and objects are frequent, and do not change the depth.
        let empty = if self.depth == 0 { 0 } else { opening & (closing >> 1) };
        let (opening, closing) = (opening & !empty, closing & !(empty << 1));
        // Processors without an instruction for it take long to count bits.
        if closing == 0 {
            self.depth += opening.count_ones() as usize;
            return None;
        }
        // The usual end of a list or object: a closing bracket, and no opening one before it.
        let before_closing = (closing - 1) & !closing;
        if self.depth == 1 && opening & before_closing == 0 {
            return Some(closing.trailing_zeros() as usize);
        }
        // With fewer closing brackets the outermost one stays open, and their number is enough.
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

    /// The bytes after unescaped backslashes.
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
    // Each step doubles the distance over which quotes are counted: six reach over 64 bits.
    (0..6).fold(quotes, |bits, step| bits ^ (bits << (1 << step)))
}

#[cfg(test)]
mod tests;
