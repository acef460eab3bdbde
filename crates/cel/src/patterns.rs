//! Regular expressions, in the syntax of Go.

use std::sync::{Arc, OnceLock};

use injectd_gocompat::pattern::translate;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind},
};

use super::limits::{
    MAX_CACHE_BYTES, MAX_KEPT_PATTERNS, MAX_KEPT_STATES, MAX_PATTERN_BYTES, MAX_REGEX_BYTES,
};

/// An expression that is valid.
pub(super) struct Parsed {
    /// In the syntax of Rust.
    translated: String,
    /// About the number of its states.
    pub(super) states: usize,
}

/// An expression and its number of states, about.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    states: usize,
}

/// The regular expressions that are written in an expression. Each is compiled when it is needed first,
/// and kept with the expression.
#[derive(Debug)]
pub(super) struct Written(Vec<Kept>);

/// A regular expression, and what it is compiled; `None` if it is too large.
#[derive(Debug)]
struct Kept {
    text: Box<str>,
    compiled: OnceLock<Option<Arc<Pattern>>>,
}

impl Written {
    /// Those of the expressions that are small, each with its number of states; `None` without any.
    pub(super) fn of(mut patterns: Vec<(&str, usize)>) -> Option<Self> {
        patterns.retain(|(_, states)| *states <= MAX_KEPT_STATES);
        patterns.sort_unstable();
        patterns.dedup();
        patterns.truncate(MAX_KEPT_PATTERNS);
        let kept = |(text, _): (&str, _)| Kept { text: text.into(), compiled: OnceLock::new() };
        let kept: Vec<_> = patterns.into_iter().map(kept).collect();
        (!kept.is_empty()).then_some(Self(kept))
    }

    /// The compiled expression of a text, if it is one of these.
    pub(super) fn get(&self, text: &str) -> Option<Arc<Pattern>> {
        let kept = self.0.iter().find(|kept| *kept.text == *text)?;
        let compile = || Parsed::of(text).ok()?.compile().map(Arc::new);
        kept.compiled.get_or_init(compile).clone()
    }
}

/// A match of an expression in a text.
pub(super) struct Found<'t> {
    /// In bytes.
    pub(super) start: usize,
    /// Empty if it is within a character: Go does not have such a match.
    pub(super) text: &'t str,
}

impl Parsed {
    /// Parses an expression.
    ///
    /// # Errors
    /// It is not one of Go.
    pub(super) fn of(pattern: &str) -> Result<Self, &'static str> {
        let translated = translate(pattern)?;
        let states = states(&parse(&translated)?);
        Ok(Self { translated, states })
    }

    /// Compiles it; `None` if it is too large.
    pub(super) fn compile(&self) -> Option<Pattern> {
        let mut builder = RegexBuilder::new(&self.translated);
        builder.size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_CACHE_BYTES);
        Some(Pattern { regex: builder.build().ok()?, states: self.states })
    }
}

impl Pattern {
    pub(super) fn states(&self) -> usize {
        self.states
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }

    /// The text of the first match; empty without one.
    pub(super) fn find<'t>(&self, text: &'t str) -> &'t str {
        self.find_all(text).next().map_or("", |found| found.text)
    }

    /// The matches, found one by one.
    pub(super) fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = Found<'t>> {
        // Nothing, which is found within a character as well, is no match there.
        self.regex.find_iter(text.as_bytes()).filter_map(|found| {
            text.get(found.range()).map(|part| Found { start: found.start(), text: part })
        })
    }
}

/// Checks an expression that is written as a literal, and counts its states. One that is too long, so
/// that there is no count, is unknown when it is evaluated.
///
/// # Errors
/// It is not one of Go.
pub(super) fn check(pattern: &str) -> Result<Option<usize>, &'static str> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Ok(None);
    }
    Ok(Some(Parsed::of(pattern)?.states))
}

fn parse(translated: &str) -> Result<Hir, &'static str> {
    // As for texts of bytes.
    let mut parser = ParserBuilder::new().utf8(false).build();
    parser.parse(translated).map_err(|_| "invalid syntax")
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
