//! A stream of documents, split as `NewYAMLOrJSONDecoder` of k8s.io/apimachinery splits it.

use std::ops::Range;

use serde_json::Value;

use crate::{
    DuplicateKeys, Format, Options, Problem, json,
    places::{Source, too_deep},
    tree,
};

const SEPARATOR: &str = "---";

/// A document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its bytes in the text: without the lines that separate it from others.
    pub place: Range<usize>,
    /// The first of its lines, counted from 1.
    pub line: usize,
    /// What it is written in.
    pub format: Format,
    /// Null if it has no content.
    pub value: Value,
    /// The first key that is written twice, with [`DuplicateKeys::Noted`].
    pub duplicate_key: Option<Problem>,
}

/// Reads the documents of a text one after another. A document without content is null, or is left
/// out where nothing but a separator stands for it. After a problem comes nothing.
///
/// A text that begins with `{` is a stream of JSON values; if its first or second value is not JSON,
/// the rest is YAML. In YAML, lines that begin with `---` separate documents, also inside of quotes
/// and block scalars, and nothing but a comment may follow in such a line.
#[must_use]
pub fn stream(text: &str, options: Options) -> Stream<'_> {
    let whole = Source { text, lines_before: 0, ends_line: true };
    let state = match text.trim_start().starts_with('{') {
        true if json::is_too_deep(text) => State::Failed(whole.problem_at(0, too_deep())),
        true => State::Json { read: 0 },
        false => State::Yaml,
    };
    Stream { whole, options, at: 0, counted: Counted { bytes: 0, lines: 0 }, state }
}

/// Reads all documents of a text, as [`stream`] does.
///
/// # Errors
/// The first problem and its place.
pub fn documents(text: &str, options: Options) -> Result<Vec<Value>, Problem> {
    stream(text, options).map(|document| document.map(|document| document.value)).collect()
}

/// The documents of a text.
#[derive(Debug)]
pub struct Stream<'t> {
    whole: Source<'t>,
    options: Options,
    at: usize,
    counted: Counted,
    state: State,
}

#[derive(Debug)]
enum State {
    /// So many values are read.
    Json {
        read: usize,
    },
    Yaml,
    Failed(Problem),
    Ended,
}

impl Iterator for Stream<'_> {
    type Item = Result<Document, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match std::mem::replace(&mut self.state, State::Ended) {
            State::Json { read } => self.json(read),
            State::Yaml => self.yaml(),
            State::Failed(problem) => Err(problem),
            State::Ended => Ok(None),
        };
        next.transpose()
    }
}

impl Stream<'_> {
    fn yaml(&mut self) -> Result<Option<Document>, Problem> {
        let mut chunk = self.at..self.at;
        for line in self.whole.text[self.at..].split_inclusive('\n') {
            if let Some(rest) = line.strip_prefix(SEPARATOR) {
                let rest = rest.trim();
                if !(rest.is_empty() || rest.starts_with('#')) {
                    let message =
                        "only a comment may follow --- in the line that separates documents";
                    return Err(self.whole.problem_at(chunk.end, message));
                }
                if !chunk.is_empty() {
                    self.at = chunk.end + line.len();
                    return self.document(chunk).map(Some);
                }
            }
            chunk.end += line.len();
        }
        self.at = self.whole.text.len();
        if chunk.is_empty() { Ok(None) } else { self.document(chunk).map(Some) }
    }

    fn document(&mut self, place: Range<usize>) -> Result<Document, Problem> {
        let lines_before = self.counted.up_to(self.whole.text, place.start);
        let source =
            Source { text: &self.whole.text[place.clone()], lines_before, ends_line: true };
        let (value, duplicate_key) = match tree::read(source, self.strict()) {
            Err(problem) if problem.is_duplicate_key && self.notes() => {
                (tree::read(source, self.options)?, Some(problem))
            }
            read => (read?, None),
        };
        self.state = State::Yaml;
        let line = lines_before + 1;
        Ok(Document { place, line, format: Format::Yaml, value, duplicate_key })
    }

    /// Whether keys that are written twice are noted and not an error.
    fn notes(&self) -> bool {
        self.options.duplicate_keys == DuplicateKeys::Noted
    }

    /// The options to read with first: they find a key that is written twice.
    fn strict(&self) -> Options {
        let duplicate_keys = match self.options.duplicate_keys {
            DuplicateKeys::Noted => DuplicateKeys::Error,
            other => other,
        };
        Options { duplicate_keys, ..self.options }
    }

    fn json(&mut self, read: usize) -> Result<Option<Document>, Problem> {
        let rest = &self.whole.text[self.at..];
        let mut first = json::first(rest, self.strict().duplicate_keys);
        let mut duplicate_key = None;
        if let Some(Err(error)) = &first
            && json::is_duplicate_key(error)
            && self.notes()
        {
            duplicate_key = Some(json_problem(self.whole, self.at, error));
            first = json::first(rest, DuplicateKeys::LastWins);
        }
        match first {
            None => Ok(None),
            Some(Ok((value, after))) => {
                let start = self.at + rest.len() - rest.trim_start().len();
                self.at += rest.len() - after.len();
                self.state = State::Json { read: read + 1 };
                let line = self.counted.up_to(self.whole.text, start) + 1;
                let place = start..self.at;
                Ok(Some(Document { place, line, format: Format::Json, value, duplicate_key }))
            }
            Some(Err(error)) => {
                // Go reads `01` as two values.
                let digits = rest.trim_start().as_bytes();
                let two = matches!(digits, [b'0', b'0'..=b'9', ..]);
                if read < 2
                    && !two
                    && json::may_be_yaml(&error)
                    && let Some(blanks) = blanks_of_line(rest)
                {
                    self.at += blanks;
                    return self.yaml();
                }
                Err(json_problem(self.whole, self.at, &error))
            }
        }
    }
}

/// The lines of the bytes that were counted.
#[derive(Debug)]
struct Counted {
    bytes: usize,
    lines: usize,
}

impl Counted {
    /// The line breaks before a byte; the bytes come in their order.
    fn up_to(&mut self, text: &str, at: usize) -> usize {
        let between = &text.as_bytes()[self.bytes..at];
        self.lines += memchr::memchr_iter(b'\n', between).count();
        self.bytes = at;
        self.lines
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
    let is_duplicate_key = json::is_duplicate_key(error);
    let place = Problem { is_duplicate_key, ..whole.problem_at(start, message) };
    match error.line() {
        1 => Problem { column: place.column + error.column().saturating_sub(1), ..place },
        line => Problem { line: place.line + line - 1, column: error.column().max(1), ..place },
    }
}
