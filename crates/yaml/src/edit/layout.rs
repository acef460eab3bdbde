//! The indentation of a document, for what is added to it.

use crate::{
    marks::{Entry, Kind, Node, Style},
    places::line_start,
    writer::{KUBERNETES, Layout},
};

/// The layout of a document: that of its first mapping in a mapping and its first list in a mapping.
pub(super) fn layout(text: &str, root: &Node) -> Layout {
    let mut found = Found::default();
    found.search(text, root);
    let step = found.step.unwrap_or(KUBERNETES.step);
    Layout { step, list_step: found.list_step.unwrap_or(KUBERNETES.list_step), ..KUBERNETES }
}

#[derive(Default)]
struct Found {
    step: Option<usize>,
    list_step: Option<usize>,
}

impl Found {
    fn search(&mut self, text: &str, node: &Node) {
        if self.step.is_some() && self.list_step.is_some() {
            return;
        }
        match &node.kind {
            Kind::Map(Style::Block, entries) => {
                for entry in entries {
                    self.measure(text, entry);
                    self.search(text, &entry.value);
                }
            }
            Kind::List(Style::Block, items) => {
                for item in items {
                    self.search(text, &item.value);
                }
            }
            _ => {}
        }
    }

    fn measure(&mut self, text: &str, entry: &Entry) {
        let column = |at: usize| at - line_start(text, at);
        let (step, inside) = match &entry.value.kind {
            Kind::Map(Style::Block, entries) => {
                (&mut self.step, entries.first().map(|first| first.start))
            }
            Kind::List(Style::Block, items) => {
                (&mut self.list_step, items.first().map(|first| first.start))
            }
            _ => return,
        };
        let depth = inside.and_then(|inside| column(inside).checked_sub(column(entry.start)));
        *step = step.or(depth);
    }
}
