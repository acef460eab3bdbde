//! The scope of the webhook of sidecar templates: `serve --manage-webhook`.
//!
//! A `MutatingWebhookConfiguration` says for which pods an API server calls injectd. The replica that holds
//! a Lease keeps its entries for templates in step with the templates: they select each pod that a served
//! template may change, and as few others as can be said. The rules are pure (`state.rs` and what it uses);
//! configuration and time are behind a trait (`rim.rs`): the API server (`objects.rs`), or a simulation.
//!
//! Not for creating the configuration, whose certificate, timeout and policies the installation sets, and
//! not for its `caBundle`, which `certificates.rs` writes.

mod author;
mod edits;
mod keeper;
mod memory;
mod metrics;
mod objects;
mod pace;
mod report;
mod rim;
mod selected;
mod state;

use std::time::Duration;

pub use keeper::{Keeper, Known, Options};
pub use metrics::ScopeMetrics;
pub use selected::{CONDITION, ENTRY, NO_PODS_LABEL};

/// How long pods of a template are still called for after it was changed or deleted, and how long a leader
/// keeps what an earlier one wrote.
// Replicas serve what their watch has found last. A watch on a dead connection ends after a minute, and then
// the templates are listed again: by then each replica that reaches the API server serves what is new. A
// replica that does not reach it serves an older revision for longer; what it has is not asked for any more.
const KEPT: Duration = Duration::from_mins(2);

#[cfg(test)]
mod model;
