//! The list of annotations and labels without effect.

use serde::Serialize;

use super::{Layer, places::Place};

/// Maximum number of annotations and labels without effect in an explanation: more than a person
/// reads.
pub const MAX_IGNORED: usize = 100;

/// An annotation or label without effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// Where it is; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// The key.
    pub key: String,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why it has no effect.
    pub text: String,
}

/// Collects [`Findings::ignored`]: the first [`MAX_IGNORED`] entries, and how many more there are. A
/// pod can have thousands, and a suggestion for each is expensive.
#[derive(Debug, Default)]
pub struct IgnoredList {
    listed: Vec<Ignored>,
    omitted: usize,
}

impl IgnoredList {
    /// Adds an entry, which is made only if the list has room.
    pub fn add(&mut self, make: impl FnOnce() -> Ignored) {
        if self.listed.len() < MAX_IGNORED {
            self.listed.push(make());
        } else {
            self.omitted += 1;
        }
    }

    /// Adds a key at a place, if there is a text about it.
    pub fn add_at(
        &mut self,
        place: Place,
        key: &str,
        value: &str,
        text: Option<impl FnOnce() -> String>,
    ) {
        let Some(text) = text else { return };
        self.add(|| Ignored {
            layer: Some(place.layer()),
            key: key.to_owned(),
            value: Some(value.to_owned()),
            text: text(),
        });
    }

    /// The entries. The last one has the number of those that are not listed.
    #[must_use]
    pub fn finish(mut self) -> Vec<Ignored> {
        if self.omitted > 0 {
            let text = format!("{} more annotations and labels without effect", self.omitted);
            self.listed.push(Ignored { layer: None, key: String::new(), value: None, text });
        }
        self.listed
    }
}
