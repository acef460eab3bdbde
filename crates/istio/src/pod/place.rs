//! A place in a Pod.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::release::Release;

static NULL: Json = Json::Null;

/// A step from a value to one that it holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// To the value of a key.
    Key(&'static str),
    /// To an item of a list.
    Item(usize),
}

/// Where in a Pod a value is, and whose types it has.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pod: Arc<Json>,
    steps: Vec<Step>,
    /// The minor version of Kubernetes whose types the release has.
    pub(super) kubernetes: u16,
}

impl Place {
    /// A whole Pod.
    pub(super) fn new(pod: Arc<Json>, release: Release) -> Self {
        Self { pod, steps: Vec::new(), kubernetes: release.kubernetes_api() }
    }

    /// The place one step below this one.
    pub(super) fn below(&self, step: Step) -> Self {
        let steps = self.steps.iter().copied().chain([step]).collect();
        Self { pod: Arc::clone(&self.pod), steps, kubernetes: self.kubernetes }
    }

    /// What is there; null if nothing is.
    pub(super) fn json(&self) -> &Json {
        let mut json = &*self.pod;
        for step in &self.steps {
            let found = match *step {
                Step::Key(key) => json.get(key),
                Step::Item(index) => json.get(index),
            };
            match found {
                Some(found) => json = found,
                None => return &NULL,
            }
        }
        json
    }
}
