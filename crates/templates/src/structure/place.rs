//! What fits into a place of a Pod.

use injectd_cel::TypeDef;
use injectd_merge::schema::Kind;
use serde_json::{Number, Value};

/// What a place holds, in the words of a sentence: "expected …".
#[must_use]
pub fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Text(_) => "a text".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Int32 => "an integer of 32 bits".to_owned(),
        Kind::Int64 => "an integer of 64 bits".to_owned(),
        Kind::IntOrString => "an integer or a text".to_owned(),
        Kind::Quantity => "a quantity, such as 100m or 64Mi".to_owned(),
        Kind::Time => "a time, such as 2026-01-31T12:00:00Z".to_owned(),
        Kind::Any => "anything".to_owned(),
        Kind::Struct(of) => format!("an object ({})", of.get().name),
        Kind::List(item) => format!("a list, each item {}", expected(item)),
        Kind::Map(_, value) => format!("an object, each value {}", expected(value)),
    }
}

/// What a constant is, in the words of a sentence: "found …".
pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Whether a constant without parts fits into a place.
#[must_use]
pub fn holds(kind: &Kind, value: &Value) -> bool {
    match (kind, value) {
        (Kind::Any, _) | (Kind::Text(_), Value::String(_)) | (Kind::Boolean, Value::Bool(_)) => {
            true
        }
        (Kind::IntOrString | Kind::Quantity | Kind::Time, Value::String(text)) => {
            kind.accepts_text(text)
        }
        (Kind::Int32 | Kind::IntOrString, Value::Number(number)) => {
            number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
        }
        (Kind::Int64, Value::Number(number)) => number.is_i64(),
        (Kind::Quantity, Value::Number(number)) => is_quantity(number),
        _ => false,
    }
}

fn is_quantity(number: &Number) -> bool {
    Kind::Quantity.accepts_number(&number.to_string())
}

/// Whether values of a type may fit into a place; a type that is known only when the expression is
/// evaluated may.
pub(super) fn fits(of: &TypeDef, kind: &Kind) -> bool {
    match (of, kind) {
        (TypeDef::Optional(of), _) => fits(of, kind),
        (_, Kind::Text(_)) => prints(of),
        (TypeDef::List(of), Kind::List(item)) => fits_exactly(of, item),
        (TypeDef::Map(of), Kind::Map(_, value)) => fits_exactly(of, value),
        (TypeDef::PodPart(of), Kind::Struct(place)) => of == place,
        (TypeDef::Dyn, _)
        | (_, Kind::Any)
        | (TypeDef::Bool, Kind::Boolean)
        | (TypeDef::Int | TypeDef::Uint, Kind::Int32 | Kind::Int64 | Kind::IntOrString)
        | (TypeDef::String, Kind::IntOrString | Kind::Quantity | Kind::Time)
        | (TypeDef::Quantity | TypeDef::Int | TypeDef::Double, Kind::Quantity)
        | (TypeDef::Timestamp, Kind::Time)
        | (TypeDef::Object { .. }, Kind::Struct(_) | Kind::Map(..))
        | (TypeDef::Map(_), Kind::Struct(_)) => true,
        _ => false,
    }
}

/// Items of a list and values of a map are not printed: a number in a list of texts does not fit.
fn fits_exactly(of: &TypeDef, kind: &Kind) -> bool {
    match kind {
        Kind::Text(_) => matches!(of, TypeDef::Dyn | TypeDef::String),
        _ => fits(of, kind),
    }
}

/// Whether values of a type print themselves in a text.
pub(super) fn prints(of: &TypeDef) -> bool {
    matches!(
        of,
        TypeDef::Dyn
            | TypeDef::String
            | TypeDef::Int
            | TypeDef::Uint
            | TypeDef::Double
            | TypeDef::Bool
            | TypeDef::Quantity
            | TypeDef::Duration
    )
}
