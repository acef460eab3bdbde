//! Conversions between types (`common/types` of cel-go).

use injectd_gocompat::{duration, number};

use super::{Call, Function};
use crate::value::{Bytes, Fault, InvalidTime, Res, Time, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "bool" => |call| match call.at(0)? {
            value @ Val::Bool(_) => Ok(value.clone()),
            Val::Text(_) => parsed("bool", number::parse_bool(&call.text(0)?).map(Val::Bool)),
            _ => Fault::overload(),
        },
        "int" => int,
        "uint" => uint,
        "double" => double,
        "string" => string,
        "bytes" => |call| match call.at(0)? {
            value @ Val::Bytes(_) => Ok(value.clone()),
            Val::Text(_) => {
                let text = call.text(0)?;
                Ok(Val::Bytes(Bytes::Made(text.as_bytes().into())))
            }
            _ => Fault::overload(),
        },
        "duration" => |call| match call.at(0)? {
            value @ Val::Duration(_) => Ok(value.clone()),
            // Declared, but cel-go has no conversion.
            Val::Int(_) => {
                Fault::error("type conversion error from 'int' to 'google.protobuf.Duration'")
            }
            Val::Text(_) => parsed("duration", duration::parse(&call.text(0)?).map(Val::Duration)),
            _ => Fault::overload(),
        },
        "timestamp" => |call| match call.at(0)? {
            value @ Val::Timestamp(_) => Ok(value.clone()),
            Val::Int(seconds) => in_range(Time::of_second(*seconds)),
            Val::Text(_) => match timestamp(&call.text(0)?) {
                Err(InvalidTime::Form) => parsed("timestamp", None),
                found => in_range(found.ok()),
            },
            _ => Fault::overload(),
        },
        _ => return None,
    })
}

fn parsed<'d>(what: &str, value: Option<Val<'d>>) -> Res<Val<'d>> {
    value.map_or_else(|| Fault::error(format!("invalid {what} argument")), Ok)
}

fn in_range<'d>(time: Option<Time>) -> Res<Val<'d>> {
    match time {
        Some(time) => Ok(Val::Timestamp(time)),
        None => Fault::error("timestamp overflow"),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn int<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    // 2^63 is exact; cel-go rejects -2^63 as well.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match call.at(0)? {
        value @ Val::Int(_) => Ok(value.clone()),
        Val::Uint(value) => match i64::try_from(*value) {
            Ok(value) => Ok(Val::Int(value)),
            Err(_) => Fault::error("integer overflow"),
        },
        Val::Double(value) if value.abs() < LIMIT => Ok(Val::Int(*value as i64)),
        Val::Double(_) => Fault::error("integer overflow"),
        Val::Text(_) => parsed("int", number::parse_int(&call.text(0)?, 64).map(Val::Int)),
        Val::Timestamp(time) => Ok(Val::Int(time.second())),
        Val::Duration(nanos) => Ok(Val::Int(*nanos)),
        _ => Fault::overload(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn uint<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    // 2^64 is exact.
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    match call.at(0)? {
        value @ Val::Uint(_) => Ok(value.clone()),
        Val::Int(value) => match u64::try_from(*value) {
            Ok(value) => Ok(Val::Uint(value)),
            Err(_) => Fault::error("unsigned integer overflow"),
        },
        Val::Double(value) if (0.0..LIMIT).contains(value) => Ok(Val::Uint(*value as u64)),
        Val::Double(_) => Fault::error("unsigned integer overflow"),
        Val::Text(_) => parsed("uint", number::parse_uint(&call.text(0)?).map(Val::Uint)),
        _ => Fault::overload(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "as in Go")]
fn double<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    match call.at(0)? {
        value @ Val::Double(_) => Ok(value.clone()),
        Val::Int(value) => Ok(Val::Double(*value as f64)),
        Val::Uint(value) => Ok(Val::Double(*value as f64)),
        Val::Text(_) => parsed("double", number::parse_float(&call.text(0)?).map(Val::Double)),
        _ => Fault::overload(),
    }
}

fn string<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let text = match call.at(0)? {
        value @ Val::Text(_) => return Ok(value.clone()),
        Val::Bytes(bytes) => {
            call.work.spend(bytes.len())?;
            return match std::str::from_utf8(bytes) {
                Ok(text) => call.made(text),
                Err(_) => Fault::error("invalid UTF-8 in bytes"),
            };
        }
        value => match scalar_text(value) {
            Some(text) => text,
            None => return Fault::overload(),
        },
    };
    call.made(&text)
}

/// The text of a value that is short.
pub(super) fn scalar_text(value: &Val<'_>) -> Option<String> {
    Some(match value {
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Double(value) => number::format_float(*value),
        Val::Duration(nanos) => duration_text(*nanos),
        Val::Timestamp(time) => time.to_string(),
        Val::Ip(address) => address.to_string(),
        Val::Cidr(cidr) => cidr.to_string(),
        _ => return None,
    })
}

/// A duration in seconds.
#[expect(clippy::cast_precision_loss, reason = "cel-go prints the float")]
pub(crate) fn duration_text(nanos: i64) -> String {
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{}s", seconds as f64 + rest as f64 / 1e9)
}

/// RFC 3339, as Go reads it.
///
/// # Errors
/// It has another form, or another year than 1 to 9999.
pub(super) fn timestamp(text: &str) -> Result<Time, InvalidTime> {
    if is_timestamp(text) { Time::read(text) } else { Err(InvalidTime::Form) }
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
    let text = text.strip_prefix('.').map_or(Some(text), |rest| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_those_of_rfc_3339() {
        for good in ["2020-02-29T00:00:00Z", "2020-01-31T23:59:59.123+01:00"] {
            assert!(timestamp(good).is_ok(), "{good}");
        }
        for bad in
            ["", "2020", "2021-02-29T00:00:00Z", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00"]
        {
            assert!(timestamp(bad).is_err(), "{bad}");
        }
    }
}
