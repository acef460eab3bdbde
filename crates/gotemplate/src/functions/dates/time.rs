//! An instant with its offset from UTC.

use std::borrow::Cow;

/// Seconds between the years 1 and 1970.
pub(super) const YEAR_ONE: i64 = -62_135_596_800;

const SECONDS_PER_DAY: i64 = 86_400;

/// An instant. By default that of Go's zero value, the beginning of the year 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Time {
    /// Since 1970.
    pub(super) seconds: i64,
    pub(super) nanos: u32,
    /// Seconds east of UTC.
    pub(super) offset: i64,
    /// The abbreviation of the zone; empty if it has none.
    pub(super) zone: Cow<'static, str>,
}

impl Default for Time {
    fn default() -> Self {
        Self { seconds: YEAR_ONE, ..Self::EPOCH }
    }
}

/// A date and the time of the day in its zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// From 1 on.
    pub(super) month: usize,
    pub(super) day: i64,
    /// From 1 on.
    pub(super) year_day: i64,
    /// From 0, Sunday, on.
    pub(super) week_day: usize,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
}

/// Days before the first of March of the year 0 in days since 1970.
const MARCH_OF_YEAR_ZERO: i64 = -719_468;

/// Days since 1970 of a date.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year + MARCH_OF_YEAR_ZERO
}

impl Time {
    pub(super) const EPOCH: Self =
        Self { seconds: 0, nanos: 0, offset: 0, zone: Cow::Borrowed("UTC") };

    pub(super) fn in_utc(&self) -> Self {
        Self { offset: 0, zone: "UTC".into(), ..self.clone() }
    }

    pub(super) fn plus(&self, nanos: i64) -> Self {
        const PER_SECOND: i64 = 1_000_000_000;
        let sum = i64::from(self.nanos) + nanos.rem_euclid(PER_SECOND);
        let seconds = self.seconds.saturating_add(nanos.div_euclid(PER_SECOND));
        Self {
            seconds: seconds.saturating_add(sum / PER_SECOND),
            nanos: u32::try_from(sum % PER_SECOND).unwrap_or(0),
            ..self.clone()
        }
    }

    /// Nanoseconds from another time to this one.
    pub(super) fn since(&self, other: &Self) -> i64 {
        let seconds = i128::from(self.seconds) - i128::from(other.seconds);
        let nanos = seconds * 1_000_000_000 + i128::from(self.nanos) - i128::from(other.nanos);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    pub(super) fn civil(&self) -> Civil {
        let local = self.seconds.saturating_add(self.offset);
        let (day_number, second) =
            (local.div_euclid(SECONDS_PER_DAY), local.rem_euclid(SECONDS_PER_DAY));
        let shifted = day_number - MARCH_OF_YEAR_ZERO;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = (shifted_month + 2) % 12 + 1;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil {
            year,
            month: usize::try_from(month).unwrap_or(1),
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            year_day: day_number - days(year, 1, 1) + 1,
            week_day: usize::try_from((day_number + 4).rem_euclid(7)).unwrap_or(0),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}
