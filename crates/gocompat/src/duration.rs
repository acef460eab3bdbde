//! Durations as Go's `time` package parses and converts them.

/// The greatest magnitude of a duration in nanoseconds; only a negative duration may reach it.
const LIMIT: u64 = 1 << 63;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Parses a duration such as `1.5h`, `-2m30s` or `0` into nanoseconds.
///
/// Go: `time.ParseDuration`. Units are `ns`, `us`, `µs` (either micro sign), `ms`, `s`, `m` and
/// `h`; they may repeat, in any order. Only a zero needs no unit.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    if rest == b"0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanos, after) = term(rest)?;
        // Two terms of the limit itself wrap to zero, as in Go.
        total = total.wrapping_add(nanos);
        if total > LIMIT {
            return None;
        }
        rest = after;
    }
    if negative {
        return Some(0_i64.wrapping_sub_unsigned(total));
    }
    i64::try_from(total).ok()
}

/// `1h2m3.5s` of nanoseconds; below a second `1.5ms`, `2µs`, `3ns`; `0s`.
///
/// Go: `time.Duration.String`.
#[must_use]
pub fn text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let unit = match nanos {
        0 => return "0s".to_owned(),
        1..1_000 => return format!("{sign}{nanos}ns"),
        1_000..1_000_000 => return format!("{sign}{}µs", decimal(nanos, 1_000)),
        1_000_000..1_000_000_000 => return format!("{sign}{}ms", decimal(nanos, 1_000_000)),
        _ => 1_000_000_000,
    };
    let minutes = nanos / (60 * unit);
    let seconds = decimal(nanos % (60 * unit), unit);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// A number in units, without zeros at the end.
fn decimal(nanos: u64, unit: u64) -> String {
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// Whole milliseconds of a duration in nanoseconds, as Go's `int(d.Seconds() * 1000)`.
///
/// The conversion to a float loses a millisecond of some exact values: 1.001s gives 1000.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "at most 2^63 / 10^6")]
pub fn whole_millis(nanos: i64) -> i64 {
    (seconds(nanos) * 1000.0) as i64
}

/// Whole seconds of a duration in nanoseconds, as Go's `int(d.Seconds())`.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "at most 2^63 / 10^9")]
pub fn whole_seconds(nanos: i64) -> i64 {
    seconds(nanos) as i64
}

/// Go: `time.Duration.Seconds`.
#[expect(clippy::cast_precision_loss, reason = "both parts are below 2^53")]
fn seconds(nanos: i64) -> f64 {
    let whole = nanos / NANOS_PER_SECOND;
    let part = nanos % NANOS_PER_SECOND;
    whole as f64 + part as f64 / 1e9
}

/// Parses one number with its unit into nanoseconds (at most `LIMIT`); also returns the rest.
fn term(text: &[u8]) -> Option<(u64, &[u8])> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => split_digits(rest),
        _ => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.iter().position(|byte| *byte == b'.' || byte.is_ascii_digit());
    let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let unit = unit_nanos(name)?;
    let nanos =
        whole_number(whole)?.checked_mul(unit)?.checked_add(fraction_nanos(fraction, unit))?;
    (nanos <= LIMIT).then_some((nanos, rest))
}

fn unit_nanos(name: &[u8]) -> Option<u64> {
    Some(match name {
        b"ns" => 1,
        b"us" | b"\xC2\xB5s" | b"\xCE\xBCs" => 1_000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        b"m" => 60_000_000_000,
        b"h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn whole_number(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// The nanoseconds of a fraction of a unit, truncated.
///
/// Go stops at the first digit that does not fit, and divides as floats; both affect the last
/// digits of long fractions.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go converts the same way; the result is below the unit, or equal to it"
)]
fn fraction_nanos(digits: &[u8], unit: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale = 1.0;
    for digit in digits {
        if value > (LIMIT - 1) / 10 {
            break;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > LIMIT {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: i64 = 1_000_000;
    const SECOND: i64 = 1000 * MILLI;

    #[test]
    fn every_unit_has_its_length() {
        assert_eq!(parse("1ns"), Some(1));
        for micro in ["1us", "1\u{b5}s", "1\u{3bc}s"] {
            assert_eq!(parse(micro), Some(1000), "{micro}");
        }
        assert_eq!(parse("1ms"), Some(MILLI));
        assert_eq!(parse("1s"), Some(SECOND));
        assert_eq!(parse("1m"), Some(60 * SECOND));
        assert_eq!(parse("1h"), Some(3600 * SECOND));
    }

    #[test]
    fn terms_add_up_in_any_order() {
        assert_eq!(parse("-1m1h1m"), Some(-3720 * SECOND));
    }

    #[test]
    fn only_zero_needs_no_unit() {
        for zero in ["0", "+0", "-0"] {
            assert_eq!(parse(zero), Some(0), "{zero}");
        }
        for text in ["00", "0.0", ".0", "1", "1s1", "--0"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn either_side_of_the_point_may_be_empty_but_not_both() {
        assert_eq!(parse(".5s"), Some(SECOND / 2));
        assert_eq!(parse("1.s"), Some(SECOND));
        assert_eq!(parse("-.5s"), Some(-SECOND / 2));
        for text in [".s", "-.s", ".", "1.5.s", "1..s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn unknown_shapes_are_rejected() {
        for text in
            ["", "+", "-", "s", " 1s", "1s ", "1 s", "1S", "1d", "1_0s", "1e3s", "\u{661}s", "+-1s"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_negative_duration_reaches_the_limit() {
        assert_eq!(parse("9223372036854775807ns"), Some(i64::MAX));
        assert_eq!(parse("9223372036854775808ns"), None);
        assert_eq!(parse("-9223372036854775808ns"), Some(i64::MIN));
        assert_eq!(parse("-9223372036854775809ns"), None);
        assert_eq!(parse("-9223372036.854775808s"), Some(i64::MIN));
        assert_eq!(parse("-2562047h47m16.854775808s"), Some(i64::MIN));
        assert_eq!(parse("2562048h"), None);
        assert_eq!(parse("99999999999999999999s"), None);
    }

    #[test]
    fn texts_read_as_they_are_printed() {
        for (nanos, printed) in [
            (0, "0s"),
            (-1, "-1ns"),
            (1_500, "1.5µs"),
            (2 * MILLI, "2ms"),
            (90 * SECOND, "1m30s"),
            (3600 * SECOND, "1h0m0s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(text(nanos), printed);
            assert_eq!(parse(printed), Some(nanos), "{printed}");
        }
    }

    #[test]
    fn two_terms_of_the_limit_wrap_to_zero() {
        assert_eq!(parse("9223372036854775808ns9223372036854775808ns"), Some(0));
    }

    #[test]
    fn long_fractions_lose_their_tail() {
        assert_eq!(parse("0.9223372036854775807h"), Some(3_320_413_933_267));
        assert_eq!(parse("0.100000000000000000000h"), Some(360 * SECOND));
        assert_eq!(parse("0.3333333333333333333h"), Some(1200 * SECOND));
        assert_eq!(parse("0.1ns"), Some(0));
    }

    #[test]
    fn milliseconds_are_truncated_through_a_float() {
        assert_eq!(whole_millis(1001 * MILLI), 1000);
        assert_eq!(whole_millis(1005 * MILLI), 1004);
        assert_eq!(whole_millis(-1001 * MILLI), -1000);
        assert_eq!(whole_millis(1500 * MILLI + 999_999), 1500);
        let short = (1..=60_000).filter(|millis| whole_millis(millis * MILLI) != *millis);
        assert_eq!(short.clone().count(), 604);
        assert!(short.into_iter().all(|millis| whole_millis(millis * MILLI) == millis - 1));
    }

    #[test]
    fn seconds_are_truncated_towards_zero() {
        assert_eq!(whole_seconds(1_999_999_999), 1);
        assert_eq!(whole_seconds(-1_999_999_999), -1);
        assert_eq!(whole_seconds(i64::MIN), -9_223_372_036);
    }
}
