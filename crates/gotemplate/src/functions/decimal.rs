//! Decimal arithmetic of sprig: `addf`, `subf`, `mulf`, `divf`. Go: `github.com/shopspring/decimal`.

use injectd_gocompat::number::format_float;
use num_bigint::{BigInt, Sign};

use super::cast::to_float;
use crate::{
    function::{Call, Function, Outcome, Param::Any},
    value::Value,
};

pub(super) const TABLE: &[Function] = &[
    Function::new("add1f", &[Any], |call| {
        run(call.value(0), [&Value::from(1_i64)].into_iter(), Decimal::plus)
    }),
    Function::new("addf", &[], |call| run(&Value::from(0.0), call.values(0), Decimal::plus))
        .variadic(Any),
    Function::new("divf", &[Any], |call| each(call, Decimal::divided)).variadic(Any),
    Function::new("mulf", &[Any], |call| each(call, Decimal::times)).variadic(Any),
    Function::new("subf", &[Any], |call| each(call, Decimal::minus)).variadic(Any),
];

/// Digits after the point of a quotient.
// `DivisionPrecision` of the package, which sprig leaves as it is.
const DIVISION_PLACES: i32 = 16;

/// Exponents beyond it are too large to compute with.
// A float reaches 10^308, so the result is no float long before this. Sums write out all digits
// between two exponents, and a chain of products adds to them.
const MAX_EXPONENT: i32 = 5_000;

type Operation = fn(Decimal, Decimal) -> Result<Decimal, String>;

fn each(call: &Call<'_, '_>, operation: Operation) -> Outcome {
    run(call.value(0), call.values(1), operation)
}

fn run<'v>(
    first: &Value,
    others: impl Iterator<Item = &'v Value>,
    operation: Operation,
) -> Outcome {
    let mut result = Decimal::of(to_float(first))?;
    for other in others {
        result = operation(result, Decimal::of(to_float(other))?)?;
        if result.exponent.abs() > MAX_EXPONENT {
            return Err("the number is too large".to_owned());
        }
    }
    Ok(result.float().into())
}

/// A number times a power of ten.
struct Decimal {
    value: BigInt,
    exponent: i32,
}

fn power_of_ten(exponent: i32) -> BigInt {
    BigInt::from(10).pow(exponent.unsigned_abs())
}

impl Decimal {
    /// The shortest decimal of a float. Go: `decimal.NewFromFloat`.
    fn of(float: f64) -> Result<Self, String> {
        if !float.is_finite() {
            let shown = format_float(float);
            return Err(format!("Cannot create a Decimal from {shown}"));
        }
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let places = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let value = digits.replace('.', "").parse().unwrap_or_default();
        Ok(Self { value, exponent: exponent - i32::try_from(places).unwrap_or(0) })
    }

    fn scaled(&self, exponent: i32) -> BigInt {
        &self.value * power_of_ten(self.exponent - exponent)
    }

    #[expect(clippy::needless_pass_by_value, reason = "operations have one type")]
    fn plus(self, other: Self) -> Result<Self, String> {
        let exponent = self.exponent.min(other.exponent);
        Ok(Self { value: self.scaled(exponent) + other.scaled(exponent), exponent })
    }

    fn minus(self, other: Self) -> Result<Self, String> {
        self.plus(Self { value: -other.value, exponent: other.exponent })
    }

    fn times(self, other: Self) -> Result<Self, String> {
        Ok(Self { value: self.value * other.value, exponent: self.exponent + other.exponent })
    }

    /// Rounded half away from zero. Go: `Decimal.Div`.
    fn divided(self, other: Self) -> Result<Self, String> {
        if other.value.sign() == Sign::NoSign {
            return Err("decimal division by 0".to_owned());
        }
        let shift = self.exponent - other.exponent + DIVISION_PLACES;
        let (mut dividend, mut divisor) = (self.value, other.value);
        if shift >= 0 {
            dividend *= power_of_ten(shift);
        } else {
            divisor *= power_of_ten(shift);
        }
        let negative = (dividend.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
        let (dividend, divisor) = (dividend.magnitude(), divisor.magnitude());
        let mut quotient = BigInt::from(dividend / divisor);
        if (dividend % divisor) * 2_u32 >= *divisor {
            quotient += 1;
        }
        let value = if negative { -quotient } else { quotient };
        Ok(Self { value, exponent: -DIVISION_PLACES })
    }

    /// The nearest float.
    fn float(&self) -> f64 {
        format!("{}e{}", self.value, self.exponent).parse().unwrap_or(0.0)
    }
}
