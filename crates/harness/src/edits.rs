//! A configuration that is edited while pods are created: each pod has one that was valid and current.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::{
    expect::{Outcome, expect, failed},
    stream::{Seen, all_created},
};

/// A pod may have a configuration that another replaced at most so long ago.
const STALE: Duration = Duration::from_secs(3);

/// Valid edits, in their order.
#[derive(Debug, Default)]
pub struct Edits(Vec<Edit>);

/// A valid edit: its number, and when it was written and replaced.
#[derive(Debug)]
struct Edit {
    number: usize,
    written: Instant,
    /// When the API server had answered the write of the next valid one.
    replaced: Option<Instant>,
}

impl Edits {
    /// Writes a valid edit.
    ///
    /// # Errors
    ///
    /// Those of the write.
    pub async fn write(&mut self, number: usize, write: impl AsyncFnOnce() -> Outcome) -> Outcome {
        let written = Instant::now();
        write().await?;
        if let Some(last) = self.0.last_mut() {
            last.replaced = Some(Instant::now());
        }
        self.0.push(Edit { number, written, replaced: None });
        Ok(())
    }

    /// The number of the last one; 0 if there is none.
    #[must_use]
    pub fn last(&self) -> usize {
        self.0.last().map_or(0, |edit| edit.number)
    }

    /// Fails unless each pod has a valid edit, unmixed, that was current not long before; returns how
    /// long ago the oldest was replaced when its pod was requested. `number_of` reads the number in a pod.
    ///
    /// # Errors
    ///
    /// A pod was refused, or has an edit that it must not have; and those of `number_of`.
    pub fn expect_current(
        &self,
        seen: &[Seen],
        number_of: impl Fn(&Value) -> Outcome<usize>,
    ) -> Outcome<Duration> {
        let mut oldest = Duration::ZERO;
        for (seen, pod) in all_created(seen)? {
            let number = number_of(pod)?;
            let edit = self.0.iter().find(|edit| edit.number == number);
            let edit = edit.ok_or_else(|| failed(format!("a pod of no valid edit: {number}")))?;
            expect("whether its edit was written", true, edit.written <= seen.end)?;
            let age = edit
                .replaced
                .map_or(Duration::ZERO, |replaced| seen.begin.duration_since(replaced));
            if age > STALE {
                return Err(failed(format!("a pod of edit {number}, {age:.1?} too late")));
            }
            oldest = oldest.max(age);
        }
        Ok(oldest)
    }
}
