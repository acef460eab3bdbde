//! Regular expressions of sprig, in the syntax of Go.

use regex::bytes::{Regex, RegexBuilder};

use injectd_gocompat::pattern::translate;

use super::strings::texts;
use crate::{
    context::MAX_STEPS,
    function::{
        Call, Function, Outcome,
        Param::{Int, Text as Str},
    },
    quote::{can_backquote, quote},
    value::{Element, List, Value},
};

/// Bytes of a compiled expression.
// Repetitions inside of one another multiply: a short text could take the memory.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Steps for the compilation of an expression of that size, which takes a hundredth of a second.
const COMPILE_STEPS: usize = MAX_STEPS / 1000;

pub(super) const TABLE: &[Function] = &[
    Function::new("mustRegexFind", &[Str, Str], |call| find(call, compile)),
    Function::new("mustRegexFindAll", &[Str, Str, Int], |call| find_all(call, compile)),
    Function::new("mustRegexMatch", &[Str, Str], |call| {
        Ok(compiled(call, compile)?.is_match(call.text(1)).into())
    }),
    Function::new("mustRegexReplaceAll", &[Str, Str, Str], |call| replace(call, compile, true)),
    Function::new("mustRegexReplaceAllLiteral", &[Str, Str, Str], |call| {
        replace(call, compile, false)
    }),
    Function::new("mustRegexSplit", &[Str, Str, Int], |call| split(call, compile)),
    Function::new("regexFind", &[Str, Str], |call| find(call, must_compile)),
    Function::new("regexFindAll", &[Str, Str, Int], |call| find_all(call, must_compile)),
    Function::new("regexMatch", &[Str, Str], |call| {
        call.spend(COMPILE_STEPS)?;
        // sprig drops the error of a pattern here: nothing matches it.
        Ok(compile(call.text(0)).is_ok_and(|regex| regex.is_match(call.text(1))).into())
    }),
    Function::new("regexQuoteMeta", &[Str], |call| Ok(quote_meta(call.text(0)).into())),
    Function::new("regexReplaceAll", &[Str, Str, Str], |call| replace(call, must_compile, true)),
    Function::new("regexReplaceAllLiteral", &[Str, Str, Str], |call| {
        replace(call, must_compile, false)
    }),
    Function::new("regexSplit", &[Str, Str, Int], |call| split(call, must_compile)),
];

type Compile = fn(&[u8]) -> Result<Regex, String>;

/// The first argument as an expression.
fn compiled(call: &mut Call<'_, '_>, compile: Compile) -> Result<Regex, String> {
    call.spend(COMPILE_STEPS)?;
    compile(call.text(0))
}

/// Go: `regexp.Compile`. The words of errors are ours.
fn compile(pattern: &[u8]) -> Result<Regex, String> {
    let shown = || format!("`{}`", String::from_utf8_lossy(pattern));
    let text = std::str::from_utf8(pattern)
        .map_err(|_| "error parsing regexp: invalid UTF-8".to_owned())?;
    let translated = translate(text)
        .map_err(|problem| format!("error parsing regexp: {problem}: {}", shown()))?;
    RegexBuilder::new(&translated)
        .size_limit(MAX_REGEX_BYTES)
        .build()
        .map_err(|_| format!("error parsing regexp: invalid or too large: {}", shown()))
}

/// Go: `regexp.MustCompile`, whose panic names the expression.
fn must_compile(pattern: &[u8]) -> Result<Regex, String> {
    compile(pattern).map_err(|message| {
        let shown = if can_backquote(pattern) {
            format!("`{}`", String::from_utf8_lossy(pattern))
        } else {
            quote(pattern, false)
        };
        format!("regexp: Compile({shown}): {message}")
    })
}

fn find(call: &mut Call<'_, '_>, compile: Compile) -> Outcome {
    let regex = compiled(call, compile)?;
    let found = regex.find(call.text(1)).map_or(&b""[..], |found| found.as_bytes());
    Ok(found.into())
}

/// How many results a count asks for; a negative one asks for all. More than the steps that are left
/// will be an error.
fn most(call: &Call<'_, '_>, count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).min(call.steps_left().saturating_add(1))
}

fn find_all(call: &mut Call<'_, '_>, compile: Compile) -> Outcome {
    let regex = compiled(call, compile)?;
    let count = most(call, call.int(2));
    let matches = regex.find_iter(call.text(1)).take(count);
    let found: Vec<Value> = matches.map(|found| found.as_bytes().into()).collect();
    if found.is_empty() {
        return Ok(List::nil(Element::Text).into());
    }
    Ok(texts(found).into())
}

fn replace(call: &mut Call<'_, '_>, compile: Compile, expands: bool) -> Outcome {
    let regex = compiled(call, compile)?;
    let (text, replacement) = (call.text(1), call.text(2));
    let mut out = Vec::new();
    let mut last = 0;
    for captures in regex.captures_iter(text) {
        let Some(all) = captures.get(0) else { continue };
        out.extend_from_slice(&text[last..all.start()]);
        last = all.end();
        if expands {
            expand(replacement, &captures, &mut out);
        } else {
            out.extend_from_slice(replacement);
        }
        call.check_bytes(out.len())?;
    }
    out.extend_from_slice(&text[last..]);
    call.give(out)
}

/// Go: `regexp.Regexp.Expand`.
fn expand(template: &[u8], captures: &regex::bytes::Captures<'_>, out: &mut Vec<u8>) {
    let mut rest = template;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with(b"$$") {
            out.push(b'$');
            rest = &rest[2..];
            continue;
        }
        let Some((name, after)) = group_name(&rest[1..]) else {
            out.push(b'$');
            rest = &rest[1..];
            continue;
        };
        rest = after;
        let group = match name.parse::<usize>() {
            Ok(number) => captures.get(number),
            Err(_) => captures.name(name),
        };
        out.extend_from_slice(group.map_or(&b""[..], |group| group.as_bytes()));
    }
    out.extend_from_slice(rest);
}

/// The name after a dollar sign, perhaps in braces, and the rest.
fn group_name(text: &[u8]) -> Option<(&str, &[u8])> {
    let braced = text.first() == Some(&b'{');
    let body = &text[usize::from(braced)..];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let length = body.iter().position(|byte| !is_part(byte)).unwrap_or(body.len());
    let name = std::str::from_utf8(&body[..length]).ok().filter(|name| !name.is_empty())?;
    let rest = &body[length..];
    if !braced {
        return Some((name, rest));
    }
    rest.strip_prefix(b"}").map(|rest| (name, rest))
}

/// Go: `regexp.Regexp.Split`.
fn split(call: &mut Call<'_, '_>, compile: Compile) -> Outcome {
    let regex = compiled(call, compile)?;
    let (text, limit) = (call.text(1), call.int(2));
    if limit == 0 {
        return Ok(List::nil(Element::Text).into());
    }
    if !call.text(0).is_empty() && text.is_empty() {
        return Ok(texts(vec!["".into()]).into());
    }
    let mut parts: Vec<Value> = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for found in regex.find_iter(text).take(most(call, limit)) {
        if limit > 0 && parts.len() + 1 == most(call, limit) {
            break;
        }
        end = found.start();
        // In Go, an empty match at the beginning separates nothing.
        if found.end() != 0 {
            parts.push(text[begin..end].into());
        }
        begin = found.end();
    }
    if end != text.len() {
        parts.push(text[begin..].into());
    }
    Ok(texts(parts).into())
}

/// Go: `regexp.QuoteMeta`.
fn quote_meta(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if br"\.+*?()|[]{}^$".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}
