//! Warnings for one pod: as many as a person reads.

/// Maximum number of texts.
const MOST: usize = 32;

/// Collects warnings; those above the maximum are counted only.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    texts: Vec<String>,
    more: usize,
}

impl Warnings {
    pub(super) fn add(&mut self, text: String) {
        self.add_with(|| text);
    }

    /// The text is made only if it is kept.
    pub(super) fn add_with(&mut self, text: impl FnOnce() -> String) {
        if self.texts.len() < MOST {
            self.texts.push(text());
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_texts(mut self) -> Vec<String> {
        if self.more > 0 {
            self.texts.push(format!("{} more warnings about parameters", self.more));
        }
        self.texts
    }
}
