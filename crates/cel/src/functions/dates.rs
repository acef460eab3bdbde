//! Parts of times and durations.

use jiff::{
    civil::DateTime,
    tz::{Offset, TimeZone},
};

use super::{Call, Function};
use crate::{
    limits::shortened,
    value::{Fault, Res, Val},
};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        ".getFullYear" => |call| part(call, |time| i64::from(time.year())),
        ".getMonth" => |call| part(call, |time| i64::from(time.month()) - 1),
        ".getDayOfYear" => |call| part(call, |time| i64::from(time.day_of_year()) - 1),
        ".getDayOfMonth" => |call| part(call, |time| i64::from(time.day()) - 1),
        ".getDate" => |call| part(call, |time| i64::from(time.day())),
        ".getDayOfWeek" => {
            |call| part(call, |time| i64::from(time.weekday().to_sunday_zero_offset()))
        }
        ".getHours" => |call| time_part(call, 3600, |time| i64::from(time.hour())),
        ".getMinutes" => |call| time_part(call, 60, |time| i64::from(time.minute())),
        ".getSeconds" => |call| time_part(call, 1, |time| i64::from(time.second())),
        ".getMilliseconds" => |call| match call.at(0)? {
            Val::Duration(nanos) => Ok(Val::Int(nanos / 1_000_000)),
            _ => part(call, |time| i64::from(time.subsec_nanosecond() / 1_000_000)),
        },
        _ => return None,
    })
}

/// A part of a time, or a duration in units of so many seconds.
fn time_part<'d>(call: &mut Call<'_, 'd>, seconds: i64, of: fn(&DateTime) -> i64) -> Res<Val<'d>> {
    match call.at(0)? {
        Val::Duration(nanos) => Ok(Val::Int(nanos / 1_000_000_000 / seconds)),
        _ => part(call, of),
    }
}

fn part<'d>(call: &mut Call<'_, 'd>, of: fn(&DateTime) -> i64) -> Res<Val<'d>> {
    let Val::Timestamp(time) = *call.at(0)? else { return Fault::overload() };
    let zone = if call.arguments.len() > 1 {
        let name = call.text(1)?;
        match zone(&name) {
            Some(zone) => zone,
            None => return Fault::error(format!("unknown time zone {}", shortened(&name))),
        }
    } else {
        TimeZone::UTC
    };
    match time.within(&zone) {
        Some(local) => Ok(Val::Int(of(&local))),
        None => Fault::unknown("a time is after the year 9999 in its zone"),
    }
}

/// A zone by its name, or by its hours and minutes.
fn zone(name: &str) -> Option<TimeZone> {
    let Some((hours, minutes)) = name.split_once(':') else {
        return match name {
            // The zone of the process: a container has none.
            "" | "UTC" | "Local" => Some(TimeZone::UTC),
            name => TimeZone::get(name).ok(),
        };
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let minutes = if name.starts_with('-') { -minutes } else { minutes };
    let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
    Some(TimeZone::fixed(Offset::from_seconds(seconds).ok()?))
}
