//! Go's own functions.

use super::{
    compare::{equal, less},
    escape,
};
use crate::{
    context::{Origin, Step, Use},
    function::{
        Call, Function, Lazy, Outcome,
        Param::{Text, Value as Reflect},
        Slot,
    },
    print,
    value::{Element, Kind, Map, Shape, Value},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("and", &[Reflect], |_| Ok(Slot::NONE)).variadic(Reflect).lazy(Lazy::And),
    Function::new("call", &[Reflect], |_| Ok(Slot::NONE)).variadic(Reflect).lazy(Lazy::Call),
    Function::new("eq", &[Reflect], eq).variadic(Reflect),
    Function::new("ge", &[Reflect, Reflect], |call| Ok((!less(call)?).into())),
    Function::new("gt", &[Reflect, Reflect], |call| Ok((!less_or_equal(call)?).into())),
    Function::new("html", &[], |call| escaped(call, escape::html)).variadic(Reflect),
    Function::new("index", &[Reflect], index).variadic(Reflect),
    Function::new("js", &[], |call| escaped(call, escape::js)).variadic(Reflect),
    Function::new("le", &[Reflect, Reflect], |call| Ok(less_or_equal(call)?.into())),
    Function::new("len", &[Reflect], len),
    Function::new("lt", &[Reflect, Reflect], |call| Ok(less(call)?.into())),
    Function::new("ne", &[Reflect, Reflect], |call| Ok((!equal(call)?).into())),
    Function::new("not", &[Reflect], not),
    Function::new("or", &[Reflect], |_| Ok(Slot::NONE)).variadic(Reflect).lazy(Lazy::Or),
    Function::new("print", &[], sprint).variadic(crate::function::Param::Any),
    Function::new("printf", &[Text], sprintf).variadic(crate::function::Param::Any),
    Function::new("println", &[], sprintln).variadic(crate::function::Param::Any),
    Function::new("slice", &[Reflect], slice).variadic(Reflect),
    Function::new("urlquery", &[], |call| escaped(call, escape::url_query)).variadic(Reflect),
];

fn less_or_equal(call: &mut Call<'_, '_>) -> Result<bool, String> {
    Ok(less(call)? || equal(call)?)
}

fn eq(call: &mut Call<'_, '_>) -> Outcome {
    Ok(equal(call)?.into())
}

fn not(call: &mut Call<'_, '_>) -> Outcome {
    call.used(0, Use::Truth);
    Ok((!call.value(0).is_true()).into())
}

fn limit(call: &Call<'_, '_>) -> usize {
    call.context.limits.output_bytes
}

fn sprint(call: &mut Call<'_, '_>) -> Outcome {
    Ok(print::sprint(call.values(0), limit(call))?.into())
}

fn sprintln(call: &mut Call<'_, '_>) -> Outcome {
    Ok(print::sprintln(call.values(0), limit(call))?.into())
}

fn sprintf(call: &mut Call<'_, '_>) -> Outcome {
    let args: Vec<_> = call.values(1).collect();
    Ok(print::sprintf(call.text(0), &args, limit(call))?.into())
}

/// The printed arguments, escaped. A missing one is printed as an action prints it.
fn escaped(call: &mut Call<'_, '_>, escape: fn(&[u8]) -> Vec<u8>) -> Outcome {
    for index in 0..call.count() {
        call.used(index, Use::Whole);
    }
    let shown = |slot: &Slot| match &slot.value {
        Some(value) if !matches!(value, Value::Nil) => value.clone(),
        _ => Value::from("<no value>"),
    };
    let values: Vec<_> = call.args.iter().map(shown).collect();
    let text = match values.as_slice() {
        [Value::Text(text)] => text.to_vec(),
        values => {
            // What stands for a missing argument is a string, too.
            print::sprint_printable(values.iter(), limit(call))?
        }
    };
    call.give(escape(&text))
}

/// A pointer of the data is what it points to; the error is for a nil one.
fn len(call: &mut Call<'_, '_>) -> Outcome {
    call.used(0, Use::Keys);
    let slot = &call.args[0];
    let Some(value) = &slot.value else {
        return Err("reflect: call of reflect.Value.Type on zero Value".to_owned());
    };
    let length = match value.plain().as_ref() {
        Value::Nil => return Err("len of nil pointer".to_owned()),
        Value::Object(object) if matches!(object.shape(), Shape::NilPointer) => {
            return Err("len of nil pointer".to_owned());
        }
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => return Err(format!("len of type {}", target_name(value))),
    };
    Ok(i64::try_from(length).unwrap_or(i64::MAX).into())
}

/// The type of what a pointer points to.
fn target_name(value: &Value) -> String {
    let name = value.type_name();
    match value.kind() {
        Kind::Pointer => name.trim_start_matches('*').to_owned(),
        _ => name.into_owned(),
    }
}

/// An index of a list, or an error. Go: `indexArg`.
fn list_index(index: &Slot, most: usize) -> Result<usize, String> {
    let int = match index.value.as_ref().map(Value::plain).as_deref() {
        None | Some(Value::Nil) => return Err("cannot index slice/array with nil".to_owned()),
        Some(Value::Int(int, _)) => *int,
        #[expect(clippy::cast_possible_wrap, reason = "Go converts so")]
        Some(Value::Uint(int, _)) => *int as i64,
        Some(value) => {
            return Err(format!("cannot index slice/array with type {}", value.type_name()));
        }
    };
    // Not less than the length only: of an index that is the length, the reflection fails later,
    // with another text.
    let found = usize::try_from(int).ok().filter(|index| *index <= most);
    found.ok_or_else(|| format!("index out of range: {int}"))
}

fn index(call: &mut Call<'_, '_>) -> Outcome {
    let mut args = std::mem::take(&mut call.args).into_iter();
    let mut item = args.next().unwrap_or_default().unboxed();
    if item.value.is_none() {
        call.context.used(item.origin, Use::Truth, None);
        return Err("index of untyped nil".to_owned());
    }
    let mut last = true;
    for index in args {
        last = false;
        call.context.used(index.origin, Use::Whole, index.value.as_ref());
        item = indexed(call, &item, &index)?;
    }
    if last {
        return Ok(item);
    }
    Ok(item)
}

fn indexed(call: &mut Call<'_, '_>, item: &Slot, index: &Slot) -> Outcome {
    let Some(value) = &item.value else { return Err("index of nil pointer".to_owned()) };
    match value.plain().as_ref() {
        Value::Nil => Err("index of nil pointer".to_owned()),
        Value::Object(object) if matches!(object.shape(), Shape::NilPointer) => {
            Err("index of nil pointer".to_owned())
        }
        Value::Text(text) => {
            call.context.used(item.origin, Use::Whole, item.value.as_ref());
            let at = list_index(index, text.len())?;
            let byte = text.get(at).ok_or("reflect: string index out of range")?;
            Ok(Value::Uint(u64::from(*byte), crate::value::UintKind::Uint8).into())
        }
        Value::List(list) => {
            let at = list_index(index, list.len())?;
            let found = list.get(at).ok_or("reflect: slice index out of range")?;
            let origin = call.context.step(item.origin, Step::Item(at), Some(found));
            let boxed = list.element().is_any();
            Ok(Slot { value: Some(found.clone()), boxed, origin })
        }
        Value::Map(map) => entry(call, item.origin, map, index),
        _ => Err(format!("can't index item of type {}", target_name(value))),
    }
}

fn entry(call: &mut Call<'_, '_>, from: Origin, map: &Map, index: &Slot) -> Outcome {
    let key_name = map.key_name();
    let key = match &index.value {
        Some(Value::Text(key)) if map.has_plain_keys() => key.clone(),
        None | Some(Value::Nil) => {
            return Err(format!("value is nil; should be of type {key_name}"));
        }
        Some(value) => match value.plain().as_ref() {
            Value::Text(key) if value.type_name() == key_name => key.clone(),
            _ => return Err(format!("value has type {}; should be {key_name}", value.type_name())),
        },
    };
    let found = map.get(&key);
    let origin = call.context.step(from, Step::Key(&key), found.as_ref());
    let value = found.unwrap_or_else(|| map.element().zero());
    let boxed = map.element().is_any() || matches!(value, Value::Nil);
    Ok(Slot { value: Some(value), boxed, origin })
}

fn slice(call: &mut Call<'_, '_>) -> Outcome {
    call.used(0, Use::Whole);
    let item = call.args[0].clone().unboxed();
    let Some(value) = &item.value else { return Err("slice of untyped nil".to_owned()) };
    let count = call.count() - 1;
    if count > 3 {
        return Err(format!("too many slice indexes: {count}"));
    }
    let length = match value.plain().as_ref() {
        Value::Text(_) if count == 3 => {
            return Err("cannot 3-index slice a string".to_owned());
        }
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Object(object) if matches!(object.shape(), Shape::NilPointer) => {
            return Err("slice of nil pointer".to_owned());
        }
        _ => return Err(format!("can't slice item of type {}", target_name(value))),
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(&call.args[1..]) {
        *bound = list_index(index, length)?;
    }
    let [from, to, most] = bounds;
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}"));
    }
    if count == 3 && to > most {
        return Err(format!("invalid slice index: {to} > {most}"));
    }
    Ok(match value.plain().as_ref() {
        Value::Text(text) => text[from..to].into(),
        Value::List(list) => {
            Value::List(crate::value::List::of(list.element(), list[from..to].to_vec())).into()
        }
        _ => Slot::from(Map::nil(Element::Any)),
    })
}
