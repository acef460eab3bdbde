//! A stream of documents, split as `NewYAMLOrJSONDecoder` of k8s.io/apimachinery splits it.

#![expect(clippy::disallowed_types, reason = "configuration, manifests and objects from files")]

use std::ops::Range;

use serde_json::Value;

use crate::{
    Options, Problem, json,
    places::{Source, too_deep},
    tree,
};

const SEPARATOR: &str = "---";

/// Reads all documents of a text. Documents without content are null, or are left out where nothing
/// but a separator stands for them.
///
/// A text that begins with `{` is a stream of JSON values; if its first or second value is not JSON,
/// the rest is YAML. In YAML, lines that begin with `---` separate documents, also inside of quotes
/// and block scalars, and nothing but a comment may follow in such a line.
///
/// # Errors
/// The first problem and its place.
pub fn documents(text: &str, options: Options) -> Result<Vec<Value>, Problem> {
    let whole = Source { text, lines_before: 0, ends_line: true };
    let mut documents = Vec::new();
    let mut start = 0;
    if text.trim_start().starts_with('{') {
        match json_values(whole, options, &mut documents)? {
            None => return Ok(documents),
            Some(rest) => start = rest,
        }
    }
    let mut chunk = start..start;
    let mut counted = Counted { bytes: 0, lines: 0 };
    for line in text[start..].split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix(SEPARATOR) {
            let rest = rest.trim();
            if !(rest.is_empty() || rest.starts_with('#')) {
                let message = "only a comment may follow --- in the line that separates documents";
                return Err(whole.problem_at(chunk.end, message));
            }
            if !chunk.is_empty() {
                documents.push(document(whole, chunk.clone(), &mut counted, options)?);
                chunk = chunk.end + line.len()..chunk.end + line.len();
                continue;
            }
        }
        chunk.end += line.len();
    }
    if !chunk.is_empty() {
        documents.push(document(whole, chunk, &mut counted, options)?);
    }
    Ok(documents)
}

/// The lines of the bytes before a document.
struct Counted {
    bytes: usize,
    lines: usize,
}

fn document(
    whole: Source<'_>,
    chunk: Range<usize>,
    counted: &mut Counted,
    options: Options,
) -> Result<Value, Problem> {
    let between = &whole.text.as_bytes()[counted.bytes..chunk.start];
    counted.lines += memchr::memchr_iter(b'\n', between).count();
    counted.bytes = chunk.start;
    let text = &whole.text[chunk];
    tree::read(Source { text, lines_before: counted.lines, ends_line: true }, options)
}

/// Reads values of JSON. The answer is where YAML begins, or `None` at the end of the text.
fn json_values(
    whole: Source<'_>,
    options: Options,
    documents: &mut Vec<Value>,
) -> Result<Option<usize>, Problem> {
    let mut rest = whole.text;
    if json::is_too_deep(rest) {
        return Err(whole.problem_at(0, too_deep()));
    }
    loop {
        match json::first(rest, options.duplicate_keys) {
            None => return Ok(None),
            Some(Ok((value, after))) => {
                documents.push(value);
                rest = after;
            }
            Some(Err(error)) => {
                let start = whole.text.len() - rest.len();
                // Go reads `01` as two values.
                let digits = rest.trim_start().as_bytes();
                let two = matches!(digits, [b'0', b'0'..=b'9', ..]);
                if documents.len() < 2
                    && !two
                    && json::may_be_yaml(&error)
                    && let Some(blanks) = blanks_of_line(rest)
                {
                    return Ok(Some(start + blanks));
                }
                return Err(json_problem(whole, start, &error));
            }
        }
    }
}

/// The blanks up to the end of a line: they belong to the value of JSON before. `None` if fewer than
/// four bytes follow; there, Go gives up.
fn blanks_of_line(rest: &str) -> Option<usize> {
    for (at, letter) in rest.char_indices() {
        if rest.len() - at < 4 {
            return None;
        }
        match letter {
            '\n' => return Some(at + 1),
            letter if letter.is_whitespace() => {}
            _ => return Some(at),
        }
    }
    None
}

fn json_problem(whole: Source<'_>, start: usize, error: &serde_json::Error) -> Problem {
    let message = json::message(error);
    let place = whole.problem_at(start, message);
    match error.line() {
        1 => Problem { column: place.column + error.column().saturating_sub(1), ..place },
        line => Problem { line: place.line + line - 1, column: error.column().max(1), ..place },
    }
}
