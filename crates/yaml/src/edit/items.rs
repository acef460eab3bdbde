//! Edits the items of a long list one by one, each as a document of its own: a List of 20,000
//! objects needs the memory of one changed object at a time.

use std::ops::Range;

use serde_json::Value;

use super::{edit, read};
use crate::{
    Format,
    marks::{Kind, Node, Style, marks},
    places::line_start,
};

/// Edits the items of a list in a document.
#[derive(Debug)]
pub struct ItemEditor<'t> {
    text: &'t str,
    format: Format,
    items: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    place: Range<usize>,
    /// The byte of the dash in the place, in block style.
    dash: Option<usize>,
    edited: Option<String>,
}

impl<'t> ItemEditor<'t> {
    /// An editor for the list at a key of a document, of which the last counts; `None` if its items do
    /// not stand for themselves, as where an anchor in one may be repeated in another.
    #[must_use]
    pub fn new(text: &'t str, format: Format, key: &str) -> Option<Self> {
        let root = marks(text, format)?;
        let Kind::Map(_, entries) = &root.kind else { return None };
        let list = &entries.iter().rfind(|entry| entry.key.as_deref() == Some(key))?.value;
        let Kind::List(style, items) = &list.kind else { return None };
        if has_properties(&root) {
            return None;
        }
        let part = |item: &crate::marks::Item| match style {
            Style::Block => block_part(text, item.start, item.value.end),
            Style::Flow => Some(flow_part(text, item.value.start, item.value.end)),
        };
        let items = items.iter().map(part).collect::<Option<_>>()?;
        Some(Self { text, format, items })
    }

    /// Changes an item; false if that is not possible in place.
    pub fn edit(&mut self, index: usize, before: &Value, after: &Value) -> bool {
        let Some(part) = self.items.get_mut(index) else { return false };
        let mut text = self.text[part.place.clone()].to_owned();
        if let Some(dash) = part.dash {
            text.replace_range(dash..=dash, " ");
        }
        let Some(mut edited) = edit(&text, self.format, before, after) else { return false };
        if let Some(dash) = part.dash {
            if edited.as_bytes().get(dash) != Some(&b' ') {
                return false;
            }
            edited.replace_range(dash..=dash, "-");
        }
        part.edited = Some(edited);
        true
    }

    /// The changed value of an item; `None` if it did not change.
    #[must_use]
    pub fn changed(&self, index: usize) -> Option<Value> {
        let part = self.items.get(index)?;
        let mut text = part.edited.clone()?;
        if let Some(dash) = part.dash {
            text.replace_range(dash..=dash, " ");
        }
        read(&text, self.format)
    }

    /// The text of the document with all changes.
    #[must_use]
    pub fn finish(self) -> String {
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for part in self.items {
            if let Some(edited) = part.edited {
                out.push_str(&self.text[at..part.place.start]);
                out.push_str(&edited);
                at = part.place.end;
            }
        }
        out.push_str(&self.text[at..]);
        out
    }
}

fn has_properties(node: &Node) -> bool {
    node.has_properties
        || match &node.kind {
            Kind::Scalar => false,
            Kind::Map(_, entries) => entries.iter().any(|entry| has_properties(&entry.value)),
            Kind::List(_, items) => items.iter().any(|item| has_properties(&item.value)),
        }
}

/// The lines of an item, if only blanks are before its dash.
fn block_part(text: &str, dash: usize, end: usize) -> Option<Part> {
    let start = line_start(text, dash);
    let is_first = text[start..dash].trim_matches(' ').is_empty();
    let end = text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1);
    is_first.then(|| Part { place: start..end, dash: Some(dash - start), edited: None })
}

/// The text of an item, with the blanks before it, which show its indentation. All items may stand
/// in one line: only the blanks are read.
fn flow_part(text: &str, start: usize, end: usize) -> Part {
    let blanks = text[..start].trim_end_matches([' ', '\t']);
    let is_first = blanks.is_empty() || blanks.ends_with('\n');
    Part { place: if is_first { blanks.len() } else { start }..end, dash: None, edited: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edited(text: &str, format: Format) -> Option<String> {
        let whole = read(text, format).expect("valid");
        let mut editor = ItemEditor::new(text, format, "items")?;
        for (index, item) in whole["items"].as_array().expect("a list").iter().enumerate() {
            let mut after = item.clone();
            after["new"] = json!({"a": [1]});
            if !editor.edit(index, item, &after) {
                return None;
            }
            assert_eq!(editor.changed(index), Some(after));
        }
        let mut expected = whole;
        for item in expected["items"].as_array_mut().expect("a list") {
            item["new"] = json!({"a": [1]});
        }
        let text = editor.finish();
        assert_eq!(read(&text, format), Some(expected), "{text}");
        Some(text)
    }

    #[test]
    fn items_are_edited_where_they_stand() {
        let text = "kind: List\nitems:\n# first\n- a: 1 # one\n  b:\n    c: 2\n# second\n-   a: 2\n\nx: y\n";
        let expected = "kind: List\nitems:\n# first\n- a: 1 # one\n  b:\n    c: 2\n  new:\n    a:\n    - 1\n\
                        # second\n-   a: 2\n    new:\n      a:\n      - 1\n\nx: y\n";
        assert_eq!(edited(text, Format::Yaml).as_deref(), Some(expected));
        let text = "{\n  \"items\": [\n    {\n      \"a\": 1\n    },\n    {\"a\":2}\n  ]\n}\n";
        let found = edited(text, Format::Json).expect("an edit in place");
        assert!(found.contains("\n      \"new\": {\n        \"a\": [\n          1\n"), "{found}");
    }

    #[test]
    fn the_last_list_of_a_key_that_is_written_twice_is_edited() {
        let text = "items:\n- a: 1\nitems:\n- a: 2\n";
        let expected = "items:\n- a: 1\nitems:\n- a: 2\n  new:\n    a:\n    - 1\n";
        assert_eq!(edited(text, Format::Yaml).as_deref(), Some(expected));
        let found = edited(r#"{"items":[{"a":1}],"items":[{"a":2}]}"#, Format::Json);
        let expected = r#"{"items":[{"a":1}],"items":[{"a":2,"new":{"a":[1]}}]}"#;
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn items_with_anchors_are_not_edited_one_by_one() {
        assert_eq!(edited("items:\n- a: &x 1\n- a: *x\n", Format::Yaml), None);
        assert!(ItemEditor::new("items: 1\n", Format::Yaml, "items").is_none());
    }
}
