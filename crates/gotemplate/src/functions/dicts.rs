//! Maps of sprig. `set`, `unset` and `merge` change the map, as in Go.

use super::merge;
use crate::{
    context::{MAX_DEPTH, Origin, Step, Use},
    function::{
        Call, Function, Outcome,
        Param::{Any, Map as Dict, Text as Str},
    },
    text::Text,
    value::{Element, Entries, List, Map, Value},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("deepCopy", &[Any], deep_copy),
    Function::new("dict", &[], dict).variadic(Any),
    Function::new("dig", &[], dig).variadic(Any),
    Function::new("get", &[Dict, Str], |call| {
        let (found, origin) = entry(call);
        Ok(found.map_or_else(|| "".into(), |value| call.found(value, origin)))
    })
    .precise(),
    Function::new("hasKey", &[Dict, Str], |call| Ok(entry(call).0.is_some().into())).precise(),
    Function::new("keys", &[], keys).variadic(Dict),
    Function::new("merge", &[Dict], |call| merge::run(call, false)).variadic(Dict).changes(),
    Function::new("mergeOverwrite", &[Dict], |call| merge::run(call, true))
        .variadic(Dict)
        .changes(),
    Function::new("mustDeepCopy", &[Any], deep_copy),
    Function::new("mustMerge", &[Dict], |call| merge::run(call, false)).variadic(Dict).changes(),
    Function::new("mustMergeOverwrite", &[Dict], |call| merge::run(call, true))
        .variadic(Dict)
        .changes(),
    Function::new("omit", &[Dict], |call| selected(call, false)).variadic(Str),
    Function::new("pick", &[Dict], |call| selected(call, true)).variadic(Str),
    Function::new("pluck", &[Str], |call| {
        let found = (1..call.count()).filter_map(|index| call.map(index).get(call.text(0)));
        Ok(List::new(found.collect()).into())
    })
    .variadic(Dict),
    Function::new("set", &[Dict, Str, Any], |call| {
        let (map, key, value) = (call.map(0), call.text(1).into(), call.value(2).clone());
        merge::set(call, &map, &key, value)?;
        Ok(call.value(0).clone().into())
    })
    .changes(),
    Function::new("unset", &[Dict, Str], |call| {
        let (map, key) = (call.map(0), call.text(1));
        if !map.is_nil() {
            map.change(|entries| drop(entries.remove(key)))?;
        }
        Ok(call.value(0).clone().into())
    })
    .changes(),
    Function::new("values", &[Dict], |call| {
        Ok(List::new(call.map(0).entries().values().cloned().collect()).into())
    }),
];

/// The entry of the map and key that a call has, and its place.
pub(super) fn entry(call: &mut Call<'_, '_>) -> (Option<Value>, Origin) {
    let key: Text = call.text(1).into();
    call.used(1, Use::Whole);
    let found = call.map(0).get(&key);
    let origin = call.step(call.origin(0), Step::Key(&key), found.as_ref());
    (found, origin)
}

fn dict(call: &mut Call<'_, '_>) -> Outcome {
    let mut entries = Entries::new();
    for index in (0..call.count()).step_by(2) {
        let key = super::strings::to_text(call, call.value(index))?;
        let value =
            // A last key without a value has an empty text in sprig.
            if index + 1 < call.count() { call.value(index + 1).clone() } else { "".into() };
        entries.insert(key, value);
    }
    Ok(Map::new(entries).into())
}

/// Go's order is random; ours is that of the maps, and sorted in each.
fn keys(call: &mut Call<'_, '_>) -> Outcome {
    let mut keys = Vec::new();
    for index in 0..call.count() {
        keys.extend(call.map(index).entries().keys().cloned().map(Value::Text));
    }
    Ok(List::of(Element::Text, keys).into())
}

fn selected(call: &mut Call<'_, '_>, wanted: bool) -> Outcome {
    let map = call.map(0);
    let names = (1..call.count()).map(|index| Text::from(call.text(index)));
    if wanted {
        let found = names.filter_map(|name| map.get(&name).map(|value| (name, value)));
        return Ok(Map::new(found.collect()).into());
    }
    let mut entries = map.entries().as_ref().clone();
    names.for_each(|name| drop(entries.remove(&name)));
    Ok(Map::new(entries).into())
}

/// The error of a type assertion of Go.
fn conversion(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Nil => "nil".into(),
        value => value.type_name(),
    };
    format!("interface conversion: interface {{}} is {found}, not {wanted}")
}

fn as_dict(value: &Value) -> Result<&Map, String> {
    match value {
        // sprig asserts the type in Go: a `map[string]string` is refused.
        Value::Map(map) if map.element().is_any() && map.has_plain_keys() => Ok(map),
        value => Err(conversion(value, "map[string]interface {}")),
    }
}

fn dig(call: &mut Call<'_, '_>) -> Outcome {
    let count = call.count();
    if count < 3 {
        return Err("dig needs at least three arguments".to_owned());
    }
    let mut map = as_dict(call.value(count - 1))?.clone();
    let mut names = Vec::new();
    for value in call.values(0).take(count - 2) {
        match value {
            Value::Text(name) => names.push(name.clone()),
            value => return Err(conversion(value, "string")),
        }
    }
    let last = names.pop().unwrap_or_default();
    let default = call.value(count - 2);
    for name in names {
        match map.get(&name) {
            Some(value) => map = as_dict(&value)?.clone(),
            None => return Ok(default.clone().into()),
        }
    }
    Ok(map.get(&last).unwrap_or_else(|| default.clone()).into())
}

fn deep_copy(call: &mut Call<'_, '_>) -> Outcome {
    let value = call.value(0).clone();
    if matches!(value, Value::Nil) {
        return Err("reflect: call of reflect.Value.Type on zero Value".to_owned());
    }
    Ok(copied(call, &value, 0)?.into())
}

/// A value with copies of its maps.
fn copied(call: &mut Call<'_, '_>, value: &Value, depth: usize) -> Result<Value, String> {
    call.spend(1)?;
    if depth > MAX_DEPTH {
        return Err(format!("values are nested deeper than {MAX_DEPTH} levels"));
    }
    match value {
        Value::Map(map) if map.element().is_any() && !map.is_nil() => {
            let mut entries = Entries::new();
            for (key, value) in map.entries().iter() {
                entries.insert(key.clone(), copied(call, value, depth + 1)?);
            }
            Ok(Map::new(entries).into())
        }
        Value::List(list) if !list.is_nil() => {
            let items: Result<Vec<_>, _> =
                list.iter().map(|item| copied(call, item, depth + 1)).collect();
            Ok(List::of(list.element(), items?).into())
        }
        value => Ok(value.clone()),
    }
}
