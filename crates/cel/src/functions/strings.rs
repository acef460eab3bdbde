//! Tests and parts of texts.

use super::{Call, Function};
use crate::value::{Fault, Res, Text, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        ".contains" => |call| Ok(Val::Bool(call.text(0)?.contains(&*call.text(1)?))),
        ".startsWith" => |call| Ok(Val::Bool(call.text(0)?.starts_with(&*call.text(1)?))),
        ".endsWith" => |call| Ok(Val::Bool(call.text(0)?.ends_with(&*call.text(1)?))),
        ".charAt" => char_at,
        ".indexOf" => index_of,
        ".lastIndexOf" => last_index_of,
        ".substring" => substring,
        ".trim" => |call| {
            let text = call.text(0)?;
            // Go's white space is Unicode's.
            call.made(text.trim())
        },
        _ => return None,
    })
}

/// The offset in bytes of a place in code points; `None` beyond the end.
fn offset(text: &str, place: i64) -> Option<usize> {
    let place = usize::try_from(place).ok()?;
    let mut offsets = text.char_indices().map(|(offset, _)| offset).chain([text.len()]);
    offsets.nth(place)
}

fn out_of_range<T>(place: i64) -> Res<T> {
    Fault::error(format!("index out of range: {place}"))
}

fn char_at<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (text, place) = (call.text(0)?, call.int(1)?);
    let Some(offset) = offset(&text, place) else { return out_of_range(place) };
    let rest = &text[offset..];
    let length = rest.chars().next().map_or(0, char::len_utf8);
    call.made(&rest[..length])
}

fn substring<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (text, start) = (call.text(0)?, call.int(1)?);
    let end = if call.arguments.len() > 2 { Some(call.int(2)?) } else { None };
    if end.is_some_and(|end| start > end) {
        return Fault::error(format!(
            "invalid substring range. start: {start}, end: {}",
            end.unwrap_or_default()
        ));
    }
    let Some(from) = offset(&text, start) else { return out_of_range(start) };
    let to = match end {
        None => text.len(),
        Some(end) => match offset(&text, end) {
            Some(to) => to,
            None => return out_of_range(end),
        },
    };
    call.made(&text[from..to])
}

fn code_points(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn index_of<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    if let Val::List(_) = call.at(0)? {
        return super::lists::place(call, false);
    }
    let (text, part) = (call.text(0)?, call.text(1)?);
    let from = if call.arguments.len() > 2 { call.int(2)? } else { 0 };
    if part.is_empty() {
        return Ok(Val::Int(from));
    }
    if from < 0 {
        return out_of_range(from);
    }
    let Some(start) = offset(&text, from) else { return Ok(Val::Int(-1)) };
    let found = text[start..].find(&*part);
    Ok(Val::Int(found.map_or(-1, |at| from + code_points(&text[start..start + at]))))
}

fn last_index_of<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    if let Val::List(_) = call.at(0)? {
        return super::lists::place(call, true);
    }
    let (text, part) = (call.text(0)?, call.text(1)?);
    let length = code_points(&text);
    let from = if call.arguments.len() > 2 { Some(call.int(2)?) } else { None };
    if part.is_empty() {
        return Ok(Val::Int(from.unwrap_or(length)));
    }
    let from = match from {
        Some(from) if from < 0 => return out_of_range(from),
        Some(from) if from >= length => return Ok(Val::Int(-1)),
        Some(from) => from,
        None => length,
    };
    Ok(Val::Int(last_from(&text, &part, from)))
}

/// The last place of a part that begins at most at a place; -1 if there is none.
fn last_from(text: &Text<'_>, part: &Text<'_>, from: i64) -> i64 {
    // A part that begins there ends behind it.
    let end = offset(text, from.saturating_add(code_points(part))).unwrap_or(text.len());
    text[..end].rfind(&**part).map_or(-1, |at| code_points(&text[..at]))
}
