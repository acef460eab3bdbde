//! Whether templates write the same for a pod as for the one with neutral values, but for these values.

use injectd_yaml::{DuplicateKeys, Limits, Options};
use serde_json::Value as Json;

use crate::{
    budget::{self, Budget},
    render::{Text, document},
    taint::{neutral, shape},
};

/// Values and keys that a document may have beyond those of the neutral one.
const MORE_NODES: usize = 16;

/// Merges another mapping into its own.
const MERGE_KEY: &str = "<<";

/// What a template writes for the pod with neutral values.
#[derive(Debug)]
pub(super) struct Shape<'t> {
    template: &'t str,
    /// `None` if it is no document, so that nothing has its shape.
    document: Option<Json>,
    /// The values and keys that a document of this shape has at most.
    max_nodes: usize,
}

impl<'t> Shape<'t> {
    /// Reads a text. It is taken from the budget.
    pub(super) fn of(text: &Text<'t>, budget: &Budget<'_>) -> Self {
        // A template that pastes JSON does not read it as JSON.
        let is_pasted = text.text.contains(neutral::PASTED);
        let is_readable = !is_pasted && budget.spend_text(&text.text).is_ok();
        let read = is_readable.then(|| document(&text.text, options(usize::MAX)));
        let document = read.and_then(Result::ok);
        // What a merge key brings is counted, also where a later key takes its place.
        let factor = if text.text.contains(MERGE_KEY) { 2 } else { 1 };
        let nodes = document.as_ref().map_or(0, nodes).saturating_mul(factor);
        let max_nodes = nodes.saturating_add(MORE_NODES);
        Self { template: text.by.name, document, max_nodes }
    }

    /// Whether a text has this shape. It is read up to as many values as the neutral document has.
    fn is_of(&self, text: &Text<'_>, budget: &Budget<'_>) -> bool {
        let Some(neutral) = &self.document else { return false };
        let options = options(self.max_nodes);
        budget.spend_text(&text.text).is_ok()
            && document(&text.text, options).is_ok_and(|own| shape::is_same(&own, neutral))
    }
}

/// The templates whose texts have another shape than the neutral ones: all if some have no text.
pub(super) fn changed<'t>(
    texts: Option<&[Text<'_>]>,
    neutral: &[Shape<'t>],
    budget: &Budget<'_>,
) -> Vec<&'t str> {
    let Some(texts) = texts.filter(|texts| texts.len() == neutral.len()) else {
        return neutral.iter().map(|shape| shape.template).collect();
    };
    let both = texts.iter().zip(neutral);
    let changed = both.filter(|(text, shape)| !shape.is_of(text, budget));
    changed.map(|(_, shape)| shape.template).collect()
}

/// How documents are read that are compared: with all keys, also those that another one hides.
fn options(nodes: usize) -> Options {
    let limits = Limits { nodes, ..budget::YAML.limits };
    Options { duplicate_keys: DuplicateKeys::Kept, limits, ..budget::YAML }
}

/// The values and keys of a tree.
fn nodes(tree: &Json) -> usize {
    1 + match tree {
        Json::Array(items) => items.iter().map(nodes).sum(),
        Json::Object(members) => members.values().map(|value| 1 + nodes(value)).sum(),
        _ => 0,
    }
}
