//! Which strings another type would be read from, without quotes. Go: `resolve` of `yaml.v2`.

use injectd_gocompat::number::parse_float;

use crate::number::parse_int;

const WORDS: &[&str] = &[
    "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on",
    "On", "ON", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", ".nan",
    ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
];

/// Whether the text is a string without quotes, as far as its type is concerned.
pub(super) fn is_string(text: &str) -> bool {
    if WORDS.contains(&text) {
        return false;
    }
    let is_other = match text.as_bytes().first() {
        Some(b'.') => parse_float(text).is_some(),
        Some(b'0'..=b'9' | b'+' | b'-') => {
            is_timestamp(text) || is_number(&text.replace('_', "")) || is_base_sixty(text)
        }
        _ => false,
    };
    !is_other
}

fn is_number(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['+', '-']);
    if parse_int(text).is_some() || crate::number::parse_uint(text).is_some() {
        return true;
    }
    let styled = unsigned.len() + 1 >= text.len()
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
        && unsigned.bytes().any(|byte| byte.is_ascii_digit());
    if styled && parse_float(text).is_some() {
        return true;
    }
    // `0b+1` and `0b-1` are integers there.
    let binary = text.strip_prefix("0b").or_else(|| text.strip_prefix("-0b"));
    binary.is_some_and(|digits| i64::from_str_radix(digits, 2).is_ok())
}

/// Such as `1:30`, which YAML 1.1 reads as 90.
fn is_base_sixty(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (unsigned, ""),
    };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let is_part = |part: &str| {
        (1..=2).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part.len() == 1 || part.as_bytes()[0] <= b'5')
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    first.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        && is_digits(first)
        && whole.contains(':')
        && parts.all(is_part)
        && is_digits(fraction)
}

/// A date of four digits for the year, perhaps with a time.
fn is_timestamp(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-') else { return false };
    let Some((month, rest)) = rest.split_once('-') else { return false };
    let day_end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (day, time) = rest.split_at(day_end);
    let in_range = |text: &str, least: u32, most: u32| {
        (1..=2).contains(&text.len()) && text.parse().is_ok_and(|n| (least..=most).contains(&n))
    };
    let Some(days) = days_of(year, month) else { return false };
    if year.len() != 4 || !in_range(day, 1, days) {
        return false;
    }
    let (clock, needs_zone) = match time.as_bytes().first() {
        None => return true,
        Some(b'T' | b't') => (&time[1..], true),
        Some(b' ') => (&time[1..], false),
        _ => return false,
    };
    let zone_at = clock.find(['Z', '+', '-']).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(zone_at);
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, "0"));
    let parts: Vec<_> = clock.split(':').collect();
    let is_zone = match zone.as_bytes() {
        [] => !needs_zone,
        [b'Z'] => needs_zone,
        [b'+' | b'-', ..] => needs_zone && zone.len() == 6 && zone.as_bytes()[3] == b':',
        _ => false,
    };
    is_zone
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && parts.len() == 3
        && in_range(parts[0], 0, 23)
        && in_range(parts[1], 0, 59)
        && in_range(parts[2], 0, 59)
}

/// The days of a month.
fn days_of(year: &str, month: &str) -> Option<u32> {
    let year: u32 = year.parse().ok()?;
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    if month.len() > 2 {
        return None;
    }
    Some(match month.parse().ok()? {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        _ => return None,
    })
}
