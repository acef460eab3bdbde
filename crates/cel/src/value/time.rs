//! Times: a moment, and the offset that it is printed with.

use std::{cmp::Ordering, fmt};

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};

const SECOND: i128 = 1_000_000_000;
/// Seconds of the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i128> = -62_135_596_800..=253_402_300_799;
/// Hours and minutes of an offset that Go reads.
// Go takes 24 hours and 60 minutes, too, because some people write such offsets.
const MAX_HOURS: i32 = 24;
const MAX_MINUTES: i32 = 60;
// Go drops further digits and does not round.
const NANOS_DIGITS: usize = 9;

/// A time. Equality and order do not depend on the offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    nanos: i128,
    /// Seconds.
    offset: i32,
}

/// Why a text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvalidTime {
    Form,
    Year,
}

impl Time {
    /// A time in UTC; `None` outside of the years 1 to 9999.
    pub(crate) fn of_second(seconds: i64) -> Option<Self> {
        Self { nanos: i128::from(seconds) * SECOND, offset: 0 }.checked()
    }

    fn checked(self) -> Option<Self> {
        SECONDS.contains(&self.nanos.div_euclid(SECOND)).then_some(self)
    }

    /// Reads a text in the form of RFC 3339, as Go does.
    ///
    /// # Errors
    /// It has another form, or another year than 1 to 9999.
    pub(crate) fn read(text: &str) -> Result<Self, InvalidTime> {
        if !is_timestamp(text) {
            return Err(InvalidTime::Form);
        }
        let read = Self::read_any(text).ok_or(InvalidTime::Form)?;
        read.checked().ok_or(InvalidTime::Year)
    }

    fn read_any(text: &str) -> Option<Self> {
        let (day, rest) = text.split_at_checked(19)?;
        let zone = rest.find(['Z', '+', '-'])?;
        let (fraction, zone) = rest.split_at(zone);
        let digits: String = fraction.chars().skip(1).take(NANOS_DIGITS).collect();
        let fraction: i128 = format!("{digits:0<9}").parse().ok()?;
        let offset = match zone.as_bytes() {
            [b'Z'] => 0,
            [sign, ..] => {
                let (hours, minutes) = zone[1..].split_once(':')?;
                let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
                if hours > MAX_HOURS || minutes > MAX_MINUTES {
                    return None;
                }
                let seconds = hours * 3600 + minutes * 60;
                if *sign == b'-' { -seconds } else { seconds }
            }
            [] => return None,
        };
        let local: DateTime = day.parse().ok()?;
        let since = local.duration_since(epoch()).as_nanos();
        Some(Self { nanos: since + fraction - i128::from(offset) * SECOND, offset })
    }

    /// A time that is later by some nanoseconds.
    pub(crate) fn later(self, nanos: i128) -> Option<Self> {
        Self { nanos: self.nanos.checked_add(nanos)?, ..self }.checked()
    }

    /// Nanoseconds since another time.
    pub(crate) fn since(self, other: Self) -> i128 {
        self.nanos - other.nanos
    }

    /// Whether it is the first second of the year 1, which is the zero of times in Go.
    pub(crate) fn is_first(self) -> bool {
        self.nanos == *SECONDS.start() * SECOND
    }

    /// Whole seconds since 1970.
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    pub(crate) fn second(self) -> i64 {
        self.nanos.div_euclid(SECOND) as i64
    }

    /// Date and time of day in a zone; `None` after the year 9999.
    pub(crate) fn within(self, zone: &TimeZone) -> Option<DateTime> {
        // Offsets do not change at the ends of the range.
        let second = self.second().clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        self.local(zone.to_offset(Timestamp::from_second(second).ok()?).seconds())
    }

    fn local(self, offset: i32) -> Option<DateTime> {
        let nanos = self.nanos + i128::from(offset) * SECOND;
        epoch().checked_add(SignedDuration::try_from_nanos_i128(nanos)?).ok()
    }
}

fn is_timestamp(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| {
        let digits =
            text.get(range).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse::<u32>().ok())
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !separators.iter().all(|(index, byte)| text.as_bytes().get(*index) == Some(byte)) {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    let limits = [(11, 24), (14, 60), (17, 60)];
    let is_time =
        limits.iter().all(|(at, limit)| number(*at..at + 2).is_some_and(|value| value < *limit));
    (1..=days).contains(&day) && is_time && is_zone(&text[19..])
}

/// The end of a timestamp: a fraction or not, and the zone.
fn is_zone(text: &str) -> bool {
    let text = text.strip_prefix(['.', ',']).map_or(Some(text), |rest| {
        let zone = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        (zone.len() < rest.len()).then_some(zone)
    });
    text.is_some_and(|zone| match zone.as_bytes() {
        [b'Z'] => true,
        [b'+' | b'-', hours @ .., b':', ten, one] if hours.len() == 2 => {
            [hours[0], hours[1], *ten, *one].iter().all(u8::is_ascii_digit)
        }
        _ => false,
    })
}

fn epoch() -> DateTime {
    jiff::civil::datetime(1970, 1, 1, 0, 0, 0, 0)
}

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// RFC 3339 with the offset.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(local) = self.local(self.offset) else { return f.write_str("10000") };
        write!(f, "{local}")?;
        match self.offset / 60 {
            0 => f.write_str("Z"),
            minutes => {
                let sign = if minutes < 0 { '-' } else { '+' };
                let minutes = minutes.abs();
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_those_of_rfc_3339() {
        for good in ["2020-02-29T00:00:00Z", "2020-01-31T23:59:59.123+01:00"] {
            assert!(Time::read(good).is_ok(), "{good}");
        }
        for bad in
            ["", "2020", "2021-02-29T00:00:00Z", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00"]
        {
            assert!(Time::read(bad).is_err(), "{bad}");
        }
    }
}
