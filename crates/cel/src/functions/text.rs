//! Texts that are made from others.

use super::{Call, Function};
use crate::value::{Fault, Res, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        ".lowerAscii" => |call| {
            let text = call.text(0)?;
            call.made(&text.to_ascii_lowercase())
        },
        ".upperAscii" => |call| {
            let text = call.text(0)?;
            call.made(&text.to_ascii_uppercase())
        },
        ".replace" => replace,
        ".split" => split,
        ".join" => join,
        "strings.quote" => quote,
        _ => return None,
    })
}

/// A count, where a negative one is no bound.
fn count(call: &Call<'_, '_>, index: usize) -> Res<usize> {
    if call.arguments.len() <= index {
        return Ok(usize::MAX);
    }
    Ok(usize::try_from(call.int(index)?).unwrap_or(usize::MAX))
}

fn replace<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (text, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let most = count(call, 3)?;
    let found = text.matches(&*old).take(most).count();
    // What is written is counted before.
    call.work.spend(text.len().saturating_add(found.saturating_mul(new.len())))?;
    Ok(Val::text(text.replacen(&*old, &new, most)))
}

fn split<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (text, separator) = (call.text(0)?, call.text(1)?);
    let most = count(call, 2)?;
    if most == 0 {
        return Ok(Val::list(Vec::new()));
    }
    if separator.is_empty() {
        let ends = text.char_indices().map(|(at, character)| (at, at + character.len_utf8()));
        let parts = ends.enumerate().take(most).map(|(index, (start, end))| {
            if index + 1 == most { &text[start..] } else { &text[start..end] }
        });
        return call.made_list(parts);
    }
    call.made_list(text.splitn(most, &*separator))
}

fn join<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let list = call.list(0)?;
    let separator = if call.arguments.len() > 1 { Some(call.text(1)?) } else { None };
    let separator = separator.as_deref().unwrap_or_default();
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        let Val::Text(text) = item? else { return Fault::error("join: invalid input") };
        let separator = if index == 0 { "" } else { separator };
        call.work.spend(separator.len() + text.len())?;
        out.push_str(separator);
        out.push_str(&text);
    }
    Ok(Val::text(out))
}

fn quote<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let text = call.text(0)?;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    call.made(&out)
}
