//! Flags, padding, integers and strings. Go: `fmt/format.go`.

use injectd_gocompat::text::is_print;

use super::Printer;
use crate::{
    quote::{can_backquote, quote, quote_rune},
    runes::{self, REPLACEMENT, runes},
};

/// The flags, width and precision of a verb.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a verb are these")]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`.
    pub(super) plus_v: bool,
    /// `%#v`.
    pub(super) sharp_v: bool,
}

const DIGITS: &[u8; 17] = b"0123456789abcdefx";
const UPPER_DIGITS: &[u8; 17] = b"0123456789ABCDEFX";

pub(super) fn digits(upper: bool) -> &'static [u8; 17] {
    if upper { UPPER_DIGITS } else { DIGITS }
}

impl Printer {
    pub(super) fn padding(&mut self, count: usize) {
        // Zeros only on the left.
        let byte = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        self.out.resize(self.out.len() + count, byte);
    }

    /// Prints text in the width of the verb.
    pub(super) fn pad(&mut self, text: &[u8]) {
        let width = self.flags.width.unwrap_or(0).saturating_sub(runes::count(text));
        if self.flags.minus {
            self.out.extend_from_slice(text);
            self.padding(width);
        } else {
            self.padding(width);
            self.out.extend_from_slice(text);
        }
    }

    /// [`Printer::pad`] with blanks, also where the flag asks for zeros.
    pub(super) fn pad_blank(&mut self, text: &[u8]) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(text);
        self.flags.zero = zero;
    }

    /// An integer: its magnitude and sign, the base, and the verb.
    pub(super) fn integer(&mut self, magnitude: u64, negative: bool, base: u64, verb: char) {
        let flags = self.flags;
        let signed = negative || flags.plus || flags.space;
        let mut least = 0;
        if let Some(precision) = flags.precision {
            if precision == 0 && magnitude == 0 {
                return self.pad_blank(&b" ".repeat(flags.width.unwrap_or(0)));
            }
            least = precision;
        } else if flags.zero && !flags.minus {
            least = flags.width.unwrap_or(0).saturating_sub(usize::from(signed));
        }
        let digits = digits(verb == 'X');
        let mut text = Vec::new();
        let mut rest = magnitude;
        while rest > 0 || text.is_empty() {
            text.push(digits[usize::try_from(rest % base).unwrap_or(0)]);
            rest /= base;
        }
        text.resize(text.len().max(least), b'0');
        if flags.sharp {
            match base {
                2 => text.extend(b"b0"),
                8 if text.last() != Some(&b'0') => text.push(b'0'),
                16 => text.extend([digits[16], b'0']),
                _ => {}
            }
        }
        if verb == 'O' {
            text.extend(b"o0");
        }
        if negative {
            text.push(b'-');
        } else if flags.plus {
            text.push(b'+');
        } else if flags.space {
            text.push(b' ');
        }
        text.reverse();
        self.pad_blank(&text);
    }

    /// `%U`.
    pub(super) fn unicode(&mut self, code: u64) {
        let width = self.flags.precision.unwrap_or(0).max(4);
        let mut text = format!("U+{code:0width$X}");
        let char = u32::try_from(code).ok().and_then(char::from_u32);
        if let Some(char) = char.filter(|char| self.flags.sharp && is_print(*char)) {
            text += &format!(" '{char}'");
        }
        self.pad_blank(text.as_bytes());
    }

    /// `%c`.
    pub(super) fn character(&mut self, code: u64) {
        self.pad(char_of(code).to_string().as_bytes());
    }

    /// `%q` of an integer.
    pub(super) fn quoted_character(&mut self, code: u64) {
        let text = quote_rune(char_of(code), self.flags.plus);
        self.pad(text.as_bytes());
    }

    fn truncated<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let Some(precision) = self.flags.precision else { return text };
        let end = runes(text).nth(precision).map_or(text.len(), |(at, ..)| at);
        &text[..end]
    }

    /// `%s`.
    pub(super) fn plain(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        self.pad(text);
    }

    /// `%q`.
    pub(super) fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        if self.flags.sharp && can_backquote(text) {
            let text = [b"`", text, b"`"].concat();
            return self.pad(&text);
        }
        let text = quote(text, self.flags.plus);
        self.pad(text.as_bytes());
    }

    /// `%x` of a string.
    pub(super) fn hexadecimal(&mut self, text: &[u8], upper: bool) {
        let flags = self.flags;
        let text = &text[..flags.precision.unwrap_or(text.len()).min(text.len())];
        let digits = digits(upper);
        let prefix = [b'0', digits[16]];
        let mut out = Vec::with_capacity(2 * text.len());
        for (index, byte) in text.iter().enumerate() {
            if flags.space && index > 0 {
                out.push(b' ');
            }
            if flags.sharp && (flags.space || index == 0) {
                out.extend(prefix);
            }
            out.extend([digits[usize::from(byte >> 4)], digits[usize::from(byte & 0xf)]]);
        }
        self.pad(&out);
    }
}

fn char_of(code: u64) -> char {
    u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(REPLACEMENT)
}
