//! The value of a node.

use injectd_gocompat::number;
use serde_json::{Number, Value};

use crate::{WholeFloats, scalar::Scalar};

/// A scalar, which may be a key, or a list or mapping.
#[derive(Clone)]
pub(super) enum Node<'a> {
    Scalar(Scalar<'a>),
    Tree(Value),
}

/// The value in JSON.
///
/// # Errors
/// JSON does not have it.
pub(super) fn value(node: Node<'_>, whole_floats: WholeFloats) -> Result<Value, String> {
    Ok(match node {
        Node::Tree(value) => value,
        Node::Scalar(Scalar::Null) => Value::Null,
        Node::Scalar(Scalar::Bool(flag)) => Value::Bool(flag),
        Node::Scalar(Scalar::Int(number)) => Value::Number(number.into()),
        Node::Scalar(Scalar::Uint(number)) => Value::Number(number.into()),
        Node::Scalar(Scalar::Float(number)) => Value::Number(as_json(number, whole_floats)?),
        Node::Scalar(Scalar::Text(text)) => Value::String(text.into_owned()),
    })
}

/// Go writes a float below 1e21 without an exponent, so that `1e3` becomes the integer 1000.
fn as_json(number: f64, whole_floats: WholeFloats) -> Result<Number, String> {
    let Some(float) = Number::from_f64(number) else {
        return Err("JSON has no infinity and no NaN; quote the value".to_owned());
    };
    let minus_zero = number == 0.0 && number.is_sign_negative();
    let keep = whole_floats == WholeFloats::Floats;
    if keep || number.fract() != 0.0 || minus_zero || number.abs() >= 1e21 {
        return Ok(float);
    }
    let digits = number::plain_decimal(number);
    let whole = digits.parse::<i64>().map(Number::from);
    Ok(whole.or_else(|_| digits.parse::<u64>().map(Number::from)).unwrap_or(float))
}
