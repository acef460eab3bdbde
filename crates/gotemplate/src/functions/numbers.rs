//! Arithmetic of sprig.

use super::cast::{to_float, to_int};
use crate::{
    function::{
        Call, Function, Outcome,
        Param::{Any, Float, Int, Text},
    },
    print,
    value::{Element, IntKind, List, Value},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("add", &[], |call| long(fold(call, 0, 0, i64::wrapping_add))).variadic(Any),
    Function::new("add1", &[Any], |call| long(to_int(call.value(0)).wrapping_add(1))),
    Function::new("atoi", &[Text], |call| {
        let text = call.str(0);
        Ok(injectd_gocompat::number::parse_int(&text, 64).unwrap_or(0).into())
    }),
    Function::new("biggest", &[Any], |call| long(first_fold(call, i64::max))).variadic(Any),
    Function::new("ceil", &[Any], |call| Ok(to_float(call.value(0)).ceil().into())),
    Function::new("div", &[Any, Any], |call| divided(call, i64::wrapping_div)),
    Function::new("float64", &[Any], |call| Ok(to_float(call.value(0)).into())),
    Function::new("floor", &[Any], |call| Ok(to_float(call.value(0)).floor().into())),
    Function::new("int", &[Any], |call| Ok(to_int(call.value(0)).into())),
    Function::new("int64", &[Any], |call| long(to_int(call.value(0)))),
    Function::new("max", &[Any], |call| long(first_fold(call, i64::max))).variadic(Any),
    Function::new("maxf", &[Any], |call| Ok(float_fold(call, greater).into())).variadic(Any),
    Function::new("min", &[Any], |call| long(first_fold(call, i64::min))).variadic(Any),
    Function::new("minf", &[Any], |call| Ok(float_fold(call, lesser).into())).variadic(Any),
    Function::new("mod", &[Any, Any], |call| divided(call, i64::wrapping_rem)),
    Function::new("mul", &[Any], |call| long(first_fold(call, i64::wrapping_mul))).variadic(Any),
    Function::new("round", &[Any, Int], round).variadic(Float),
    Function::new("seq", &[], seq).variadic(Int),
    Function::new("sub", &[Any, Any], |call| {
        long(to_int(call.value(0)).wrapping_sub(to_int(call.value(1))))
    }),
    Function::new("toDecimal", &[Any], to_decimal),
    Function::new("until", &[Int], |call| {
        let count = call.int(0);
        listed(call, 0, count, if count < 0 { -1 } else { 1 })
    }),
    Function::new("untilStep", &[Int, Int, Int], |call| {
        let (start, end, step) = (call.int(0), call.int(1), call.int(2));
        listed(call, start, end, step)
    }),
];

fn long(value: i64) -> Outcome {
    Ok(Value::Int(value, IntKind::Int64).into())
}

fn fold(call: &Call<'_, '_>, from: usize, start: i64, with: fn(i64, i64) -> i64) -> i64 {
    call.values(from).map(to_int).fold(start, with)
}

fn first_fold(call: &Call<'_, '_>, with: fn(i64, i64) -> i64) -> i64 {
    fold(call, 1, to_int(call.value(0)), with)
}

fn float_fold(call: &Call<'_, '_>, with: fn(f64, f64) -> f64) -> f64 {
    call.values(1).map(to_float).fold(to_float(call.value(0)), with)
}

/// Go: `math.Max`, for which NaN is the greatest but for infinity.
fn greater(one: f64, other: f64) -> f64 {
    if one == f64::INFINITY || other == f64::INFINITY {
        return f64::INFINITY;
    }
    if one.is_nan() || other.is_nan() {
        return f64::NAN;
    }
    // Of two zeros the positive one is greater.
    if one == 0.0 && other == 0.0 && one.is_sign_negative() {
        return other;
    }
    if other > one { other } else { one }
}

/// Go: `math.Min`.
fn lesser(one: f64, other: f64) -> f64 {
    -greater(-one, -other)
}

fn divided(call: &Call<'_, '_>, with: fn(i64, i64) -> i64) -> Outcome {
    match to_int(call.value(1)) {
        0 => Err("runtime error: integer divide by zero".to_owned()),
        divisor => long(with(to_int(call.value(0)), divisor)),
    }
}

fn round(call: &mut Call<'_, '_>) -> Outcome {
    let round_on = if call.count() > 2 { call.float(2) } else { 0.5 };
    // Beyond 308 the power is infinite or zero, however far it is beyond.
    let places = i32::try_from(call.int(1)).unwrap_or(if call.int(1) < 0 { -999 } else { 999 });
    let power = 10_f64.powi(places);
    let digit = power * to_float(call.value(0));
    let fraction = digit - digit.trunc();
    let whole = if fraction >= round_on { digit.ceil() } else { digit.floor() };
    Ok((whole / power).into())
}

/// The numbers from `start` to before `end`. Sprig: `untilStep`.
fn numbers(call: &mut Call<'_, '_>, start: i64, end: i64, step: i64) -> Result<Vec<i64>, String> {
    let goes_down = end < start;
    if goes_down && step >= 0 || !goes_down && step <= 0 {
        return Ok(Vec::new());
    }
    // In 64 bits the distance from the least to the greatest number overflows.
    let distance = i128::from(end) - i128::from(start);
    let count = usize::try_from(distance.unsigned_abs().div_ceil(step.unsigned_abs().into()));
    // Before the list is made: a range of all numbers must not take the memory first.
    call.spend(count.unwrap_or(usize::MAX))?;
    let next = |number: &i64| number.checked_add(step);
    let is_within = |number: &i64| if goes_down { *number > end } else { *number < end };
    Ok(std::iter::successors(Some(start), next).take_while(is_within).collect())
}

fn listed(call: &mut Call<'_, '_>, start: i64, end: i64, step: i64) -> Outcome {
    let found = numbers(call, start, end, step)?;
    Ok(List::of(Element::Int, found.into_iter().map(Value::from).collect()).into())
}

fn seq(call: &mut Call<'_, '_>) -> Outcome {
    let params: Vec<_> = (0..call.count()).map(|index| call.int(index)).collect();
    let (start, end, step) = match *params.as_slice() {
        [end] => (1, end, if end < 1 { -1 } else { 1 }),
        [start, end] => (start, end, if end < start { -1 } else { 1 }),
        [start, step, end] if end < start && step > 0 => (start, start, step),
        [start, step, end] => (start, end, step),
        _ => return Ok("".into()),
    };
    // As the command of this name, it counts to its end, which `untilStep` does not reach.
    let beyond = match params.as_slice() {
        [start, step, end] if end < start && *step > 0 => 0,
        _ if end < start => -1,
        _ => 1,
    };
    let numbers = numbers(call, start, end.saturating_add(beyond), step)?;
    let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    call.give(texts.join(" "))
}

/// Octal digits as a number.
fn to_decimal(call: &mut Call<'_, '_>) -> Outcome {
    let text = print::sprint_one(call.value(0), call.context.limits.output_bytes)?;
    let text = String::from_utf8_lossy(&text);
    long(i64::from_str_radix(&text, 8).unwrap_or(0))
}
