//! Floats as Go parses them.

/// Parses a float: `5`, `.5`, `5.`, `5e-1`, `1_0`, `0x1p-2`, `inf`, `-Infinity` or `nan`.
///
/// Go: `strconv.ParseFloat(text, 64)`. A value too large for a float is rejected; one too small
/// becomes zero. `inf` and `infinity` may have a sign, `nan` may not; their case is ignored.
/// More than 800 digits are parsed to the end, where Go may misplace the point.
#[must_use]
pub fn parse_float(text: &str) -> Option<f64> {
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    let (negative, body) = match text.as_bytes() {
        [b'-', body @ ..] => (true, body),
        [b'+', body @ ..] | body => (false, body),
    };
    let magnitude = if [&b"inf"[..], b"infinity"].iter().any(|name| body.eq_ignore_ascii_case(name))
    {
        f64::INFINITY
    } else {
        finite(body)?
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn finite(body: &[u8]) -> Option<f64> {
    if let [b'0', b'x' | b'X', digits @ ..] = body {
        let literal = Literal::split(digits, true)?;
        return hexadecimal(literal.digits, literal.exponent?);
    }
    let literal = Literal::split(body, false)?;
    decimal(literal.digits, literal.exponent.unwrap_or(0))
}

/// A float's text, without its sign and base.
struct Literal<'a> {
    /// Digits, underscores and points.
    digits: &'a [u8],
    exponent: Option<i64>,
}

impl<'a> Literal<'a> {
    fn split(body: &'a [u8], hex: bool) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || hex && byte.is_ascii_hexdigit();
        // An underscore must be between two digits; the prefix of the base counts as one.
        let misplaced = |(at, byte): (usize, &u8)| {
            let after_digit = || at.checked_sub(1).map_or(hex, |before| is_digit(body[before]));
            let before_digit = || body.get(at + 1).is_some_and(|next| is_digit(*next));
            *byte == b'_' && !(after_digit() && before_digit())
        };
        if body.iter().enumerate().any(misplaced) {
            return None;
        }
        let end = body.iter().position(|byte| !(is_digit(*byte) || matches!(byte, b'_' | b'.')));
        let (digits, tail) = body.split_at(end.unwrap_or(body.len()));
        let exponent = match tail {
            [] => None,
            [mark, exponent @ ..] if mark.eq_ignore_ascii_case(if hex { &b'p' } else { &b'e' }) => {
                Some(read_exponent(exponent)?)
            }
            _ => return None,
        };
        Some(Self { digits, exponent })
    }
}

fn read_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] | digits => (1, digits),
    };
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        match byte {
            b'_' => {}
            // Go ignores further digits here, so the value of a very long number may be too small.
            b'0'..=b'9' if value >= 10_000 => {}
            b'0'..=b'9' => value = value * 10 + i64::from(byte - b'0'),
            _ => return None,
        }
    }
    Some(sign * value)
}

fn decimal(digits: &[u8], exponent: i64) -> Option<f64> {
    let mut text: String =
        digits.iter().filter(|byte| **byte != b'_').map(|byte| char::from(*byte)).collect();
    text.push('e');
    text.push_str(&exponent.to_string());
    // Both languages round to the nearest float; Rust also requires a digit and a single point.
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(value)
}

fn hexadecimal(digits: &[u8], mut exponent: i64) -> Option<f64> {
    let mut mantissa: u64 = 0;
    let mut inexact = false;
    let mut digit_seen = false;
    let mut point_seen = false;
    for byte in digits {
        match char::from(*byte).to_digit(16) {
            None if *byte == b'.' && point_seen => return None,
            None => point_seen |= *byte == b'.',
            Some(digit) => {
                digit_seen = true;
                let fits = mantissa >> 60 == 0;
                if fits {
                    mantissa = mantissa << 4 | u64::from(digit);
                } else {
                    inexact |= digit != 0;
                }
                exponent += 4 * (i64::from(!fits) - i64::from(point_seen));
            }
        }
    }
    if digit_seen { nearest(mantissa, inexact, exponent) } else { None }
}

/// The float nearest to `mantissa * 2^exponent`, ties to even; `None` if it would be infinite.
/// `inexact` stands for bits below the mantissa's last.
fn nearest(mantissa: u64, inexact: bool, exponent: i64) -> Option<f64> {
    if mantissa == 0 {
        return Some(0.0);
    }
    // Two more bits distinguish values above, at and below a half.
    let wide = u128::from(mantissa) << 2 | u128::from(inexact);
    let length = 128 - i64::from(wide.leading_zeros());
    let top = exponent - 2 + length - 1;
    if top > 1023 {
        return None;
    }
    // The lowest bit that the float can hold is 2^-1074; normal ones hold 53 bits.
    let lowest = (top - 52).max(-1074);
    let kept = shift_to_even(wide, exponent - 2 - lowest);
    // A carry out of the kept bits runs into the exponent's, as it should.
    let biased = u64::try_from(lowest + 1074).ok()?;
    let bits = (biased << 52) + u64::try_from(kept).ok()?;
    let value = f64::from_bits(bits);
    value.is_finite().then_some(value)
}

/// `value * 2^by`, rounded to the nearest whole number, ties to even.
fn shift_to_even(value: u128, by: i64) -> u128 {
    if by >= 0 {
        return value << by;
    }
    if by < -127 {
        return 0;
    }
    let kept = value >> -by;
    let rest = value - (kept << -by);
    let half = 1 << (-by - 1);
    kept + u128::from(rest > half || rest == half && kept & 1 == 1)
}

/// Parses the decimal floats of YAML, without underscores.
///
/// Go: `resolve` of yaml.v2, which asks `strconv.ParseFloat` only about texts of this form.
#[must_use]
pub fn parse_yaml_float(text: &str) -> Option<f64> {
    is_yaml_float(text).then(|| parse_float(text)).flatten()
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_yaml_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    mantissa_fits && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Option<u64> {
        parse_float(text).map(f64::to_bits)
    }

    fn assert_reads(text: &str, value: f64) {
        assert_eq!(bits(text), Some(value.to_bits()), "{text}");
    }

    fn assert_rejected(texts: &[&str]) {
        for text in texts {
            assert_eq!(bits(text), None, "{text}");
        }
    }

    #[test]
    fn either_side_of_the_point_may_be_empty_but_not_both() {
        assert_reads(".5", 0.5);
        assert_reads("5.", 5.0);
        assert_reads("+5e-1", 0.5);
        assert_reads("-0", -0.0);
        assert_rejected(&["", ".", "+", "-.", ".e1", "1.2.3", "1..", "5e", "5e+", "5e1.0", "--5"]);
    }

    #[test]
    fn underscores_go_between_digits() {
        assert_reads("1_0", 10.0);
        assert_reads("0.1_5", 0.15);
        assert_reads("0_1e1_0", 1e10);
        assert_rejected(&["_1", "1_", "1__0", "1_.5", "1._5", "1_e5", "1e_5", "1e5_", "+_1"]);
    }

    #[test]
    fn hexadecimal_floats_need_their_exponent() {
        assert_reads("0x1p-2", 0.25);
        assert_reads("-0X.8P+1", -1.0);
        assert_reads("0x_1_fp1_0", 31744.0);
        assert_reads("0x0p0", 0.0);
        assert_rejected(&[
            "0x",
            "0x1",
            "0x1.8",
            "0xp1",
            "0x.p1",
            "0x1_p1",
            "0x1p_1",
            "0x1e+1",
            "0x1pf",
            "0x1.1.1p0",
        ]);
    }

    #[test]
    fn hexadecimal_floats_round_to_even() {
        assert_reads("0x1.00000000000008p0", 1.0);
        assert_reads("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON);
        assert_reads("0x1.0000000000000800000001p0", 1.0 + f64::EPSILON);
        assert_reads("0x1p-1074", 5e-324);
        assert_reads("0x1p-1075", 0.0);
        assert_reads("0x1.8p-1075", 5e-324);
        assert_reads("0x0.fffffffffffffcp-1022", f64::MIN_POSITIVE);
        assert_reads("0x123456789abcdef01234p-99999", 0.0);
    }

    #[test]
    fn too_large_is_rejected_and_too_small_is_zero() {
        assert_reads("1.7976931348623157e308", f64::MAX);
        assert_reads("0x1.fffffffffffff7p1023", f64::MAX);
        assert_reads("1e-400", 0.0);
        assert_reads("-1e-400", -0.0);
        assert_rejected(&[
            "1.7976931348623159e308",
            "1e400",
            "-1e99999999999",
            "0x1p1024",
            "0x1.fffffffffffff8p1023",
        ]);
    }

    #[test]
    fn exponents_stop_counting_above_ten_thousand() {
        // With its full exponent this would be one.
        let text = format!("0.{}1e100001", "0".repeat(100_000));
        assert_reads(&text, 0.0);
    }

    #[test]
    fn infinities_may_have_a_sign_and_nan_may_not() {
        for text in ["inf", "+Inf", "INFINITY"] {
            assert_reads(text, f64::INFINITY);
        }
        assert_reads("-infinity", f64::NEG_INFINITY);
        assert!(parse_float("NaN").is_some_and(f64::is_nan));
        assert_rejected(&["+nan", "-nan", "infi", "in", "nan(1)", "i", "n"]);
    }

    #[test]
    fn blanks_and_other_digits_are_rejected() {
        assert_rejected(&[" 1", "1 ", "1,5", "\u{661}", "1f", "0b1", "0o7p1"]);
    }
}
