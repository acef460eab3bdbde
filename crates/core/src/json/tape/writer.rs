//! Writes the index of a text.

use super::{Entry, Shape, Tape, unescaped};
use crate::json::{
    Parts, escapes,
    parts::{Part, PartId},
    scan,
};

/// Maximum nesting of lists and objects.
// serde_json, which parses a text without a tape, refuses one level more.
const MAX_DEPTH: usize = 127;
/// Maximum length of a number.
// So many digits fit into 64 bits in any case.
const MAX_DIGITS: usize = 18;
/// Bytes of text for each value of a usual object, for the first allocation.
// A list with too little room is copied when it grows, one with too much takes memory for each
// review.
const BYTES_PER_VALUE: usize = 10;
/// The same, if only parts are indexed.
const BYTES_PER_WANTED: usize = 64;

/// Maximum number of values and keys. An index of so many takes 8 MiB, and their evaluation hundreds of
/// megabytes, more than a server has for all of them; a text with more is read without an index.
pub(super) const MAX_VALUES: usize = 1 << 19;
/// The least bytes of text that a value takes, with its comma.
const LEAST_BYTES_PER_VALUE: usize = 2;

/// Indexes parts of the value at a byte of a text, and finds its end.
pub(super) fn written<'a>(
    text: &'a str,
    begin: usize,
    parts: &'a Parts,
) -> Option<(Tape<'a>, usize)> {
    // Places of 32 bits make an entry half as large.
    u32::try_from(text.len()).ok()?;
    let bytes = text.len() - begin;
    let usual = bytes / if parts.are_most() { BYTES_PER_VALUE } else { BYTES_PER_WANTED };
    let mut entries = Vec::with_capacity(usual.min(MAX_VALUES));
    // Only long texts can have more values: shorter ones are read without a comparison for each.
    let end = if bytes / LEAST_BYTES_PER_VALUE < MAX_VALUES {
        Writer::<false> { text, parts, entries: &mut entries }.part(parts.root, begin, 0)
    } else {
        Writer::<true> { text, parts, entries: &mut entries }.part(parts.root, begin, 0)
    }?;
    Some((Tape { text, parts, entries }, end))
}

/// Fails at more than [`MAX_VALUES`] values if `IS_LONG`. Its functions begin at a byte of the text, and
/// return the first one that they have not read.
struct Writer<'w, const IS_LONG: bool> {
    text: &'w str,
    parts: &'w Parts,
    entries: &'w mut Vec<Entry>,
}

/// A byte that is not blank, and its place.
#[derive(Clone, Copy)]
struct Token {
    at: usize,
    byte: u8,
}

/// A string, a number or a word: where it begins, and the byte behind it.
#[derive(Clone, Copy)]
struct Scalar {
    begin: usize,
    end: usize,
    shape: Shape,
}

impl<const IS_LONG: bool> Writer<'_, IS_LONG> {
    /// The parts of a value that are wanted.
    fn part(&mut self, id: PartId, at: usize, depth: usize) -> Option<usize> {
        if id == PartId::WHOLE {
            return self.value(at, depth);
        }
        let Token { at, byte } = self.token(at)?;
        let shape = match byte {
            b'{' => Shape::Object,
            b'[' => Shape::List,
            _ => return self.value(at, depth),
        };
        self.has_room().then_some(())?;
        let parts = self.parts;
        match parts.get(id) {
            Some(part) if shape == Shape::Object => {
                let index = self.open(at, shape, depth)?;
                self.entries[index].part = id;
                let end = self.members(part, at + 1, depth)?;
                self.close(index, end, b'}')
            }
            Some(Part { each: Some(each), .. }) => {
                let index = self.open(at, shape, depth)?;
                self.entries[index].part = id;
                let end = self.items(*each, at + 1, depth)?;
                self.close(index, end, b']')
            }
            _ => {
                let end = self.container_end(at, shape)?;
                self.leaf(Scalar { begin: at, end, shape });
                self.entries.last_mut()?.part = id;
                Some(end)
            }
        }
    }

    /// Whether there may be one more value; its key may be one, too.
    fn has_room(&self) -> bool {
        !IS_LONG || self.entries.len() < MAX_VALUES - 1
    }

    fn value(&mut self, at: usize, depth: usize) -> Option<usize> {
        self.has_room().then_some(())?;
        let Token { at, byte } = self.token(at)?;
        match byte {
            b'"' => {
                let string = self.string(at)?;
                Some(self.leaf(string))
            }
            b'{' => self.object(at, depth),
            b'[' => self.list(at, depth),
            first => {
                let scalar = self.scalar(at, first)?;
                Some(self.leaf(scalar))
            }
        }
    }

    fn object(&mut self, at: usize, depth: usize) -> Option<usize> {
        let index = self.open(at, Shape::Object, depth)?;
        let Token { mut at, byte } = self.token(at + 1)?;
        if byte != b'}' {
            loop {
                let key = self.key(at)?;
                let end = self.leaf(key);
                at = self.value(self.colon(end)?, depth + 1)?;
                let next = self.token(at)?;
                at = next.at;
                if next.byte != b',' {
                    break;
                }
                at += 1;
            }
        }
        self.close(index, at, b'}')
    }

    fn list(&mut self, at: usize, depth: usize) -> Option<usize> {
        let index = self.open(at, Shape::List, depth)?;
        let end = self.items(PartId::WHOLE, at + 1, depth)?;
        self.close(index, end, b']')
    }

    /// The items of a list, of which this is wanted.
    fn items(&mut self, each: PartId, at: usize, depth: usize) -> Option<usize> {
        let Token { mut at, byte } = self.token(at)?;
        if byte == b']' {
            return Some(at);
        }
        loop {
            at = self.part(each, at, depth + 1)?;
            let next = self.token(at)?;
            if next.byte != b',' {
                return Some(next.at);
            }
            at = next.at + 1;
        }
    }

    /// The members of an object that are wanted.
    fn members(&mut self, of: &Part, at: usize, depth: usize) -> Option<usize> {
        let Token { mut at, byte } = self.token(at)?;
        if byte == b'}' {
            return Some(at);
        }
        loop {
            let key = self.key(at)?;
            at = self.colon(key.end)?;
            at = match self.wanted(of, key) {
                Some(id) => {
                    self.leaf(key);
                    self.part(id, at, depth + 1)?
                }
                None => self.skipped(at)?,
            };
            let next = self.token(at)?;
            if next.byte != b',' {
                return Some(next.at);
            }
            at = next.at + 1;
        }
    }

    /// What is wanted of the member with a key.
    #[inline]
    fn wanted(&self, of: &Part, key: Scalar) -> Option<PartId> {
        if key.shape == Shape::Escaped {
            // The closing quote ends it.
            return of.member(unescaped(&self.text[key.begin + 1..]).as_bytes());
        }
        of.member(&self.text.as_bytes()[key.begin + 1..key.end - 1])
    }

    /// A value of which nothing is wanted.
    #[inline]
    fn skipped(&self, at: usize) -> Option<usize> {
        let Token { at, byte } = self.token(at)?;
        match byte {
            b'"' => self.string(at).map(|string| string.end),
            b'{' => self.container_end(at, Shape::Object),
            b'[' => self.container_end(at, Shape::List),
            first => self.scalar(at, first).map(|scalar| scalar.end),
        }
    }

    /// The end of a list or an object in which nothing is wanted.
    fn container_end(&self, at: usize, shape: Shape) -> Option<usize> {
        let text = self.text.as_bytes();
        let (end, bracket) = match shape {
            Shape::List => (scan::list_end(text, at + 1), b']'),
            _ => (scan::container_end(text, at + 1), b'}'),
        };
        end.filter(|end| text.get(*end) == Some(&bracket)).map(|end| end + 1)
    }

    /// The first byte that is not blank.
    #[inline]
    fn token(&self, mut at: usize) -> Option<Token> {
        loop {
            match self.byte(at)? {
                b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                byte => return Some(Token { at, byte }),
            }
        }
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the text has less than 4 GiB")]
    fn leaf(&mut self, Scalar { begin, end, shape }: Scalar) -> usize {
        let next = self.entries.len() as u32 + 1;
        let (begin, last) = (begin as u32, end as u32);
        self.entries.push(Entry { begin, end: last, next, shape, part: PartId::WHOLE });
        end
    }

    /// The entry of a list or an object whose end is not known yet.
    #[expect(clippy::cast_possible_truncation, reason = "the text has less than 4 GiB")]
    fn open(&mut self, at: usize, shape: Shape, depth: usize) -> Option<usize> {
        (depth < MAX_DEPTH).then_some(())?;
        let (index, begin) = (self.entries.len(), at as u32);
        self.entries.push(Entry { begin, end: 0, next: 0, shape, part: PartId::WHOLE });
        Some(index)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text has less than 4 GiB")]
    fn close(&mut self, index: usize, at: usize, bracket: u8) -> Option<usize> {
        (self.byte(at)? == bracket).then_some(())?;
        let next = self.entries.len() as u32;
        let entry = &mut self.entries[index];
        (entry.end, entry.next) = (at as u32 + 1, next);
        Some(at + 1)
    }

    #[inline]
    fn key(&self, at: usize) -> Option<Scalar> {
        let Token { at, byte } = self.token(at)?;
        (byte == b'"').then_some(())?;
        self.string(at)
    }

    /// The byte behind a colon.
    #[inline]
    fn colon(&self, at: usize) -> Option<usize> {
        let Token { at, byte } = self.token(at)?;
        (byte == b':').then_some(at + 1)
    }

    #[inline]
    fn string(&self, begin: usize) -> Option<Scalar> {
        match scan::plain_string_end(self.text.as_bytes(), begin + 1) {
            Some(end) => Some(Scalar { begin, end: end + 1, shape: Shape::Text }),
            None => self.rare_string(begin),
        }
    }

    /// A string with escapes, or one close to the end of the text.
    fn rare_string(&self, begin: usize) -> Option<Scalar> {
        let text = self.text.as_bytes();
        let mut at = begin + 1;
        let mut shape = Shape::Text;
        loop {
            at += scan::plain_bytes(text.get(at..)?);
            match *text.get(at)? {
                b'"' => return Some(Scalar { begin, end: at + 1, shape }),
                b'\\' => {
                    shape = Shape::Escaped;
                    at += 1 + escapes::escape(&text[at + 1..])?.1;
                }
                // JSON allows no control characters in a string.
                ..b' ' => return None,
                _ => at += 1,
            }
        }
    }

    /// A number, or a word.
    fn scalar(&self, at: usize, first: u8) -> Option<Scalar> {
        match first {
            b't' => self.word(at, "true", Shape::Bool),
            b'f' => self.word(at, "false", Shape::Bool),
            b'n' => self.word(at, "null", Shape::Null),
            _ => self.number(at),
        }
    }

    fn word(&self, begin: usize, word: &str, shape: Shape) -> Option<Scalar> {
        let end = begin + word.len();
        let found = self.text.as_bytes().get(begin..end)?;
        (found == word.as_bytes()).then_some(Scalar { begin, end, shape })
    }

    fn number(&self, begin: usize) -> Option<Scalar> {
        let rest = &self.text.as_bytes()[begin..];
        let digits = |from: usize| rest[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let sign = usize::from(rest.first() == Some(&b'-'));
        let whole = digits(sign);
        // JSON has no leading zeros.
        let is_padded = whole > 1 && rest.get(sign) == Some(&b'0');
        let mut length = sign + whole;
        let mut is_valid = whole > 0 && !is_padded;
        if rest.get(length) == Some(&b'.') {
            let fraction = digits(length + 1);
            is_valid &= fraction > 0;
            length += 1 + fraction;
        }
        is_valid &= length <= MAX_DIGITS && !matches!(rest.get(length), Some(b'e' | b'E'));
        is_valid.then_some(Scalar { begin, end: begin + length, shape: Shape::Number })
    }
}
