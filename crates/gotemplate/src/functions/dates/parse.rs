//! Reads dates by their layouts. Go: `time.ParseInLocation` in UTC.

use super::{
    layout::{DAYS, MONTHS, Part, parts},
    time::{Time, days},
};
use crate::quote::quote;

/// What was read so far.
#[derive(Default)]
struct Read<'v> {
    rest: &'v str,
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
    /// `PM` (true) or `AM`.
    half: Option<bool>,
    offset: Option<i64>,
    zone: Option<String>,
}

/// Why a part could not be read.
enum Wrong {
    Bad,
    Range(&'static str),
}

/// A time. The error names the layout and the text, as Go's does.
pub(super) fn parse(layout: &str, text: &str) -> Result<Time, String> {
    let error = |message: String| {
        let shown = quote(text.as_bytes(), false);
        format!("parsing time {shown}{message}")
    };
    let cannot = |rest: &str, part: &str| {
        let (layout, rest) = (quote(layout.as_bytes(), false), quote(rest.as_bytes(), false));
        let part = quote(part.as_bytes(), false);
        error(format!(" as {layout}: cannot parse {rest} as {part}"))
    };
    let mut read = Read { rest: text, ..Read::default() };
    let parts = parts(layout);
    let mut at = 0;
    for (index, part) in parts.iter().enumerate() {
        let length = written(layout, at, part, parts.get(index + 1..).unwrap_or_default());
        let shown = &layout[at..at + length];
        at += length;
        let before = read.rest;
        if let Part::Literal(literal) = part {
            if !read.skip(literal) {
                return Err(cannot(read.rest, literal));
            }
            continue;
        }
        let fraction_follows = matches!(parts.get(index + 1), Some(Part::Fraction { .. }));
        match read.part(*part, fraction_follows) {
            Ok(()) => {}
            Err(Wrong::Bad) => return Err(cannot(before, shown)),
            Err(Wrong::Range(what)) => return Err(error(format!(": {what} out of range"))),
        }
    }
    if !read.rest.is_empty() {
        return Err(error(format!(": extra text: {}", quote(read.rest.as_bytes(), false))));
    }
    read.time().map_err(|what| error(format!(": {what}")))
}

/// The length of a part in its layout.
fn written(layout: &str, at: usize, part: &Part<'_>, after: &[Part<'_>]) -> usize {
    if let Part::Literal(text) = part {
        return text.len();
    }
    // A part ends where the next one begins: the shortest text that leaves the same parts.
    let rest = &layout[at..];
    let ends = (1..=rest.len()).filter(|end| rest.is_char_boundary(*end));
    let is_end = |end: &usize| parts(&rest[..*end]) == [*part] && parts(&rest[*end..]) == after;
    ends.rev().find(is_end).unwrap_or(rest.len())
}

impl Read<'_> {
    /// Goes over a literal; a blank in it is any number of blanks.
    fn skip(&mut self, literal: &str) -> bool {
        let mut literal = literal;
        while let Some(char) = literal.chars().next() {
            if char == ' ' {
                if !self.rest.is_empty() && !self.rest.starts_with(' ') {
                    return false;
                }
                literal = literal.trim_start_matches(' ');
                self.rest = self.rest.trim_start_matches(' ');
                continue;
            }
            let Some(rest) = self.rest.strip_prefix(char) else { return false };
            self.rest = rest;
            literal = &literal[char.len_utf8()..];
        }
        true
    }

    fn take(&mut self, bytes: usize) -> Result<&str, Wrong> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(Wrong::Bad)?;
        self.rest = rest;
        Ok(taken)
    }

    fn digits(&mut self, least: usize, most: usize) -> Result<i64, Wrong> {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if count < least {
            return Err(Wrong::Bad);
        }
        self.take(count)?.parse().map_err(|_| Wrong::Bad)
    }

    /// Two digits, or one where no zero is asked for.
    fn number(&mut self, fixed: bool) -> Result<i64, Wrong> {
        self.digits(if fixed { 2 } else { 1 }, 2)
    }

    fn name(&mut self, names: &[&str], length: Option<usize>) -> Result<i64, Wrong> {
        for (index, name) in names.iter().enumerate() {
            let name = &name[..length.unwrap_or(name.len())];
            let found = self.rest.get(..name.len());
            if found.is_some_and(|found| found.eq_ignore_ascii_case(name)) {
                self.take(name.len())?;
                return Ok(i64::try_from(index).unwrap_or(0));
            }
        }
        Err(Wrong::Bad)
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each part")]
    fn part(&mut self, part: Part<'_>, fraction_follows: bool) -> Result<(), Wrong> {
        match part {
            Part::Literal(_) => {}
            Part::LongMonth => self.month = Some(self.name(&MONTHS, None)? + 1),
            Part::Month => self.month = Some(self.name(&MONTHS, Some(3))? + 1),
            Part::NumMonth | Part::ZeroMonth => {
                let month = self.number(part == Part::ZeroMonth)?;
                self.month = Some(in_range(month, 1, 12, "month")?);
            }
            Part::LongWeekDay => drop(self.name(&DAYS, None)?),
            Part::WeekDay => drop(self.name(&DAYS, Some(3))?),
            Part::Day | Part::UnderDay | Part::ZeroDay => {
                if part == Part::UnderDay {
                    self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                }
                self.day = Some(self.number(part == Part::ZeroDay)?);
            }
            Part::UnderYearDay | Part::ZeroYearDay => {
                if part == Part::UnderYearDay {
                    self.rest = self.rest.trim_start_matches(' ');
                }
                let least = if part == Part::ZeroYearDay { 3 } else { 1 };
                self.year_day = Some(self.digits(least, 3)?);
            }
            Part::Hour => self.hour = in_range(self.number(false)?, 0, 23, "hour")?,
            Part::Hour12 | Part::ZeroHour12 => {
                let hour = self.number(part == Part::ZeroHour12)?;
                self.hour = in_range(hour, 0, 12, "hour")?;
            }
            Part::Minute | Part::ZeroMinute => {
                let minute = self.number(part == Part::ZeroMinute)?;
                self.minute = in_range(minute, 0, 59, "minute")?;
            }
            Part::Second | Part::ZeroSecond => {
                let second = self.number(part == Part::ZeroSecond)?;
                self.second = in_range(second, 0, 59, "second")?;
                if !fraction_follows {
                    self.fraction()?;
                }
            }
            Part::LongYear => self.year = self.digits(4, 4)?,
            Part::Year => {
                let year = self.digits(2, 2)?;
                self.year = year + if year >= 69 { 1900 } else { 2000 };
            }
            Part::UpperHalf => self.half = Some(self.half_of("PM", "AM")?),
            Part::LowerHalf => self.half = Some(self.half_of("pm", "am")?),
            Part::Zone => self.zone()?,
            Part::Offset { .. } => self.offset(part)?,
            Part::Fraction { digits, zeros: true, .. } => {
                if self.rest.len() <= digits || !self.rest.starts_with(['.', ',']) {
                    return Err(Wrong::Bad);
                }
                self.take(1)?;
                let count = self.rest.bytes().take(digits).take_while(u8::is_ascii_digit).count();
                if count < digits {
                    return Err(Wrong::Bad);
                }
                self.nanos_of(digits)?;
            }
            Part::Fraction { .. } => self.fraction()?,
        }
        Ok(())
    }

    fn half_of(&mut self, afternoon: &str, morning: &str) -> Result<bool, Wrong> {
        let found = self.take(2)?;
        if found != afternoon && found != morning {
            return Err(Wrong::Bad);
        }
        Ok(found == afternoon)
    }

    /// A fraction that may be there.
    fn fraction(&mut self) -> Result<(), Wrong> {
        let digits = self.rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        if self.rest.starts_with(['.', ',']) && digits > 0 {
            self.take(1)?;
            self.nanos_of(digits)?;
        }
        Ok(())
    }

    fn nanos_of(&mut self, digits: usize) -> Result<(), Wrong> {
        let text = self.take(digits)?;
        let text = format!("{:0<9}", &text[..digits.min(9)]);
        self.nanos = text.parse().map_err(|_| Wrong::Bad)?;
        Ok(())
    }

    /// An abbreviation of three to five upper-case letters.
    fn zone(&mut self) -> Result<(), Wrong> {
        if let Some(rest) = self.rest.strip_prefix("UTC") {
            self.rest = rest;
            self.zone = Some("UTC".to_owned());
            self.offset = Some(0);
            return Ok(());
        }
        let letters = self.rest.bytes().take(6).take_while(u8::is_ascii_uppercase).count();
        if !(3..=5).contains(&letters) {
            return Err(Wrong::Bad);
        }
        self.zone = Some(self.take(letters)?.to_owned());
        Ok(())
    }

    fn offset(&mut self, part: Part<'_>) -> Result<(), Wrong> {
        let Part::Offset { z, colon, minutes, seconds } = part else { return Ok(()) };
        if z && self.rest.starts_with('Z') {
            self.take(1)?;
            (self.offset, self.zone) = (Some(0), Some("UTC".to_owned()));
            return Ok(());
        }
        let sign = match self.take(1)? {
            "+" => 1,
            "-" => -1,
            _ => return Err(Wrong::Bad),
        };
        let mut total = in_range(self.digits(2, 2)?, 0, 24, "time zone offset hour")? * 3600;
        for (is_there, unit, what) in
            [(minutes, 60, "time zone offset minute"), (seconds, 1, "time zone offset second")]
        {
            if is_there {
                if colon && self.take(1)? != ":" {
                    return Err(Wrong::Bad);
                }
                total += in_range(self.digits(2, 2)?, 0, 60, what)? * unit;
            }
        }
        self.offset = Some(sign * total);
        Ok(())
    }

    fn time(self) -> Result<Time, &'static str> {
        let hour = match (self.half, self.hour) {
            (Some(true), hour) if hour < 12 => hour + 12,
            (Some(false), 12) => 0,
            (_, hour) => hour,
        };
        let year_length = days(self.year + 1, 1, 1) - days(self.year, 1, 1);
        let day_number = if let Some(year_day) = self.year_day {
            if !(1..=year_length).contains(&year_day) {
                return Err("day-of-year out of range");
            }
            days(self.year, 1, 1) + year_day - 1
        } else {
            let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
            let (next_year, next_month) =
                if month == 12 { (self.year + 1, 1) } else { (self.year, month + 1) };
            let length = days(next_year, next_month, 1) - days(self.year, month, 1);
            if !(1..=length).contains(&day) {
                return Err("day out of range");
            }
            days(self.year, month, day)
        };
        let local = day_number * 86_400 + hour * 3600 + self.minute * 60 + self.second;
        let offset = self.offset.unwrap_or(0);
        let zone = match (self.zone, self.offset) {
            (Some(zone), _) => zone.into(),
            (None, None | Some(0)) => "UTC".into(),
            (None, Some(_)) => "".into(),
        };
        Ok(Time { seconds: local - offset, nanos: self.nanos, offset, zone })
    }
}

fn in_range(value: i64, least: i64, most: i64, what: &'static str) -> Result<i64, Wrong> {
    if (least..=most).contains(&value) { Ok(value) } else { Err(Wrong::Range(what)) }
}
