//! A structure is filled in with the values of its expressions.

use std::borrow::Cow;

use injectd_gocompat::number::format_float;
use injectd_merge::schema::{Kind, Merge};
use injectd_templates::{
    expression::Expression,
    named::NamedList,
    structure::{Entries, Slot, Structure, TextPart, expected, holds},
    union::rivals,
};
use serde_json::{Map, Value};

use crate::scope::{Failure, Scope};

/// What a structure becomes; `None` if it is absent.
pub(crate) fn structure(of: &Structure, scope: &Scope<'_>) -> Result<Option<Value>, Failure> {
    match of {
        Structure::Constant(value) => Ok(Some(value.to_value())),
        Structure::Slot(slot) => self::slot(slot, scope),
        Structure::Text(parts) => text(parts, scope).map(Some),
        Structure::List(items) => {
            let items = items.iter().map(|item| structure(item, scope));
            let items: Result<Vec<_>, _> = items.filter_map(Result::transpose).collect();
            items.map(|items| Some(Value::Array(items)))
        }
        Structure::Map(entries) => map(entries, scope),
    }
}

fn slot(of: &Slot, scope: &Scope<'_>) -> Result<Option<Value>, Failure> {
    let expression = &of.expression;
    let Some(value) = scope.value(expression)? else { return Ok(None) };
    let fail = |text| Failure::of(expression, text);
    scope.spent.bytes(length(&value)).map_err(fail)?;
    let value = match (of.kind, &value) {
        (Some(Kind::Text(_)), Value::Number(_) | Value::Bool(_)) => {
            Value::String(printed(expression, &value)?.into_owned())
        }
        _ => value,
    };
    check(&value, of.kind, scope.is_strict).map_err(fail)?;
    // The check of a template sees constants only: a directive in a value would pass it, also for a
    // namespaced template, which may have none.
    if of.kind.is_some() && has_directive(&value) {
        let text = "a value of an expression has $patch: write it in the overlay itself";
        return Err(Failure::of(expression, text));
    }
    Ok(Some(value))
}

/// Whether a value would remove or replace what a pod has.
fn has_directive(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_directive),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name == "$patch" || has_directive(value))
        }
        _ => false,
    }
}

fn text(parts: &[TextPart], scope: &Scope<'_>) -> Result<Value, Failure> {
    let mut text = String::new();
    for part in parts {
        match part {
            TextPart::Constant(constant) => text.push_str(constant),
            TextPart::Expression(expression) => {
                let value = scope.value(expression)?;
                let none = || Failure::of(expression, "there is no value to put into the text");
                let value = value.ok_or_else(none)?;
                let printed = printed(expression, &value)?;
                let spent = scope.spent.bytes(printed.len());
                spent.map_err(|text| Failure::of(expression, text))?;
                text.push_str(&printed);
            }
        }
    }
    Ok(Value::String(text))
}

/// A value as it stands in a text.
fn printed<'v>(expression: &Expression, value: &'v Value) -> Result<Cow<'v, str>, Failure> {
    match value {
        Value::String(text) => Ok(text.into()),
        Value::Bool(value) => Ok(value.to_string().into()),
        Value::Number(number) if number.is_f64() => {
            Ok(format_float(number.as_f64().unwrap_or_default()).into())
        }
        Value::Number(number) => Ok(number.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            let text = "expected a text, number or boolean, found a list, a map or null";
            Err(Failure::of(expression, text))
        }
    }
}

fn map(of: &Entries, scope: &Scope<'_>) -> Result<Option<Value>, Failure> {
    let mut fields = Map::with_capacity(of.fields.len());
    let mut lacks_one = false;
    for (name, field) in &of.fields {
        match structure(field, scope)? {
            Some(value) => {
                fields.insert(String::from(&**name), value);
            }
            None => lacks_one = true,
        }
    }
    if let Some(from) = &of.from {
        match slot(from, scope)? {
            Some(Value::Object(base)) => {
                let bytes: usize = base.values().map(length).sum();
                let spent = scope.spent.bytes(bytes);
                spent.map_err(|text| Failure::of(&from.expression, text))?;
                fields = over(base, fields, of.kind);
            }
            Some(_) => {
                let text = "expected an object as the base, found another value";
                return Err(Failure::of(&from.expression, text));
            }
            None => lacks_one = true,
        }
    }
    // A map that is written empty, such as `emptyDir: {}`, stays.
    Ok((!fields.is_empty() || !lacks_one).then_some(Value::Object(fields)))
}

/// Fields laid over a base: objects are merged, lists with keys by their keys, all else is replaced.
fn over(
    mut base: Map<String, Value>,
    own: Map<String, Value>,
    kind: Option<&Kind>,
) -> Map<String, Value> {
    for (name, value) in own {
        if let Some(types) = kind.and_then(Kind::as_struct) {
            let rivals: Vec<_> = rivals(types, &name, &base).cloned().collect();
            for rival in rivals {
                base.shift_remove(&rival);
            }
        }
        let (kind, merge) = field(kind, &name);
        let merged = match (base.remove(&name), value) {
            (Some(Value::Object(base)), Value::Object(own)) => Value::Object(over(base, own, kind)),
            (Some(Value::Array(base)), Value::Array(own)) => match (kind, merge) {
                (Some(Kind::List(item)), Merge::ByKey(key)) => {
                    Value::Array(Keyed { item, key }.over(base, own))
                }
                _ => Value::Array(own),
            },
            (_, own) => own,
        };
        base.insert(name, merged);
    }
    base
}

/// A list whose items have keys.
struct Keyed<'k> {
    item: &'k Kind,
    key: &'static str,
}

impl Keyed<'_> {
    fn over(&self, mut base: Vec<Value>, own: Vec<Value>) -> Vec<Value> {
        let list = self.item.as_struct().map(|types| NamedList { key: self.key, types });
        let identity = |item: &Value| list.and_then(|list| list.name(item));
        for item in own {
            let name = identity(&item);
            let found = base.iter_mut().find(|one| name.is_some() && identity(one) == name);
            match (found, item) {
                (Some(Value::Object(base)), Value::Object(own)) => {
                    *base = over(std::mem::take(base), own, Some(self.item));
                }
                (_, item) => base.push(item),
            }
        }
        base
    }
}

/// What a field of an object is, and how a list in it is merged.
fn field<'k>(of: Option<&'k Kind>, name: &str) -> (Option<&'k Kind>, Merge) {
    match of {
        Some(Kind::Struct(of)) => match of.get().field(name) {
            Some(field) => (Some(&field.kind), field.merge),
            None => (None, Merge::Replace),
        },
        Some(Kind::Map(_, value)) => (Some(value), Merge::Replace),
        _ => (None, Merge::Replace),
    }
}

/// Whether a value of an expression fits into its place, with all that is in it.
fn check(value: &Value, kind: Option<&Kind>, is_strict: bool) -> Result<(), String> {
    match (kind, value) {
        (_, Value::Null) => {
            Err("null is no value: give optional.none() to leave the field out".to_owned())
        }
        (Some(Kind::List(item)), Value::Array(items)) => {
            items.iter().try_for_each(|value| check(value, Some(item), is_strict))
        }
        (Some(Kind::Map(_, of)), Value::Object(fields)) => {
            fields.values().try_for_each(|value| check(value, Some(of), is_strict))
        }
        (Some(Kind::Struct(of)), Value::Object(fields)) => {
            fields.iter().try_for_each(|(name, value)| match of.get().field(name) {
                Some(field) => {
                    let checked = check(value, Some(&field.kind), is_strict);
                    checked.map_err(|text| format!("{name}: {text}"))
                }
                None if is_strict => Err(format!("{} has no field {name:?}", of.get().name)),
                None => check(value, None, is_strict),
            })
        }
        (None | Some(Kind::Any), Value::Array(items)) => {
            items.iter().try_for_each(|value| check(value, None, is_strict))
        }
        (None | Some(Kind::Any), Value::Object(fields)) => {
            fields.values().try_for_each(|value| check(value, None, is_strict))
        }
        (None, _) => Ok(()),
        (Some(kind), value) if holds(kind, value) => Ok(()),
        // The value may be one that a pod's author wrote: it is not shown.
        (Some(kind), value) => {
            let found = injectd_merge::json_type(value);
            Err(format!("expected {}, found a value of type {found}", expected(kind)))
        }
    }
}

/// Bytes of a value, about as many as it has in JSON.
fn length(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| length(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + length(value) + 4).sum::<usize>() + 2
        }
    }
}
