//! Maintenance windows: `Mon-Fri 22:00-04:00 Europe/Berlin`.
//!
//! A window is named by the day on which it begins, and may end on the next one. Its times are
//! those of the clocks in its time zone. In the night in which the clocks change, a window that
//! contains the change is an hour longer or shorter; a window inside the skipped hour is left out.
//! The time zones are part of the binary.

use std::{fmt, str::FromStr};

use jiff::{
    Timestamp,
    civil::{Date, Time},
    tz::TimeZone,
};

/// Days searched for the next window: a week, and the day before for a window over midnight.
const SEARCHED_DAYS: i8 = 9;
/// The separator of windows in an annotation.
const SEPARATOR: char = ';';

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// When restarts are allowed. Without a window, always.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Windows(Vec<Window>);

/// A maintenance window that repeats on its days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    text: String,
    /// Monday first.
    days: [bool; 7],
    begin: Time,
    /// `None` for 24:00.
    end: Option<Time>,
    zone: TimeZone,
}

/// Why a text is not a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; expected [DAYS] HH:MM-HH:MM [TIME ZONE], such as {EXAMPLE:?}")]
pub struct ParseError {
    problem: String,
}

const EXAMPLE: &str = "Mon-Fri 22:00-04:00 Europe/Berlin";

// === impl Windows ===

impl Windows {
    /// These windows; none for always.
    #[must_use]
    pub fn new(windows: Vec<Window>) -> Self {
        Self(windows)
    }

    /// Parses the value of an annotation: windows separated by `;`.
    ///
    /// # Errors
    /// Names the first window that is not valid.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let windows = text.split(SEPARATOR).map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self(windows))
    }

    /// Whether a time is in one of the windows.
    #[must_use]
    pub fn contain(&self, now: Timestamp) -> bool {
        self.0.is_empty() || self.0.iter().any(|window| window.contains(now))
    }

    /// When the next window begins; `None` if none begins within a week.
    #[must_use]
    pub fn next_begin(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.iter().filter_map(|window| window.next_begin(now)).min()
    }
}

// === impl Window ===

impl Window {
    /// Whether a time is in the window.
    #[must_use]
    pub fn contains(&self, now: Timestamp) -> bool {
        self.near(now).any(|(begin, end)| begin <= now && now < end)
    }

    /// When the window begins next; `None` if it does not within a week.
    #[must_use]
    pub fn next_begin(&self, now: Timestamp) -> Option<Timestamp> {
        self.near(now).find_map(|(begin, end)| (begin > now && begin < end).then_some(begin))
    }

    /// Begin and end of the window on the days around a time, in their order.
    fn near(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let yesterday = now.to_zoned(self.zone.clone()).date().yesterday();
        let mut dates = std::iter::successors(yesterday.ok(), |date| date.tomorrow().ok());
        (0..SEARCHED_DAYS).filter_map(move |_| {
            let date = dates.next()?;
            let is_day =
                self.days[usize::from(date.weekday().to_monday_zero_offset().unsigned_abs())];
            is_day.then(|| self.on(date)).flatten()
        })
    }

    fn on(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        let at = |date: Date, time: Time| {
            Some(date.to_datetime(time).to_zoned(self.zone.clone()).ok()?.timestamp())
        };
        let is_over_midnight = self.end.is_none_or(|end| end <= self.begin);
        let end_date = if is_over_midnight { date.tomorrow().ok()? } else { date };
        Some((at(date, self.begin)?, at(end_date, self.end.unwrap_or(Time::midnight()))?))
    }
}

impl FromStr for Window {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = |problem: String| ParseError { problem };
        let mut words: Vec<_> = text.split_whitespace().collect();
        let Some(index) = words.iter().position(|word| word.contains(':')) else {
            return Err(error(format!("{text:?} has no times")));
        };
        let (days, zone) = (&words[..index], &words[index + 1..]);
        let days = match days {
            [] => [true; 7],
            [days] => parse_days(days).map_err(error)?,
            [_, other, ..] => {
                return Err(error(format!("{other:?} is not a time; separate days by commas")));
            }
        };
        let zone = match zone {
            [] => TimeZone::UTC,
            [name] => TimeZone::get(name)
                .map_err(|_| error(format!("the time zone {name:?} is unknown")))?,
            [_, other, ..] => return Err(error(format!("{other:?} follows the time zone"))),
        };
        let (begin, end) = parse_times(words[index]).map_err(error)?;
        words.truncate(index + 2);
        Ok(Self { text: words.join(" "), days, begin, end, zone })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses days such as `Mon-Fri`, `Sat,Sun` or `Fri-Mon`.
fn parse_days(text: &str) -> Result<[bool; 7], String> {
    let day = |name: &str| {
        let found = DAYS.iter().position(|day| name.eq_ignore_ascii_case(day));
        found.ok_or_else(|| format!("{name:?} is not a day: Mon, Tue, Wed, Thu, Fri, Sat or Sun"))
    };
    let mut days = [false; 7];
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (mut at, last) = (day(first)?, day(last)?);
        days[at] = true;
        while at != last {
            at = (at + 1) % days.len();
            days[at] = true;
        }
    }
    Ok(days)
}

/// Parses `HH:MM-HH:MM`; an end of 24:00 is `None`.
fn parse_times(text: &str) -> Result<(Time, Option<Time>), String> {
    let (begin, end) =
        text.split_once('-').ok_or_else(|| format!("{text:?} has no end: HH:MM-HH:MM"))?;
    let begin = parse_time(begin)?;
    let end = if end == "24:00" { None } else { Some(parse_time(end)?) };
    if end == Some(begin) {
        return Err(format!("{text:?} is empty; the whole day is 00:00-24:00"));
    }
    Ok((begin, end))
}

fn parse_time(text: &str) -> Result<Time, String> {
    let problem = || format!("{text:?} is not a time of the day: HH:MM");
    let (hour, minute) = text.split_once(':').ok_or_else(problem)?;
    let number = |text: &str| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<i8>().ok()).flatten().ok_or_else(problem)
    };
    Time::new(number(hour)?, number(minute)?, 0, 0).map_err(|_| problem())
}

#[cfg(test)]
mod tests;
