//! The form in which two Pods are compared.

mod amount;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::{
    apply::{whole, zero},
    schema::{Field, Kind, POD, Struct},
    time::{ZERO_TIME, seconds},
};

/// A Pod without the differences that mean nothing.
///
/// - Fields of `null`, `[]`, `{}` and `""` are absent, and so are `0` and `false` unless the field is
///   a pointer in Go. Fields of `{}` stay if they name a kind of source or handler (`emptyDir`) or
///   select everything (a label selector), and `""` if the field is a pointer in Go.
/// - A null in a list or a map is the empty value.
/// - Quantities are texts of digits and a power of ten: `1500m` and `1.5` are `15e-1`.
/// - Times are seconds since 1970.
/// - Floats without a fraction are integers in fields of integers.
///
/// Keys keep their order, which `serde_json` ignores in comparisons. Unknown fields stay as they
/// are unless they are null. Values of a wrong type stay. The recursion is as deep as the known
/// fields.
#[must_use]
pub fn normal(pod: &Value) -> Value {
    value(pod, &POD)
}

fn value(value: &Value, kind: &'static Kind) -> Value {
    match (kind, value) {
        (Kind::Struct(inner), Value::Object(map)) => fields(map, inner.get()),
        (Kind::Quantity, Value::Null) => amount::ZERO.into(),
        (kind, Value::Null) => zero(kind),
        (Kind::List(inner), Value::Array(list)) => {
            list.iter().map(|value| self::value(value, inner)).collect()
        }
        (Kind::Map(_, inner), Value::Object(map)) => {
            map.iter().map(|(key, value)| (key.clone(), self::value(value, inner))).collect()
        }
        (Kind::Quantity, Value::String(text)) => {
            amount::normal(text.trim()).unwrap_or_else(|| value.clone())
        }
        (Kind::Quantity, Value::Number(number)) => {
            amount::normal(&number.to_string()).unwrap_or_else(|| value.clone())
        }
        (Kind::Int32 | Kind::Int64 | Kind::IntOrString, Value::Number(number)) => {
            whole(number).map_or_else(|| value.clone(), Value::from)
        }
        (Kind::Time, Value::String(text)) => match seconds(text) {
            Some(ZERO_TIME) => Value::Null,
            Some(seconds) => seconds.into(),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

fn fields(map: &Map<String, Value>, types: &'static Struct) -> Value {
    let field = |(key, value): (&String, &Value)| {
        let Some(field) = types.field(key) else {
            return (!value.is_null()).then(|| (key.clone(), value.clone()));
        };
        if value.is_null() {
            return None;
        }
        let value = self::value(value, &field.kind);
        (!is_empty(&value, field, types)).then(|| (key.clone(), value))
    };
    map.iter().filter_map(field).collect()
}

fn is_empty(value: &Value, field: &Field, types: &Struct) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty() && !means_something(field, types),
        Value::String(text) => {
            let zero = matches!(field.kind, Kind::Quantity) && text == amount::ZERO;
            !field.pointer && (text.is_empty() || zero)
        }
        Value::Bool(truth) => !field.pointer && !truth,
        Value::Number(_) if matches!(field.kind, Kind::Time) => false,
        Value::Number(number) => !field.pointer && number.as_f64() == Some(0.0),
    }
}

fn means_something(field: &Field, types: &Struct) -> bool {
    let selects = field.kind.as_struct().is_some_and(|inner| inner.name == "LabelSelector");
    selects || types.union_of(field).is_some()
}
