//! Arguments that are literals, which the API server converts when it compiles.

use cel::{
    Context, Value,
    common::ast::{CallExpr, Expr, IdedExpr, LiteralValue},
};
use injectd_gocompat::duration;

/// Checks the arguments of a function.
pub(super) fn check(name: &str, args: &[IdedExpr]) -> Result<(), String> {
    let literal = args.last().and_then(|it| match &it.expr {
        Expr::Literal(LiteralValue::String(text)) => Some((it, text.inner())),
        _ => None,
    });
    let Some((literal, text)) = literal else { return Ok(()) };
    let is_valid = match (name, args.len()) {
        ("duration", 1) => duration::parse(text).is_some(),
        ("timestamp", 1) => is_timestamp(text),
        ("bool" | "int" | "uint" | "double", 1) => is_evaluated(name, None, literal),
        ("matches", _) => {
            let empty = Expr::Literal(LiteralValue::String(String::new().into()));
            is_evaluated(name, Some(IdedExpr { id: 0, expr: empty }), literal)
        }
        _ => true,
    };
    if is_valid { Ok(()) } else { Err(format!("invalid {name} argument")) }
}

fn is_evaluated(name: &str, target: Option<IdedExpr>, literal: &IdedExpr) -> bool {
    let (target, args) = (target.map(Box::new), vec![literal.clone()]);
    let call = CallExpr { func_name: name.to_owned(), target, args };
    let call = IdedExpr { id: 0, expr: Expr::Call(call) };
    Value::resolve(&call, &Context::default()).is_ok()
}

/// RFC 3339, as Go reads it.
fn is_timestamp(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range).filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
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
        limits.iter().all(|(at, limit)| number(*at..at + 2).is_some_and(|it| it < *limit));
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
            assert!(is_timestamp(good), "{good}");
        }
        for bad in
            ["", "2020", "2021-02-29T00:00:00Z", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00"]
        {
            assert!(!is_timestamp(bad), "{bad}");
        }
    }
}
