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
            Val::Text(_) => match Time::read(&call.text(0)?) {
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
