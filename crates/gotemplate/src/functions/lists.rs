//! Lists of sprig. They are copied, never changed.

use std::borrow::Cow;

use super::{cast::to_int, defaults::is_empty, types::deep_equal};
use crate::{
    function::{
        Call, Function, Outcome,
        Param::{Any, Int},
    },
    value::{Element, List, Value},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("append", &[Any, Any], append),
    Function::new("chunk", &[Int, Any], chunk),
    Function::new("compact", &[Any], compact),
    Function::new("concat", &[], concat).variadic(Any),
    Function::new("first", &[Any], first),
    Function::new("has", &[Any, Any], has),
    Function::new("initial", &[Any], initial),
    Function::new("last", &[Any], last),
    Function::new("list", &[], list).variadic(Any),
    Function::new("mustAppend", &[Any, Any], append),
    Function::new("mustChunk", &[Int, Any], chunk),
    Function::new("mustCompact", &[Any], compact),
    Function::new("mustFirst", &[Any], first),
    Function::new("mustHas", &[Any, Any], has),
    Function::new("mustInitial", &[Any], initial),
    Function::new("mustLast", &[Any], last),
    Function::new("mustPrepend", &[Any, Any], prepend),
    Function::new("mustPush", &[Any, Any], append),
    Function::new("mustRest", &[Any], rest),
    Function::new("mustReverse", &[Any], reverse),
    Function::new("mustSlice", &[Any], slice).variadic(Any),
    Function::new("mustUniq", &[Any], uniq),
    Function::new("mustWithout", &[Any], without).variadic(Any),
    Function::new("prepend", &[Any, Any], prepend),
    Function::new("push", &[Any, Any], append),
    Function::new("rest", &[Any], rest),
    Function::new("reverse", &[Any], reverse),
    Function::new("slice", &[Any], slice).variadic(Any),
    Function::new("tuple", &[], list).variadic(Any),
    Function::new("uniq", &[Any], uniq),
    Function::new("without", &[Any], without).variadic(Any),
];

/// What Go says when a type is asked of nil.
pub(super) const NIL_DEREFERENCE: &str =
    "runtime error: invalid memory address or nil pointer dereference";

/// The items of a list; `task` is what cannot be done on another type.
fn items<'v>(value: &'v Value, task: &str) -> Result<Cow<'v, List>, String> {
    match value {
        Value::Nil => Err(NIL_DEREFERENCE.to_owned()),
        Value::List(list) => Ok(Cow::Borrowed(list)),
        value => match value.plain().into_owned() {
            Value::List(list) => Ok(Cow::Owned(list)),
            plain => Err(format!("{task} {}", plain.kind().name())),
        },
    }
}

fn made(items: Vec<Value>) -> Outcome {
    Ok(List::new(items).into())
}

fn list(call: &mut Call<'_, '_>) -> Outcome {
    made(call.values(0).cloned().collect())
}

fn append(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot push on type")?;
    made([&list, std::slice::from_ref(call.value(1))].concat())
}

fn prepend(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot prepend on type")?;
    made([std::slice::from_ref(call.value(1)), &list].concat())
}

fn chunk(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(1), "Cannot chunk type")?;
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let chunks = match call.int(0) {
        // As many chunks as Go counts there.
        size if size < 0 && length > 1 && length - 1 <= -size => Vec::new(),
        size if size < -1 && length == 1 => vec![Value::List(list.as_ref().clone())],
        size => {
            let size = usize::try_from(size).ok().filter(|size| *size > 0);
            let size = size.ok_or("runtime error: makeslice: len out of range")?;
            list.chunks(size).map(|chunk| List::new(chunk.to_vec()).into()).collect()
        }
    };
    Ok(List::of(Element::List, chunks).into())
}

fn compact(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot compact on type")?;
    made(list.iter().filter(|item| !is_empty(item)).cloned().collect())
}

fn concat(call: &mut Call<'_, '_>) -> Outcome {
    let lists: Result<Vec<_>, _> =
        call.values(0).map(|value| items(value, "Cannot concat type")).collect();
    let lists = lists.map_err(|message| match message.as_str() {
        NIL_DEREFERENCE => message,
        _ => message + " as list",
    })?;
    let length = lists.iter().map(|list| list.len()).sum();
    let lists: Vec<_> = lists.into_iter().map(Cow::into_owned).collect();
    call.spend(length)?;
    if length == 0 {
        // Go's list begins as nil, and nothing was appended.
        return Ok(List::nil(Element::Any).into());
    }
    made(lists.iter().flat_map(|list| list.iter().cloned()).collect())
}

fn first(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot find first on type")?;
    Ok(list.first().cloned().unwrap_or_default().into())
}

fn last(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot find last on type")?;
    Ok(list.last().cloned().unwrap_or_default().into())
}

fn rest(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot find rest on type")?;
    match list.split_first() {
        Some((_, rest)) => made(rest.to_vec()),
        None => Ok(List::nil(Element::Any).into()),
    }
}

fn initial(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot find initial on type")?;
    match list.split_last() {
        Some((_, initial)) => made(initial.to_vec()),
        None => Ok(List::nil(Element::Any).into()),
    }
}

fn reverse(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot find reverse on type")?;
    made(list.iter().rev().cloned().collect())
}

/// Whether a list has an item. Each comparison is a step, since lists and values may be long.
fn contains(call: &mut Call<'_, '_>, list: &[Value], item: &Value) -> Result<bool, String> {
    for other in list {
        if deep_equal(item, other, call.context)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot find uniq on type")?.into_owned();
    let mut found = Vec::new();
    for item in list.iter() {
        if !contains(call, &found, item)? {
            found.push(item.clone());
        }
    }
    made(found)
}

fn without(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "Cannot find without on type")?.into_owned();
    let omitted: Vec<_> = call.values(1).cloned().collect();
    let mut kept = Vec::new();
    for item in list.iter() {
        if !contains(call, &omitted, item)? {
            kept.push(item.clone());
        }
    }
    made(kept)
}

fn has(call: &mut Call<'_, '_>) -> Outcome {
    if matches!(call.value(1), Value::Nil) {
        // Other functions fail for nil; sprig asks for it in this one only.
        return Ok(false.into());
    }
    let list = items(call.value(1), "Cannot find has on type")?.into_owned();
    let item = call.value(0).clone();
    Ok(contains(call, &list, &item)?.into())
}

fn slice(call: &mut Call<'_, '_>) -> Outcome {
    let list = items(call.value(0), "list should be type of slice or array but")?;
    if list.is_empty() {
        // Not an empty list: sprig returns an untyped nil.
        return Ok(Value::Nil.into());
    }
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let from = if call.count() > 1 { to_int(call.value(1)) } else { 0 };
    let to = if call.count() > 2 { to_int(call.value(2)) } else { length };
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    let found = range.and_then(|(from, to)| list.get(from..to));
    let found = found.ok_or("reflect.Value.Slice: slice index out of bounds")?;
    Ok(List::of(list.element(), found.to_vec()).into())
}
