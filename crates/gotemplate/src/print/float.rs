//! Floats. Go: `strconv.FormatFloat` and `fmt.fmtFloat`.

use injectd_gocompat::number::format_float;

use super::Printer;

/// A finite or infinite float with a verb of Go: `e`, `f`, `g` and their capitals, `b` or `x`.
pub(super) fn format(value: f64, verb: char, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return format_float(value);
    }
    let text = match (verb.to_ascii_lowercase(), precision) {
        ('e', precision) => scientific(value, precision),
        ('f', Some(precision)) => format!("{value:.precision$}"),
        ('f', None) => format!("{value}"),
        ('b', _) => binary(value),
        ('x', precision) => hexadecimal(value, precision),
        (_, None) => format_float(value),
        (_, Some(precision)) => general(value, precision.max(1)),
    };
    if verb.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text }
}

fn scientific(value: f64, precision: Option<usize>) -> String {
    let text = match precision {
        Some(precision) => format!("{value:.precision$e}"),
        None => format!("{value:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}", signed(exponent))
}

/// An exponent with a sign and two digits.
fn signed(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{:02}", exponent.unsigned_abs())
}

/// `%g` with a number of digits.
fn general(value: f64, precision: usize) -> String {
    let text = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    let places = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let limit = i32::try_from(precision).unwrap_or(i32::MAX);
    // A whole number of no more digits than the precision has no exponent.
    let limit = if limit > places && places > exponent { places } else { limit };
    if exponent < -4 || exponent >= limit {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}e{}", signed(exponent));
    }
    let Ok(whole) = usize::try_from(exponent) else {
        let zeros = exponent.unsigned_abs() as usize - 1;
        return format!("{sign}0.{}{digits}", "0".repeat(zeros));
    };
    if digits.len() <= whole + 1 {
        return format!("{sign}{digits:0<0$}", whole + 1);
    }
    let (whole, fraction) = digits.split_at(whole + 1);
    format!("{sign}{whole}.{fraction}")
}

const MANTISSA_BITS: u32 = 52;

/// Mantissa and exponent of base 2; the mantissa is an integer.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = i32::try_from(bits >> MANTISSA_BITS & 0x7ff).unwrap_or(0);
    let fraction = bits & ((1 << MANTISSA_BITS) - 1);
    match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << MANTISSA_BITS, exponent - 1075),
    }
}

fn binary(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (mantissa, exponent) = parts(value);
    format!("{sign}{mantissa}p{exponent:+}")
}

fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // One digit before the point, fifteen after it.
        let shift = mantissa.leading_zeros() - 3;
        mantissa <<= shift;
        exponent += 60 - i32::try_from(shift).unwrap_or(0);
    }
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let unused = 60 - 4 * u32::try_from(precision).unwrap_or(0);
        let rest = mantissa & ((1 << unused) - 1);
        let half = 1 << (unused - 1);
        mantissa >>= unused;
        if rest > half || rest == half && mantissa & 1 == 1 {
            mantissa += 1;
        }
        mantissa <<= unused;
        if mantissa >> 61 == 1 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let digits = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(precision) => format!("{:0<precision$}", &digits[..precision.min(15)]),
    };
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x{}{point}{digits}p{}", mantissa >> 60, signed(exponent))
}

impl Printer {
    /// A float in the width of the verb; `precision` is that of the verb by default.
    pub(super) fn float_text(&mut self, value: f64, verb: char, precision: Option<usize>) {
        let flags = self.flags;
        let precision = flags.precision.or(precision);
        let text = format(value, verb, precision);
        let (sign, text) = match text.as_bytes().first() {
            Some(b'-') => (b'-', text[1..].to_owned()),
            Some(b'+') => (b'+', text[1..].to_owned()),
            _ if flags.space && !flags.plus => (b' ', text),
            _ => (b'+', text),
        };
        let sign = if flags.space && sign == b'+' && !flags.plus { b' ' } else { sign };
        if !value.is_finite() {
            let bare = value.is_nan() && !flags.space && !flags.plus || sign == b'+' && !flags.plus;
            let text = if bare { text.into_bytes() } else { with_sign(sign, &text) };
            return self.pad_blank(&text);
        }
        let text = if flags.sharp && verb != 'b' { sharp(&text, verb, precision) } else { text };
        if sign == b'+' && !flags.plus {
            return self.pad(text.as_bytes());
        }
        let width = flags.width.unwrap_or(0);
        if flags.zero && !flags.minus && width > text.len() + 1 {
            self.out.push(sign);
            self.padding(width - text.len() - 1);
            return self.str(&text);
        }
        self.pad(&with_sign(sign, &text));
    }
}

fn with_sign(sign: u8, text: &str) -> Vec<u8> {
    [&[sign], text.as_bytes()].concat()
}

/// With a decimal point, and the zeros that `%g` leaves out.
fn sharp(text: &str, verb: char, precision: Option<usize>) -> String {
    let mut digits = match verb {
        'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let marks: &[char] =
        if matches!(verb, 'x' | 'X') { &['p', 'P'] } else { &['e', 'E', 'p', 'P'] };
    let (number, tail) = text.split_at(text.find(marks).unwrap_or(text.len()));
    let significant = number.trim_start_matches(['0', '.']);
    let seen = significant.chars().filter(|char| *char != '.').count();
    digits = digits.saturating_sub(seen);
    let mut out = number.to_owned();
    if !out.contains('.') {
        if out == "0" {
            digits = digits.saturating_sub(1);
        }
        out.push('.');
    }
    out + &"0".repeat(digits) + tail
}
