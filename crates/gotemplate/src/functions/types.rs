//! Functions of sprig that look at types.

use std::sync::Arc;

use crate::{
    context::{Context, MAX_DEPTH},
    function::{
        Function,
        Param::{Any, Text},
    },
    value::{Shape, Value},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("deepEqual", &[Any, Any], |call| {
        let (one, other) = (call.value(0).clone(), call.value(1).clone());
        Ok(deep_equal(&one, &other, call.context)?.into())
    }),
    Function::new("kindIs", &[Text, Any], |call| {
        Ok((call.text(0) == kind(call.value(1)).as_bytes()).into())
    }),
    Function::new("kindOf", &[Any], |call| Ok(kind(call.value(0)).into())),
    Function::new("typeIs", &[Text, Any], |call| {
        Ok((call.text(0) == call.value(1).type_name().as_bytes()).into())
    }),
    Function::new("typeIsLike", &[Text, Any], |call| {
        let (target, found) = (call.text(0), call.value(1).type_name());
        let found = found.as_bytes();
        Ok((target == found || found.strip_prefix(b"*") == Some(target)).into())
    }),
    Function::new("typeOf", &[Any], |call| Ok(call.value(0).type_name().as_ref().into())),
];

fn kind(value: &Value) -> &'static str {
    value.kind().name()
}

/// Whether two values have the same type and equal content. Go: `reflect.DeepEqual`.
///
/// Each comparison of two values is a step.
pub(super) fn deep_equal(
    one: &Value,
    other: &Value,
    context: &mut Context<'_>,
) -> Result<bool, String> {
    compare(one, other, context, 0)
}

#[expect(clippy::too_many_lines, reason = "one arm for each type")]
fn compare(
    one: &Value,
    other: &Value,
    context: &mut Context<'_>,
    depth: usize,
) -> Result<bool, String> {
    context.spend(1 + Context::steps_of(one).min(Context::steps_of(other)))?;
    if depth > MAX_DEPTH {
        return Err(format!("values are nested deeper than {MAX_DEPTH} levels"));
    }
    Ok(match (one, other) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Int(one, kind), Value::Int(other, other_kind)) => {
            one == other && kind == other_kind
        }
        (Value::Uint(one, kind), Value::Uint(other, other_kind)) => {
            one == other && kind == other_kind
        }
        #[expect(clippy::float_cmp, reason = "Go compares so")]
        (Value::Float(one), Value::Float(other)) => one == other,
        #[expect(clippy::float_cmp, reason = "Go compares so")]
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Text(one), Value::Text(other)) => one == other,
        (Value::List(first), Value::List(second)) => {
            if one.type_name() != other.type_name()
                || first.is_nil() != second.is_nil()
                || first.len() != second.len()
            {
                return Ok(false);
            }
            for (one, other) in first.iter().zip(second.iter()) {
                if !compare(one, other, context, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(first), Value::Map(second)) => {
            let (entries, others) = (first.entries(), second.entries());
            if one.type_name() != other.type_name()
                || first.is_nil() != second.is_nil()
                || entries.len() != others.len()
            {
                return Ok(false);
            }
            for (key, value) in entries.iter() {
                let Some(other) = others.get(key) else { return Ok(false) };
                if !compare(value, other, context, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(first), Value::Object(second)) => {
            if Arc::ptr_eq(first, second) {
                return Ok(true);
            }
            if one.type_name() != other.type_name() {
                return Ok(false);
            }
            match (first.shape(), second.shape()) {
                (Shape::Named(one), Shape::Named(other)) => {
                    return compare(&one, &other, context, depth + 1);
                }
                (Shape::NilPointer, Shape::NilPointer) => return Ok(true),
                (Shape::NilPointer, _) | (_, Shape::NilPointer) => return Ok(false),
                _ => {}
            }
            let (fields, others) = (first.fields(), second.fields());
            for ((_, one), (_, other)) in fields.iter().zip(&others) {
                if !compare(one, other, context, depth + 1)? {
                    return Ok(false);
                }
            }
            fields.len() == others.len()
        }
        _ => false,
    })
}
