//! Dates of sprig. Go: `time`.
//!
//! The local time zone is UTC, as in the containers of injectors. There are no other zones with
//! names: they are an error, where Go takes UTC for a zone it does not know.

mod layout;
mod object;
mod parse;
mod time;

use std::{sync::Arc, time::UNIX_EPOCH};

use injectd_gocompat::{duration, number::parse_int};
use time::Time;

use super::durations::shown;
use crate::{
    function::{
        Call, Function, Outcome,
        Param::{Any, Object, Text as Str},
    },
    value::{IntKind, Value},
};

const TIME: crate::function::Param = Object("time.Time");

/// A million years: Go's years wrap around where seconds do.
const MAX_SECONDS: u64 = 31_556_952_000_000;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

pub(super) const TABLE: &[Function] = &[
    Function::new("ago", &[Any], ago).volatile(),
    Function::new("date", &[Str, Any], |call| format(call, Some(0), 1, None)).volatile(),
    Function::new("dateInZone", &[Str, Any, Str], |call| format(call, Some(0), 1, Some(2)))
        .volatile(),
    Function::new("dateModify", &[Str, TIME], |call| modify(call, false)),
    Function::new("date_in_zone", &[Str, Any, Str], |call| format(call, Some(0), 1, Some(2)))
        .volatile(),
    Function::new("date_modify", &[Str, TIME], |call| modify(call, false)),
    Function::new("duration", &[Any], |call| {
        let seconds = match call.value(0) {
            Value::Text(text) => text.as_str().and_then(|text| parse_int(text, 64)).unwrap_or(0),
            // sprig knows this type and texts, and takes an `int` for 0.
            Value::Int(seconds, IntKind::Int64) => *seconds,
            _ => 0,
        };
        Ok(shown(seconds.wrapping_mul(NANOS_PER_SECOND)).into())
    }),
    Function::new("durationRound", &[Any], round).volatile(),
    Function::new("htmlDate", &[Any], |call| format(call, None, 0, None)).volatile(),
    Function::new("htmlDateInZone", &[Any, Str], |call| format(call, None, 0, Some(1))).volatile(),
    Function::new("mustDateModify", &[Str, TIME], |call| modify(call, true)),
    Function::new("mustToDate", &[Str, Str], |call| {
        Ok(value(parse::parse(&call.str(0), &call.str(1))?).into())
    }),
    Function::new("must_date_modify", &[Str, TIME], |call| modify(call, true)),
    Function::new("now", &[], |call| Ok(value(now(call)).into())).volatile(),
    // sprig drops the error, which leaves the first second of the year 1.
    Function::new("toDate", &[Str, Str], |call| {
        Ok(value(parse::parse(&call.str(0), &call.str(1)).unwrap_or_default()).into())
    }),
    Function::new("unixEpoch", &[TIME], |call| {
        Ok(time_of(call.value(0)).unwrap_or_default().seconds.to_string().into())
    }),
];

const HTML_DATE: &str = "2006-01-02";

fn value(time: Time) -> Value {
    Value::Object(Arc::new(time))
}

fn now(call: &mut Call<'_, '_>) -> Time {
    let now = call.context.now();
    let (past, negative) = match now.duration_since(UNIX_EPOCH) {
        Ok(past) => (past, false),
        Err(before) => (before.duration(), true),
    };
    let seconds = i64::try_from(past.as_secs()).unwrap_or(0);
    let nanos = past.subsec_nanos();
    if negative {
        return Time { seconds: -seconds, ..Time::EPOCH };
    }
    Time { seconds, nanos, ..Time::EPOCH }
}

/// A time of the data.
fn time_of(value: &Value) -> Option<Time> {
    match value {
        Value::Object(object) => object.as_any().downcast_ref::<Time>().cloned(),
        _ => None,
    }
}

/// A time, or the seconds of an integer.
fn instant(value: &Value) -> Option<Time> {
    match value {
        Value::Int(seconds, IntKind::Int | IntKind::Int32 | IntKind::Int64) => {
            Some(Time { seconds: *seconds, ..Time::EPOCH })
        }
        value => time_of(value),
    }
}

/// Formats an argument in a zone, by default as a date of HTML; the present if it is no time.
fn format(
    call: &mut Call<'_, '_>,
    layout: Option<usize>,
    date: usize,
    zone: Option<usize>,
) -> Outcome {
    if let Some(zone) = zone {
        let zone = call.str(zone);
        if !matches!(zone.as_ref(), "" | "UTC" | "Local" | "Etc/UTC" | "GMT") {
            return Err(format!("the time zone {zone} is not available"));
        }
    }
    let time = instant(call.value(date));
    let time = time.unwrap_or_else(|| now(call));
    if time.seconds.unsigned_abs() > MAX_SECONDS {
        return Err("the date is out of range".to_owned());
    }
    let layout = layout.map_or(HTML_DATE.into(), |layout| call.str(layout));
    call.give(layout::format(&time.in_utc(), &layout))
}

fn modify(call: &mut Call<'_, '_>, must: bool) -> Outcome {
    let time = time_of(call.value(1)).unwrap_or_default();
    let text = call.str(0);
    match duration::parse(&text) {
        Some(nanos) => Ok(value(time.plus(nanos)).into()),
        None if must => {
            let shown = crate::quote::quote(text.as_bytes(), false);
            Err(format!("time: invalid duration {shown}"))
        }
        None => Ok(value(time).into()),
    }
}

/// The time since a date, in whole seconds.
fn ago(call: &mut Call<'_, '_>) -> Outcome {
    let date = match call.value(0) {
        Value::Int(_, IntKind::Int32) => None,
        value => instant(value),
    };
    let now = now(call);
    let nanos = date.map_or(0, |date| now.since(&date));
    let half = NANOS_PER_SECOND / 2 * nanos.signum();
    let rounded = nanos.saturating_add(half) / NANOS_PER_SECOND * NANOS_PER_SECOND;
    Ok(shown(rounded).into())
}

/// The greatest unit of a duration.
fn round(call: &mut Call<'_, '_>) -> Outcome {
    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * SECOND;
    const UNITS: [(u64, &str); 6] = [
        (365 * 24 * HOUR, "y"),
        (30 * 24 * HOUR, "mo"),
        (24 * HOUR, "d"),
        (HOUR, "h"),
        (60 * SECOND, "m"),
        (SECOND, "s"),
    ];
    let nanos = match call.value(0).clone() {
        Value::Text(text) => text.as_str().and_then(duration::parse).unwrap_or(0),
        Value::Int(nanos, IntKind::Int64) => nanos,
        value => time_of(&value).map_or(0, |date| now(call).since(&date)),
    };
    let nanos = nanos.unsigned_abs();
    let unit = UNITS.iter().find(|(unit, _)| nanos > *unit);
    Ok(unit
        .map_or_else(|| "0s".to_owned(), |(unit, name)| format!("{}{name}", nanos / unit))
        .into())
}
