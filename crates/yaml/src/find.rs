//! Where the value of a path is in the text of a document.

use crate::{
    Format,
    edit::json_in,
    marks::{Entry, Item, Kind, Node, marks},
    places::line_start,
};

/// A step from a value to one inside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the value of a key.
    Field(String),
    /// To an item of a list, counted from 0.
    Item(usize),
}

/// The steps of a path such as `spec.steps[1].overlay["a.b/c"]`; `None` if it is not written so.
#[must_use]
pub fn steps(path: &str) -> Option<Vec<Step>> {
    let (mut steps, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        let (step, after) = if let Some(quoted) = rest.strip_prefix("[\"") {
            let end = closing_quote(quoted)?;
            let written = &rest[1..end + 3];
            // Escapes of other languages stay as they are written.
            let key = serde_json::from_str(written).unwrap_or_else(|_| quoted[..end].to_owned());
            (Step::Field(key), quoted[end + 1..].strip_prefix(']')?)
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            (Step::Item(index.parse().ok()?), after)
        } else {
            let text = if steps.is_empty() { rest } else { rest.strip_prefix('.')? };
            let end = text.find(['.', '[']).unwrap_or(text.len());
            (Step::Field(text[..end].to_owned()), &text[end..])
        };
        steps.push(step);
        rest = after;
    }
    Some(steps)
}

/// Where the first quote is that no backslash escapes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Line and column of the value that steps lead to in the first document of a text, both from 1, in
/// characters. An empty value has the place of its key. If a step leads nowhere, it is the place of the key,
/// or the item, that the steps before it lead to. `None` if the text is not valid.
#[must_use]
pub fn place(text: &str, format: Format, path: &[Step]) -> Option<(usize, usize)> {
    let json = json_in(text).filter(|_| format == Format::Yaml);
    let (before, document, format) = match json {
        Some(place) => (place.start, &text[place], Format::Json),
        None => (0, text, format),
    };
    let root = marks(document, format)?;
    let at = before + offset(document, &root, path);
    let start = line_start(text, at);
    let line = text[..at].matches('\n').count() + 1;
    Some((line, text[start..at].chars().count() + 1))
}

fn offset(text: &str, root: &Node, path: &[Step]) -> usize {
    let (mut node, mut key) = (root, root.start);
    for step in path {
        let found = match (step, &node.kind) {
            (Step::Field(name), Kind::Map(_, entries)) => field(entries, name),
            (Step::Item(index), Kind::List(_, items)) => {
                items.get(*index).map(|item| at_item(text, item))
            }
            _ => None,
        };
        let Some(found) = found else { return key };
        (node, key) = found;
    }
    let value = behind_blanks(text, node.start);
    if value < node.end { value } else { key }
}

/// Of a key that is written twice, the last value counts.
fn field<'n>(entries: &'n [Entry], name: &str) -> Option<(&'n Node, usize)> {
    let entry = entries.iter().rfind(|entry| entry.key.as_deref() == Some(name))?;
    Some((&entry.value, entry.start))
}

/// An item has no key: its value has the place, or the dash if there is none.
fn at_item<'n>(text: &str, item: &'n Item) -> (&'n Node, usize) {
    let value = behind_blanks(text, item.value.start);
    let is_empty = value >= item.value.end;
    (&item.value, if is_empty { item.start } else { value })
}

/// The text of a block scalar begins behind its colon.
fn behind_blanks(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    at + rest.len() - rest.trim_start_matches([' ', '\t']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A comment.
spec:
  steps:
  - name: a
    overlay: {spec: {é: [1, two], b: }}
  -
    name: b
    when: |
      true
    empty:
    list:
    - - x
      - 'y'
  -
  \"a.b/c\": &anchor
    again: 1
    again: 2
  other: *anchor
";

    fn at(text: &str, format: Format, path: &str) -> Option<(usize, usize)> {
        place(text, format, &steps(path)?)
    }

    #[test]
    fn values_have_places_and_missing_ones_that_of_their_parent() {
        for (path, expected) in [
            ("", (2, 1)),
            ("spec", (3, 3)),
            ("spec.steps", (4, 3)),
            ("spec.steps[0]", (4, 5)),
            ("spec.steps[0].name", (4, 11)),
            ("spec.steps[0].missing.more[1]", (4, 5)),
            ("spec.steps[0].overlay", (5, 14)),
            ("spec.steps[0].overlay.spec.é[0]", (5, 26)),
            ("spec.steps[0].overlay.spec.é[1]", (5, 29)),
            ("spec.steps[0].overlay.spec.é[2]", (5, 22)),
            ("spec.steps[0].overlay.spec.b", (5, 35)),
            ("spec.steps[1]", (7, 5)),
            ("spec.steps[1].when", (8, 11)),
            ("spec.steps[1].empty", (10, 5)),
            ("spec.steps[1].empty.a", (10, 5)),
            ("spec.steps[1].list[0][1]", (13, 9)),
            ("spec.steps[2]", (14, 3)),
            ("spec.steps[3]", (3, 3)),
            ("spec.steps.name", (3, 3)),
            ("spec[\"a.b/c\"].again", (17, 12)),
            ("spec.other", (18, 10)),
            ("spec.other.again", (18, 3)),
            ("status", (2, 1)),
        ] {
            assert_eq!(at(TEXT, Format::Yaml, path), Some(expected), "{path}");
        }
    }

    #[test]
    fn places_in_json_are_those_of_its_values() {
        let text = "\n {\"a\": [1,\n  {\"b\": \"\\\"\"}], \"c\": null}";
        for (path, expected) in [
            ("", (2, 2)),
            ("a[0]", (2, 9)),
            ("a[1]", (3, 3)),
            ("a[1].b", (3, 9)),
            ("a[1].c", (3, 3)),
            ("a[2]", (2, 3)),
            ("c", (3, 22)),
        ] {
            for format in [Format::Json, Format::Yaml] {
                assert_eq!(at(text, format, path), Some(expected), "{path} {format:?}");
            }
        }
    }

    #[test]
    fn texts_that_are_not_valid_have_no_places() {
        assert_eq!(at("a: [", Format::Yaml, "a"), None);
        assert_eq!(at("{\"a\": ", Format::Json, "a"), None);
        assert_eq!(at("", Format::Yaml, "a"), None);
    }

    #[test]
    fn paths_are_read() {
        let field = |name: &str| Step::Field(name.to_owned());
        for (path, expected) in [
            ("", Some(vec![])),
            ("a", Some(vec![field("a")])),
            ("a.b[12].c", Some(vec![field("a"), field("b"), Step::Item(12), field("c")])),
            ("[0][\"a\\\"].b\"].c", Some(vec![Step::Item(0), field("a\"].b"), field("c")])),
            ("[\"\\u{0}\"]", Some(vec![field("\\u{0}")])),
            ("a[b]", None),
            ("a[\"b]", None),
            ("a[0]b", None),
        ] {
            assert_eq!(steps(path), expected, "{path}");
        }
    }
}
