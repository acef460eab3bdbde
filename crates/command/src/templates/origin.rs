//! Where problems of a template are in the text of its file.

use injectd_templates::Problem;
use injectd_yaml::{Document, Step, place, steps};
use serde::Serialize;
use serde_json::Value;

use super::rule::Rule;

/// A problem, and its place in the file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Placed {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What kind of problem it is.
    pub rule: Rule,
    /// The path of the field; empty for the whole object.
    pub field: String,
    /// What was found, and what was expected.
    pub text: String,
}

impl Placed {
    /// The problem in a line, with its place in a file of this name. `severity` is empty, or a word with a colon
    /// and a blank.
    #[must_use]
    pub fn line_of(&self, file: &str, severity: &str) -> String {
        let Self { line, column, field, text, .. } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        format!("{file}:{line}:{column}: {severity}{field}{colon}{text}")
    }
}

/// Where a template comes from.
pub(super) struct Origin<'t> {
    /// The whole file.
    pub(super) text: &'t str,
    /// The document with the template.
    pub(super) document: &'t Document,
    /// The template.
    pub(super) object: &'t Value,
    /// The way from the document to the template: an item of a List.
    pub(super) path: &'t [Step],
}

impl Origin<'_> {
    /// The line in which the template begins.
    pub(super) fn line(&self) -> usize {
        self.placed(Rule::Invalid, &Problem::new("", "")).line
    }

    /// A problem with its place. The place of an expression that the file writes with escapes is in the text.
    pub(super) fn placed(&self, rule: Rule, problem: &Problem) -> Placed {
        let document = &self.text[self.document.place.clone()];
        let fields = steps(&problem.field).unwrap_or_default();
        let path = [self.path, &fields].concat();
        let found = place(document, self.document.format, &path);
        let outer = found.map_or(0, |(line, column)| offset(document, line, column));
        let inner = problem.place.and_then(|(line, column)| {
            let value = value(self.object, &fields)?.as_str()?;
            inside(&document[outer..], value, offset(value, line, column))
        });
        let text = match problem.place {
            Some((line, column)) if inner.is_none() => {
                format!("line {line}, column {column}: {}", problem.text)
            }
            _ => problem.text.clone(),
        };
        let at = self.document.place.start + outer + inner.unwrap_or_default();
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Placed {
            line: before.matches('\n').count() + 1,
            // Editors count letters and not bytes.
            column: before[line_start..].chars().count() + 1,
            rule,
            field: problem.field.clone(),
            text,
        }
    }
}

fn value<'v>(object: &'v Value, path: &[Step]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Item(index) => value.get(index),
    })
}

/// The byte of a place in a text.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let letter = text[start..].char_indices().nth(column - 1);
    letter.map_or(text.len(), |(at, _)| start + at)
}

/// Where the byte `at` of a value is in the text that begins with the value. YAML folds lines and indents
/// them; the letters between the blanks are the same. `None` if they are not: the text has escapes.
fn inside(text: &str, value: &str, at: usize) -> Option<usize> {
    let start = match text.chars().next()? {
        '|' | '>' => text.find('\n')? + 1,
        '"' | '\'' => 1,
        _ => 0,
    };
    let is_letter = |letter: &char| !letter.is_whitespace();
    let (before, after) = value.split_at(at);
    let letters = text[start..].char_indices();
    let mut written = letters.filter(|(_, letter)| is_letter(letter));
    let mut end = start;
    for expected in before.chars().filter(is_letter) {
        let (found, letter) = written.next()?;
        if letter != expected {
            return None;
        }
        end = start + found + letter.len_utf8();
    }
    match after.chars().find(is_letter) {
        None => Some(end),
        Some(expected) => {
            written.next().filter(|(_, letter)| *letter == expected).map(|(found, _)| start + found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_value_has_a_place_in_its_text() {
        for (text, value, at, expected) in [
            ("a + b # c", "a + b", 4, Some(4)),
            ("\"a + b\"", "a + b", 4, Some(5)),
            ("'a + b'\n", "a + b", 5, Some(6)),
            ("|\n  a +\n  b\n", "a +\nb\n", 4, Some(10)),
            (">-\n  a +\n  b\n", "a + b", 4, Some(11)),
            ("a +\nx: 1", "a +", 3, Some(3)),
            ("\"a \\u002b b\"", "a + b", 4, None),
            ("*a", "a + b", 4, None),
        ] {
            assert_eq!(inside(text, value, at), expected, "{text}");
        }
    }
}
