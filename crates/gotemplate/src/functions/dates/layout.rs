//! Layouts of dates, which show how January 2, 15:04:05, 2006 is written.

use super::time::Time;

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A part of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'l> {
    Literal(&'l str),
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekDay,
    WeekDay,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperHalf,
    LowerHalf,
    Zone,
    /// An offset: how it is written with `Z` for UTC or always as a number, and its text.
    Offset {
        z: bool,
        colon: bool,
        minutes: bool,
        seconds: bool,
    },
    /// A fraction of the second: the separator, the digits, whether zeros are written.
    Fraction {
        separator: char,
        digits: usize,
        zeros: bool,
    },
}

// The first match counts: a part stands behind the longer ones that begin with it.
const FIXED: &[(&str, Part<'static>)] = &[
    ("January", Part::LongMonth),
    ("Monday", Part::LongWeekDay),
    ("MST", Part::Zone),
    ("002", Part::ZeroYearDay),
    ("01", Part::ZeroMonth),
    ("02", Part::ZeroDay),
    ("03", Part::ZeroHour12),
    ("04", Part::ZeroMinute),
    ("05", Part::ZeroSecond),
    ("06", Part::Year),
    ("15", Part::Hour),
    ("1", Part::NumMonth),
    ("2006", Part::LongYear),
    ("2", Part::Day),
    ("__2", Part::UnderYearDay),
    ("3", Part::Hour12),
    ("4", Part::Minute),
    ("5", Part::Second),
    ("PM", Part::UpperHalf),
    ("pm", Part::LowerHalf),
    ("-070000", Part::Offset { z: false, colon: false, minutes: true, seconds: true }),
    ("-07:00:00", Part::Offset { z: false, colon: true, minutes: true, seconds: true }),
    ("-0700", Part::Offset { z: false, colon: false, minutes: true, seconds: false }),
    ("-07:00", Part::Offset { z: false, colon: true, minutes: true, seconds: false }),
    ("-07", Part::Offset { z: false, colon: false, minutes: false, seconds: false }),
    ("Z070000", Part::Offset { z: true, colon: false, minutes: true, seconds: true }),
    ("Z07:00:00", Part::Offset { z: true, colon: true, minutes: true, seconds: true }),
    ("Z0700", Part::Offset { z: true, colon: false, minutes: true, seconds: false }),
    ("Z07:00", Part::Offset { z: true, colon: true, minutes: true, seconds: false }),
    ("Z07", Part::Offset { z: true, colon: false, minutes: false, seconds: false }),
];

/// The part at the beginning of a text and its length, if it is no literal.
fn part_at(text: &str) -> Option<(Part<'static>, usize)> {
    let lower_follows =
        |length: usize| text[length..].starts_with(|char: char| char.is_ascii_lowercase());
    if let Some(found) = FIXED.iter().find(|(name, _)| text.starts_with(name)) {
        return Some((found.1, found.0.len()));
    }
    // As in Go, a longer word such as "Janet" stays as it is.
    if text.starts_with("Jan") && !lower_follows(3) {
        return Some((Part::Month, 3));
    }
    if text.starts_with("Mon") && !lower_follows(3) {
        return Some((Part::WeekDay, 3));
    }
    // Go reads `_2006` as a literal and the year.
    if text.starts_with("_2") && !text.starts_with("_2006") {
        return Some((Part::UnderDay, 2));
    }
    fraction_at(text)
}

fn fraction_at(text: &str) -> Option<(Part<'static>, usize)> {
    let separator = text.chars().next().filter(|char| matches!(char, '.' | ','))?;
    let digit = text[1..].chars().next().filter(|char| matches!(char, '0' | '9'))?;
    let digits = text[1..].chars().take_while(|char| *char == digit).count();
    // In Go the digits must end here: `.001` is no fraction.
    if text[1 + digits..].starts_with(|char: char| char.is_ascii_digit()) {
        return None;
    }
    let zeros = digit == '0';
    Some((Part::Fraction { separator, digits, zeros }, 1 + digits))
}

/// The parts of a layout. Go: `nextStdChunk`.
pub(super) fn parts(layout: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut literal, mut at) = (0, 0);
    while at < layout.len() {
        if let Some((part, length)) = part_at(&layout[at..]) {
            if literal < at {
                parts.push(Part::Literal(&layout[literal..at]));
            }
            parts.push(part);
            at += length;
            literal = at;
        } else {
            at += layout[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    if literal < at {
        parts.push(Part::Literal(&layout[literal..]));
    }
    parts
}

/// Go: `Time.Format`.
pub(super) fn format(time: &Time, layout: &str) -> String {
    let civil = time.civil();
    let hour12 = (civil.hour + 11) % 12 + 1;
    let half = |upper, lower| if civil.hour >= 12 { upper } else { lower };
    let mut out = String::new();
    for part in parts(layout) {
        let text = match part {
            Part::Literal(text) => text.to_owned(),
            Part::LongMonth => MONTHS[civil.month - 1].to_owned(),
            Part::Month => MONTHS[civil.month - 1][..3].to_owned(),
            Part::NumMonth => civil.month.to_string(),
            Part::ZeroMonth => format!("{:02}", civil.month),
            Part::LongWeekDay => DAYS[civil.week_day].to_owned(),
            Part::WeekDay => DAYS[civil.week_day][..3].to_owned(),
            Part::Day => civil.day.to_string(),
            Part::UnderDay => format!("{:2}", civil.day),
            Part::ZeroDay => format!("{:02}", civil.day),
            Part::UnderYearDay => format!("{:3}", civil.year_day),
            Part::ZeroYearDay => format!("{:03}", civil.year_day),
            Part::Hour => format!("{:02}", civil.hour),
            Part::Hour12 => hour12.to_string(),
            Part::ZeroHour12 => format!("{hour12:02}"),
            Part::Minute => civil.minute.to_string(),
            Part::ZeroMinute => format!("{:02}", civil.minute),
            Part::Second => civil.second.to_string(),
            Part::ZeroSecond => format!("{:02}", civil.second),
            Part::LongYear => format!("{:04}", civil.year),
            Part::Year => format!("{:02}", civil.year.rem_euclid(100)),
            Part::UpperHalf => half("PM", "AM").to_owned(),
            Part::LowerHalf => half("pm", "am").to_owned(),
            Part::Zone if time.zone.is_empty() => offset(time.offset, false, true, false),
            Part::Zone => time.zone.to_string(),
            Part::Offset { z: true, .. } if time.offset == 0 => "Z".to_owned(),
            Part::Offset { colon, minutes, seconds, .. } => {
                offset(time.offset, colon, minutes, seconds)
            }
            Part::Fraction { separator, digits, zeros } => {
                fraction(time.nanos, separator, digits, zeros)
            }
        };
        out.push_str(&text);
    }
    out
}

fn offset(offset: i64, colon: bool, minutes: bool, seconds: bool) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let total = offset.abs();
    let colon = if colon { ":" } else { "" };
    let mut out = format!("{sign}{:02}", total / 3600);
    if minutes {
        out += &format!("{colon}{:02}", total / 60 % 60);
    }
    if seconds {
        out += &format!("{colon}{:02}", total % 60);
    }
    out
}

fn fraction(nanos: u32, separator: char, digits: usize, zeros: bool) -> String {
    let text = format!("{nanos:09}");
    let text = &text[..digits.min(9)];
    if zeros {
        return format!("{separator}{text:0<digits$}");
    }
    match text.trim_end_matches('0') {
        "" => String::new(),
        text => format!("{separator}{text}"),
    }
}
