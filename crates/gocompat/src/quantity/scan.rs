//! The parts of a quantity's text.

use std::fmt;

use crate::number;

/// A quantity's text, cut where its kinds of characters change.
///
/// Kubernetes: `parseQuantityString` (`quantity.go`).
pub(super) struct Parts<'a> {
    pub(super) negative: bool,
    /// Digits before the point without leading zeros, but never empty.
    pub(super) whole: &'a str,
    /// Digits after the point.
    pub(super) fraction: &'a str,
    /// Whether the text has a digit, which `whole` does not show.
    pub(super) has_digit: bool,
    pub(super) suffix: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn split(text: &'a str) -> Self {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (zeros_and_whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let whole = zeros_and_whole.trim_start_matches('0');
        Self {
            negative: text.starts_with('-'),
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            has_digit: !zeros_and_whole.is_empty() || !fraction.is_empty(),
            suffix,
        }
    }

    /// All digits, as numbers from 0 to 9.
    pub(super) fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes()).map(|byte| byte - b'0')
    }

    /// How many digits are after the point.
    pub(super) fn places(&self) -> i32 {
        i32::try_from(self.fraction.len()).unwrap_or(i32::MAX)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// What a suffix multiplies by, and which of the three forms it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Suffix {
    /// A power of ten, as a letter.
    Decimal(i32),
    /// A power of ten, in digits.
    Exponent(i32),
    /// A power of 1024, at most 6.
    Binary(usize),
}

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Suffix {
    /// Kubernetes: `suffixHandler.interpret` (`suffix.go`).
    pub(super) fn read(text: &str) -> Option<Self> {
        if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == text) {
            return Some(Self::Decimal(*exponent));
        }
        if let Some(power) = BINARY.iter().position(|name| *name == text) {
            return Some(Self::Binary(power));
        }
        let exponent = number::parse_int(text.strip_prefix(['e', 'E'])?, 64)?;
        #[expect(clippy::cast_possible_truncation, reason = "Kubernetes drops the upper bits too")]
        Some(Self::Exponent(exponent as i32))
    }

    /// What a decimal suffix shifts by; 0 for a binary one.
    pub(super) fn power_of_ten(self) -> i32 {
        match self {
            Self::Decimal(exponent) | Self::Exponent(exponent) => exponent,
            Self::Binary(_) => 0,
        }
    }

    /// What a binary suffix multiplies by, at most `2^60`; 1 for a decimal one.
    pub(super) fn factor(self) -> i64 {
        match self {
            Self::Binary(power) => 1 << (10 * power),
            Self::Decimal(_) | Self::Exponent(_) => 1,
        }
    }
}

/// Kubernetes: `suffixHandler.constructBytes` (`suffix.go`), which omits values without a name.
impl fmt::Display for Suffix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Exponent(0) => "",
            Self::Exponent(exponent) => return write!(formatter, "e{exponent}"),
            Self::Decimal(exponent) => {
                DECIMAL.iter().find(|(_, named)| named == exponent).map_or("", |(name, _)| name)
            }
            Self::Binary(power) => BINARY.get(*power).copied().unwrap_or_default(),
        };
        formatter.write_str(name)
    }
}
