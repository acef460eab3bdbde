//! Times of RFC 3339 as Go parses them.

/// The second that Go's zero time has.
pub(crate) const ZERO_TIME: i64 = -62_135_596_800;

/// The seconds since 1970 in UTC; `None` if Go does not parse the text.
///
/// Go: `time.Parse(time.RFC3339, text)`, which also takes one digit for the hour, a comma before
/// the fraction, and offsets of 24 hours and 60 minutes. Kubernetes drops the fraction.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2)?;
    let rest = rest.strip_prefix('T')?;
    let (hour, rest) = number(rest, 2).or_else(|| number(rest, 1))?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = number(rest.strip_prefix(':')?, 2)?;
    let in_range = hour < 24 && minute < 60 && second < 60;
    let is_day = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    let after_fraction = rest.strip_prefix(['.', ',']).and_then(|fraction| {
        let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        (zone.len() < fraction.len()).then_some(zone)
    });
    let offset = offset(after_fraction.unwrap_or(rest)).filter(|_| in_range && is_day)?;
    let days = days_before(year) + (1..month).map(|month| days_of(year, month)).sum::<i64>() + day;
    Some((days - days_before(1970) - 1) * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

/// The seconds that a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, rest) = number(zone.strip_prefix(['+', '-'])?, 2)?;
    let (minutes, rest) = number(rest.strip_prefix(':')?, 2)?;
    let in_range = hours <= 24 && minutes <= 60 && rest.is_empty();
    in_range.then_some(sign * (hours * 3600 + minutes * 60))
}

/// A number of exactly so many digits, and the rest.
fn number(text: &str, digits: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    let all = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| all)?, rest))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the year 0, which leaps, to the first of January.
fn days_before(year: i64) -> i64 {
    let last = year - 1;
    let leaps = last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400) + 1;
    year * 365 + leaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_1970_in_utc() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2024-02-29T10:11:12Z"), Some(1_709_201_472));
        assert_eq!(seconds("2024-02-29T1:11:12.5+01:00"), Some(1_709_165_472));
        assert_eq!(seconds("2000-03-01T00:00:00,9-24:60"), Some(951_868_800 + 90_000));
        assert_eq!(seconds("0001-01-01T00:00:00Z"), Some(ZERO_TIME));
        assert_eq!(seconds("0000-01-01T00:00:00Z"), Some(ZERO_TIME - 366 * 86_400));
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "2024-01-01",
            "2023-02-29T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01t00:00:00Z",
            "2024-01-01T00:00:00z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+25:00",
            "2024-01-01T00:00:00+0100",
            "+024-01-01T00:00:00Z",
            "2024-01-01T00:00:00Z ",
            "\u{e9}024-01-01T00:00:00Z",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
