//! Conversions of any value into numbers. Go: `github.com/spf13/cast` 1.10.

use injectd_gocompat::number::parse_float;

use crate::{
    number::parse_int,
    value::{Shape, Value},
};

/// An `int64`; what is no number is zero. Go: `cast.ToInt64`.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(int, _) => *int,
        #[expect(clippy::cast_possible_wrap, reason = "Go converts so")]
        Value::Uint(int, _) => *int as i64,
        Value::Float(float) => truncated(*float),
        Value::Bool(bool) => i64::from(*bool),
        Value::Text(text) => {
            text.as_str().and_then(|text| parse_int(without_decimals(text))).unwrap_or(0)
        }
        _ => 0,
    }
}

/// The integer below a float; out of range: what a processor gives for it.
#[expect(clippy::cast_possible_truncation, reason = "it is in range")]
pub(super) fn truncated(float: f64) -> i64 {
    if (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&float) {
        float as i64
    } else {
        i64::MIN
    }
}

/// A `float64`; what is no number is zero. Go: `cast.ToFloat64`.
#[expect(clippy::cast_precision_loss, reason = "Go converts so")]
pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(int, _) => *int as f64,
        Value::Uint(int, _) => *int as f64,
        Value::Float(float) => *float,
        Value::Bool(bool) => f64::from(u8::from(*bool)),
        Value::Text(text) => text.as_str().and_then(parse_float).unwrap_or(0.0),
        Value::Object(object) if matches!(object.shape(), Shape::NilPointer) => 0.0,
        _ => 0.0,
    }
}

/// Without the point and the digits after it. Go: `trimDecimal`.
fn without_decimals(text: &str) -> &str {
    let Some((whole, fraction)) = text.split_once('.') else { return text };
    let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    if !digits.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return text;
    }
    if digits.is_empty() { "0" } else { whole }
}
