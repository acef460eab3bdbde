//! Regular expressions, in the syntax of Go.

use std::sync::{Arc, OnceLock};

use injectd_gocompat::pattern::translate;
use regex::bytes::{Match, Regex, RegexBuilder};
use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind},
};

use super::{Call, Function};
use crate::{
    limits::{
        MAX_CACHE_BYTES, MAX_KEPT_PATTERNS, MAX_KEPT_STATES, MAX_PATTERN_BYTES, MAX_PATTERNS,
        MAX_REGEX_BYTES,
    },
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

/// An expression and its number of states, about.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    states: usize,
}

/// The regular expressions that are written in an expression. Each is compiled when it is needed first,
/// and kept with the expression.
#[derive(Debug)]
pub(crate) struct Written(Vec<Kept>);

/// A regular expression, and what it is compiled; `None` if it is too large.
#[derive(Debug)]
struct Kept {
    text: Box<str>,
    compiled: OnceLock<Option<Arc<Pattern>>>,
}

impl Written {
    /// Those of the expressions that are small, each with its number of states; `None` without any.
    pub(crate) fn of(mut patterns: Vec<(&str, usize)>) -> Option<Self> {
        patterns.retain(|(_, states)| *states <= MAX_KEPT_STATES);
        patterns.sort_unstable();
        patterns.dedup();
        patterns.truncate(MAX_KEPT_PATTERNS);
        let kept = |(text, _): (&str, _)| Kept { text: text.into(), compiled: OnceLock::new() };
        let kept: Vec<_> = patterns.into_iter().map(kept).collect();
        (!kept.is_empty()).then_some(Self(kept))
    }

    /// The compiled expression of a text, if it is one of these.
    pub(crate) fn get(&self, text: &str) -> Option<Arc<Pattern>> {
        let kept = self.0.iter().find(|kept| *kept.text == *text)?;
        let compile = || {
            let translated = translate(text).ok()?;
            let states = states(&parse(&translated).ok()?);
            Some(Arc::new(Pattern { regex: build(&translated)?, states }))
        };
        kept.compiled.get_or_init(compile).clone()
    }
}

fn build(translated: &str) -> Option<Regex> {
    let mut builder = RegexBuilder::new(translated);
    builder.size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_CACHE_BYTES);
    builder.build().ok()
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "matches" | ".matches" => |call| {
            let (text, pattern) = (call.text(0)?, call.text(1)?);
            let pattern = compiled(call, &pattern, &text)?;
            Ok(Val::Bool(pattern.regex.is_match(text.as_bytes())))
        },
        ".find" => |call| {
            let (text, pattern) = (call.text(0)?, call.text(1)?);
            let pattern = compiled(call, &pattern, &text)?;
            call.made(pattern.regex.find(text.as_bytes()).map_or("", |found| part(&text, found)))
        },
        ".findAll" => find_all,
        _ => return None,
    })
}

/// Checks an expression that is written as a literal, and counts its states. One that is too long, so
/// that there is no count, is unknown when it is evaluated.
///
/// # Errors
/// It is not one of Go.
pub(crate) fn check(pattern: &str) -> Result<Option<usize>, &'static str> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Ok(None);
    }
    Ok(Some(states(&parse(&translate(pattern)?)?)))
}

fn parse(translated: &str) -> Result<Hir, &'static str> {
    // As for texts of bytes.
    let mut parser = ParserBuilder::new().utf8(false).build();
    parser.parse(translated).map_err(|_| "invalid syntax")
}

/// Compiles an expression once, and counts that it goes through a text.
fn compiled(call: &mut Call<'_, '_>, pattern: &Text<'_>, text: &Text<'_>) -> Res<Arc<Pattern>> {
    let written = call.work.written(pattern);
    let found = match written.or_else(|| call.work.patterns.get(&**pattern).cloned()) {
        Some(known) => known,
        None => compile(call, pattern)?,
    };
    call.work.spend(text.len().saturating_mul(1 + found.states / STATES_PER_BYTE))?;
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
    let translated = translate(pattern).map_err(invalid)?;
    let states = states(&parse(&translated).map_err(invalid)?);
    call.work.spend(states.saturating_mul(STATE_BYTES))?;
    let Some(regex) = build(&translated) else {
        return Fault::unknown("a regular expression is too large");
    };
    let compiled = Arc::new(Pattern { regex, states });
    if call.work.patterns.len() >= MAX_PATTERNS {
        call.work.patterns.clear();
    }
    call.work.patterns.insert((**pattern).into(), Arc::clone(&compiled));
    Ok(compiled)
}

/// About the number of states of an expression: repetitions are written out. The parser bounds the
/// depth.
fn states(hir: &Hir) -> usize {
    let sum = |parts: &[Hir]| parts.iter().map(states).fold(1, usize::saturating_add);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => class.ranges().len().saturating_mul(4),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1);
            states(&repetition.sub).saturating_mul(times.saturating_add(1) as usize)
        }
        HirKind::Capture(capture) => states(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

/// The text of a match. One within a character, which Go does not have, is empty.
fn part<'t>(text: &'t Text<'_>, found: Match<'_>) -> &'t str {
    text.get(found.range()).unwrap_or_default()
}

fn find_all<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let most = if call.arguments.len() > 2 { call.int(2)? } else { -1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let pattern = compiled(call, &pattern, &text)?;
    let mut items = Vec::new();
    for found in pattern.regex.find_iter(text.as_bytes()).take(most) {
        // The search for the next one may go through the rest, and come back.
        call.work.spend((text.len() - found.start()).div_ceil(SEARCHED_PER_BYTE))?;
        call.work.spend_items(1)?;
        items.push(call.made(part(&text, found))?);
    }
    Ok(Val::list(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go's `regexp.MatchString` says.
    #[test]
    fn escapes_and_sets_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"a\<b\>", "a<b>", true),
            (r"\Q<a>\E", "<a>", true),
            (r"\Q<a>\E", "a", false),
            (r"^[!--/]$", "-", true),
            (r"^[!--/]$", "#", true),
            (r"^[!--/]$", "/", true),
            (r"^[!--/]$", ".", false),
            (r"^[a-]$", "-", true),
            (r"^[a\-c]$", "b", false),
            (r"^[-a&&~~[]$", "&", true),
            (r"^[\d-z]+$", "5-z", true),
            (r"^\x{41}+$", "AAA", true),
            (r"^\x{1F}\x1f\037$", "\u{1f}\u{1f}\u{1f}", true),
            (r"^[\x{2028}]$", "\u{2028}", true),
            (r"^\ \_\%$", " _%", true),
            (r"^[[:]$", ":", true),
            (r"^[[:^alpha:]]$", "a", false),
        ] {
            let parsed = translate(pattern).and_then(|translated| {
                parse(&translated)?;
                Regex::new(&translated).map_err(|_| "no expression")
            });
            let found = parsed.map(|regex| regex.is_match(text.as_bytes()));
            assert_eq!(found, Ok(matches), "{pattern} {text:?}");
        }
    }

    #[test]
    fn what_go_does_not_read_is_an_error() {
        for pattern in [r"[a-\d]", r"[b-a]", r"\x{}", r"\x{110000}", r"\xg", r"\1", r"[\b]", r"\é"]
        {
            assert!(check(pattern).is_err(), "{pattern}");
        }
    }
}
