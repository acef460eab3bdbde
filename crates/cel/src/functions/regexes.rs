//! Functions of regular expressions.

use std::sync::Arc;

use super::{Call, Function};
use crate::{
    limits::MAX_PATTERN_BYTES,
    patterns::{Parsed, Pattern},
    value::{Fault, Res, Text, Val},
};

/// Bytes that a state of an expression counts as when it is compiled.
const STATE_BYTES: usize = 256;
/// Bytes that the compiling of each expression counts as, however short it is.
const PATTERN_BYTES: usize = 64 << 10;
/// States for which the reading of a byte counts twice: an expression that has no small automaton takes
/// time for each of them.
const STATES_PER_BYTE: usize = 4;

/// Bytes of a text, after a match, that count as one.
const SEARCHED_PER_BYTE: usize = 16;

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "matches" | ".matches" => |call| {
            let (text, pattern) = (call.text(0)?, call.text(1)?);
            let pattern = compiled(call, &pattern, &text)?;
            Ok(Val::Bool(pattern.is_match(&text)))
        },
        ".find" => |call| {
            let (text, pattern) = (call.text(0)?, call.text(1)?);
            let pattern = compiled(call, &pattern, &text)?;
            call.made(pattern.find(&text))
        },
        ".findAll" => find_all,
        _ => return None,
    })
}

/// Compiles an expression once, and counts that it goes through a text.
fn compiled(call: &mut Call<'_, '_>, pattern: &Text<'_>, text: &Text<'_>) -> Res<Arc<Pattern>> {
    let found = match call.work.pattern(pattern) {
        Some(known) => known,
        None => compile(call, pattern)?,
    };
    call.work.spend(text.len().saturating_mul(1 + found.states() / STATES_PER_BYTE))?;
    Ok(found)
}

fn compile(call: &mut Call<'_, '_>, pattern: &Text<'_>) -> Res<Arc<Pattern>> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Fault::unknown(format!(
            "a regular expression is longer than {MAX_PATTERN_BYTES} bytes"
        ));
    }
    call.work.spend(PATTERN_BYTES)?;
    let invalid = |problem: &str| Fault::Error(format!("illegal regex: {problem}").into());
    let parsed = Parsed::of(pattern).map_err(invalid)?;
    call.work.spend(parsed.states.saturating_mul(STATE_BYTES))?;
    let Some(compiled) = parsed.compile().map(Arc::new) else {
        return Fault::unknown("a regular expression is too large");
    };
    call.work.keep(pattern, Arc::clone(&compiled));
    Ok(compiled)
}

fn find_all<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let most = if call.arguments.len() > 2 { call.int(2)? } else { -1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let pattern = compiled(call, &pattern, &text)?;
    let mut items = Vec::new();
    for found in pattern.find_all(&text).take(most) {
        // The search for the next one may go through the rest, and come back.
        call.work.spend((text.len() - found.start).div_ceil(SEARCHED_PER_BYTE))?;
        call.work.spend_items(1)?;
        items.push(call.made(found.text)?);
    }
    Ok(Val::list(items))
}
