//! Functions of sprig that cut, search and join strings. Lengths are in bytes.

use std::{collections::BTreeSet, slice::SliceIndex};

use crate::{
    context::{Origin, Use, has_plain_names},
    function::{
        Call, Function, Outcome,
        Param::{Any, Int, Text as Str},
        Slot,
    },
    print,
    quote::quote,
    runes::{runes, trim_space},
    text::Text,
    value::{Element, List, Map, Value},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("cat", &[], cat).variadic(Any),
    Function::new("contains", &[Str, Str], |call| {
        Ok(find(call.text(1), call.text(0)).is_some().into())
    }),
    Function::new("env", &[Str], |call| {
        Ok((call.context.environment)(&call.str(0)).unwrap_or_default().into())
    })
    .outside(),
    Function::new("hasPrefix", &[Str, Str], |call| {
        Ok(call.text(1).starts_with(call.text(0)).into())
    }),
    Function::new("hasSuffix", &[Str, Str], |call| Ok(call.text(1).ends_with(call.text(0)).into())),
    Function::new("hello", &[], |_| Ok("Hello!".into())),
    Function::new("indent", &[Int, Str], |call| indent(call, b"")),
    Function::new("join", &[Str, Any], join),
    Function::new("nindent", &[Int, Str], |call| indent(call, b"\n")),
    Function::new("nospace", &[Str], nospace),
    Function::new("plural", &[Str, Str, Int], |call| {
        Ok(call.value(usize::from(call.int(2) != 1)).clone().into())
    }),
    Function::new("quote", &[], quoted).variadic(Any).precise(),
    Function::new("repeat", &[Int, Str], repeat),
    Function::new("replace", &[Str, Str, Str], replace),
    Function::new("sortAlpha", &[Any], sort_alpha),
    Function::new("split", &[Str, Str], |call| {
        let parts = split(call, call.text(1), call.text(0), -1);
        numbered(call, parts)
    }),
    Function::new("splitList", &[Str, Str], |call| {
        Ok(texts(split(call, call.text(1), call.text(0), -1)).into())
    }),
    Function::new("splitn", &[Str, Int, Str], |call| {
        let parts = split(call, call.text(2), call.text(0), call.int(1));
        numbered(call, parts)
    }),
    Function::new("squote", &[], single_quoted).variadic(Any),
    Function::new("substr", &[Int, Int, Str], substr),
    Function::new("toString", &[Any], |call| to_text(call, call.value(0)).map(Into::into)),
    Function::new("toStrings", &[Any], |call| {
        Ok(List::of(Element::Text, to_texts(call, call.value(0))?).into())
    }),
    Function::new("trim", &[Str], |call| Ok(trim_space(call.text(0)).into())),
    Function::new("trimAll", &[Str, Str], trim_all).precise(),
    Function::new("trimPrefix", &[Str, Str], |call| {
        let text = call.text(1);
        Ok(text.strip_prefix(call.text(0)).unwrap_or(text).into())
    }),
    Function::new("trimSuffix", &[Str, Str], trim_suffix).precise(),
    Function::new("trimall", &[Str, Str], trim_all).precise(),
    Function::new("trunc", &[Int, Str], trunc).precise(),
];

/// Where the needle begins first. An empty one is at the beginning.
pub(super) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(hay, needle)
}

/// A value as a string. Sprig: `strval`.
pub(super) fn to_text(call: &Call<'_, '_>, value: &Value) -> Result<Text, String> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        value => Ok(print::sprint_one(value, call.context.limits.output_bytes)?.into()),
    }
}

/// The items of a list as strings, without nils; another value is the only item.
pub(super) fn to_texts(call: &Call<'_, '_>, value: &Value) -> Result<Vec<Value>, String> {
    let items = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::List(list) => list,
        value => std::slice::from_ref(value),
    };
    let mut texts = Vec::with_capacity(items.len());
    let mut bytes = 0;
    for item in items.iter().filter(|item| !matches!(item, Value::Nil)) {
        let text = to_text(call, item)?;
        bytes += text.len();
        call.check_bytes(bytes)?;
        texts.push(Value::Text(text));
    }
    Ok(texts)
}

/// Bytes of strings with a separator between them.
fn joined(call: &Call<'_, '_>, parts: &[Value], separator: &[u8]) -> Outcome {
    let part = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        _ => Text::default(),
    };
    let bytes: usize = parts.iter().map(|value| part(value).len() + separator.len()).sum();
    call.check_bytes(bytes.saturating_sub(separator.len()))?;
    let mut out = Vec::with_capacity(bytes);
    for (index, value) in parts.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(&part(value));
    }
    Ok(out.into())
}

fn join(call: &mut Call<'_, '_>) -> Outcome {
    let parts = to_texts(call, call.value(1))?;
    joined(call, &parts, call.text(0))
}

/// Prints each argument that is not nil and joins them with blanks.
fn each(call: &Call<'_, '_>, print: impl Fn(&Value) -> Result<Value, String>) -> Outcome {
    let values = call.values(0).filter(|value| !matches!(value, Value::Nil));
    let parts: Result<Vec<_>, _> = values.map(print).collect();
    joined(call, &parts?, b" ")
}

fn quoted(call: &mut Call<'_, '_>) -> Outcome {
    // Of several arguments the result has no place of its own.
    let is_copy = call.count() == 1 && matches!(call.value(0), Value::Text(_));
    for index in 0..call.count() {
        call.used(index, if is_copy { Use::Copied } else { Use::Whole });
    }
    let text = each(call, |value| Ok(quote(&to_text(call, value)?, false).into()))?;
    let origin = if is_copy { call.origin(0).quoted() } else { Origin::NONE };
    Ok(Slot { origin, ..text })
}

/// Plain names end with a letter or a digit: other suffixes leave them as they are.
fn trim_suffix(call: &mut Call<'_, '_>) -> Outcome {
    call.used(0, Use::Whole);
    let (suffix, text) = (call.text(0), call.text(1));
    let is_copy = suffix.last().is_none_or(|last| !last.is_ascii_alphanumeric());
    let trimmed = text.strip_suffix(suffix).unwrap_or(text).len();
    Ok(cut(call, ..trimmed, is_copy))
}

/// A part of the second argument. `is_copy`: the function leaves every plain name as it is.
fn cut(
    call: &mut Call<'_, '_>,
    range: impl SliceIndex<[u8], Output = [u8]>,
    is_copy: bool,
) -> Slot {
    // A text in quotes is no plain name: what leaves names alone may cut off the quotes.
    let is_copy = is_copy && call.origin(1).unquoted().is_none();
    let (text, part) = (call.text(1), &call.text(1)[range]);
    if is_copy && part.len() == text.len() {
        return call.pass(1);
    }
    let part = Slot::from(part);
    call.used(1, if is_copy { Use::Copied } else { Use::Whole });
    part
}

fn single_quoted(call: &mut Call<'_, '_>) -> Outcome {
    each(call, |value| Ok([b"'", &*to_text(call, value)?, b"'"].concat().into()))
}

fn cat(call: &mut Call<'_, '_>) -> Outcome {
    each(call, |value| Ok(to_text(call, value)?.into()))
}

fn indent(call: &mut Call<'_, '_>, before: &[u8]) -> Outcome {
    let text = call.text(1);
    let width = usize::try_from(call.int(0)).map_err(|_| NEGATIVE)?;
    let lines = text.split(|byte| *byte == b'\n').count();
    call.check_bytes(width.saturating_mul(lines).saturating_add(text.len() + 1))?;
    let pad = b" ".repeat(width);
    let mut out = before.to_vec();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        out.extend_from_slice(&pad);
        out.extend_from_slice(line);
    }
    Ok(out.into())
}

const NEGATIVE: &str = "strings: negative Repeat count";

fn repeat(call: &mut Call<'_, '_>) -> Outcome {
    let count = usize::try_from(call.int(0)).map_err(|_| NEGATIVE)?;
    let text = call.text(1);
    if text.is_empty() {
        return Ok("".into());
    }
    call.check_bytes(count.saturating_mul(text.len()))?;
    Ok(text.repeat(count).into())
}

fn replace(call: &mut Call<'_, '_>) -> Outcome {
    let (old, new, text) = (call.text(0), call.text(1), call.text(2));
    let places = if old.is_empty() { text.len() + 1 } else { count(text, old) };
    call.check_bytes(text.len().saturating_add(places.saturating_mul(new.len())))?;
    let mut out = Vec::new();
    if old.is_empty() {
        // Before each character and at the end.
        for (at, _, width) in runes(text) {
            out.extend_from_slice(new);
            out.extend_from_slice(&text[at..at + width]);
        }
        out.extend_from_slice(new);
        return Ok(out.into());
    }
    let mut rest = text;
    while let Some(at) = find(rest, old) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    out.extend_from_slice(rest);
    Ok(out.into())
}

fn count(text: &[u8], part: &[u8]) -> usize {
    memchr::memmem::find_iter(text, part).count()
}

/// Go: `strings.SplitN`; no limit if it is negative. More parts than the steps that are left will be
/// an error, so that it makes one more at most.
fn split(call: &Call<'_, '_>, text: &[u8], separator: &[u8], limit: i64) -> Vec<Value> {
    let limit =
        usize::try_from(limit).unwrap_or(usize::MAX).min(call.steps_left().saturating_add(1));
    let mut parts: Vec<Value> = Vec::new();
    if limit == 0 {
        return parts;
    }
    let mut rest = text;
    while parts.len() + 1 < limit {
        let cut = if separator.is_empty() {
            let (_, width) = crate::runes::decode(rest);
            // The last character is the rest.
            (width > 0 && width < rest.len()).then_some((width, 0))
        } else {
            find(rest, separator).map(|at| (at, separator.len()))
        };
        let Some((end, skip)) = cut else { break };
        parts.push(rest[..end].into());
        rest = &rest[end + skip..];
    }
    if !separator.is_empty() || !text.is_empty() {
        parts.push(rest.into());
    }
    parts
}

/// A `[]string`.
pub(super) fn texts(items: Vec<Value>) -> Value {
    List::of(Element::Text, items).into()
}

/// A map with the keys `_0`, `_1`, ….
fn numbered(call: &mut Call<'_, '_>, parts: Vec<Value>) -> Outcome {
    call.spend(parts.len())?;
    let entry = |(index, part): (usize, Value)| (Text::from(format!("_{index}")), part);
    let entries = parts.into_iter().enumerate().map(entry).collect();
    Ok(Map::of("string", Element::Text, entries).into())
}

/// Goutils: `DeleteWhiteSpace`, which takes each byte for a character if it deletes any.
fn nospace(call: &mut Call<'_, '_>) -> Outcome {
    let text = call.text(0);
    let chars = text.iter().copied().map(char::from);
    let out: String = chars.filter(|char| !char.is_whitespace()).collect();
    if out.chars().count() == text.len() {
        return Ok(text.into());
    }
    Ok(out.into())
}

fn sort_alpha(call: &mut Call<'_, '_>) -> Outcome {
    let mut items = to_texts(call, call.value(0))?;
    if matches!(call.value(0), Value::Nil) {
        // sprig prints what is no list, and so it prints nil.
        items.push("<nil>".into());
    }
    items.sort_by(|one, other| match (one, other) {
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        _ => std::cmp::Ordering::Equal,
    });
    Ok(texts(items).into())
}

/// Part of a string; the error is Go's.
fn part(text: &[u8], from: i64, to: i64) -> Result<&[u8], String> {
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (Ok(start), Ok(end)) = (usize::try_from(from), usize::try_from(to)) else {
        let shown = if from < 0 { format!("{from}:") } else { format!(":{to}") };
        return Err(format!("runtime error: slice bounds out of range [{shown}]"));
    };
    if to > length {
        return Err(format!(
            "runtime error: slice bounds out of range [:{to}] with length {length}"
        ));
    }
    text.get(start..end)
        .ok_or_else(|| format!("runtime error: slice bounds out of range [{from}:{to}]"))
}

fn substr(call: &mut Call<'_, '_>) -> Outcome {
    let (from, to, text) = (call.int(0), call.int(1), call.text(2));
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let found = if from < 0 {
        part(text, 0, to)?
    } else if to < 0 || to > length {
        part(text, from, length)?
    } else {
        part(text, from, to)?
    };
    Ok(found.into())
}

fn trunc(call: &mut Call<'_, '_>) -> Outcome {
    call.used(0, Use::Whole);
    let (count, length) = (call.int(0), call.text(1).len());
    let kept = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(length);
    let kept = if count < 0 { length - kept..length } else { 0..kept };
    Ok(cut(call, kept, has_plain_names(count)))
}

fn trim_all(call: &mut Call<'_, '_>) -> Outcome {
    call.used(0, Use::Whole);
    let (cutset, text) = (call.text(0), call.text(1));
    let is_copy = !cutset.iter().any(u8::is_ascii_alphanumeric);
    let cutset: BTreeSet<_> = runes(cutset).map(|(_, char, _)| char).collect();
    let is_kept = |&(_, char, _): &(usize, Option<char>, usize)| !cutset.contains(&char);
    let start = runes(text).find(is_kept).map_or(text.len(), |(start, ..)| start);
    let end = runes(text).filter(is_kept).last().map_or(start, |(at, _, width)| at + width);
    Ok(cut(call, start..end, is_copy))
}
