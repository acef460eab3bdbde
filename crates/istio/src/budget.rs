//! How much the injection of one pod may take, in all of its steps together.
//!
//! A step is one of a template's ([`injectd_gotemplate::MAX_STEPS`]); other work is counted in them, by
//! about a microsecond each: values that a merge reads, bytes of YAML that a template has written.
//!
//! A pod whose values are looked at by the guard of [`crate::taint`] has a second budget of the same size,
//! for all renderings with neutral values together.

use std::{cell::Cell, fmt};

use injectd_gotemplate::{Context, GONE, STEPS_UNTIL_ASKED};
use injectd_yaml::{Limits, Options};
use serde_json::Value;
use thiserror::Error;

/// Steps that every pod may take. Each of Istio's templates takes at most 6,400 for a pod with 20
/// containers (`tests/budget.rs`); the rest is room for templates of one's own.
pub const FLOOR_STEPS: usize = 50_000;
/// Steps for each byte of a pod. Istio's templates take at most 0.4 for each byte of containers.
pub const STEPS_PER_BYTE: usize = 1;
/// Steps of the largest pod: about a second, well before the deadline of a review.
pub const MAX_STEPS: usize = 1_000_000;

/// Steps of a check of templates, for all configurations and pods that it renders: some 15 seconds. The
/// default templates of a release of Istio take at most 1,185,000 (`tests/taint/limits.rs`), so there is
/// room for 25 revisions.
pub const MAX_CHECK_STEPS: usize = 30_000_000;

/// Bytes of text that a merge copies in one step. That takes much less than a microsecond, but the
/// copies stay: what all steps copy is at most some 30 MB.
pub(crate) const COPIED_BYTES: usize = 32;

/// Bytes of YAML that are read in one step: some 3,000 instructions.
const YAML_BYTES: usize = 16;

/// How YAML of an annotation or of a rendered template is read. Copies by anchors and aliases, and texts
/// that are read again, fit into the memory that is estimated for a small pod, and take milliseconds.
pub(crate) const YAML: Options = Options {
    duplicate_keys: injectd_yaml::DuplicateKeys::LastWins,
    more_documents: injectd_yaml::MoreDocuments::Ignore,
    whole_floats: injectd_yaml::WholeFloats::Integers,
    limits: Limits {
        copied_nodes: 2_000,
        copied_text_bytes: 256 << 10,
        bytes_read_again: 1 << 20,
        nodes: usize::MAX,
    },
};

/// Why an injection stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OverBudget {
    /// It would take more than its budget.
    #[error(
        "the injection takes more than the evaluation budget of {limit} steps ({FLOOR_STEPS}, and \
         {STEPS_PER_BYTE} for each byte of the pod, at most {MAX_STEPS}); use fewer templates, \
         containers or annotations"
    )]
    Steps {
        /// The budget.
        limit: usize,
    },
    /// The caller does not wait for the result.
    #[error("{GONE}")]
    Gone,
}

/// What the injection of a pod may still take.
pub struct Budget<'b> {
    limit: usize,
    left: Cell<usize>,
    /// How many steps are left when the caller is asked next.
    asked_at: Cell<usize>,
    is_over: &'b dyn Fn() -> bool,
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit).field("left", &self.left).finish()
    }
}

impl Budget<'static> {
    /// Of a check of templates: [`MAX_CHECK_STEPS`], or fewer.
    #[must_use]
    pub fn of_check(steps: usize) -> Self {
        Self::with_steps(steps.min(MAX_CHECK_STEPS), &|| false)
    }
}

impl<'b> Budget<'b> {
    /// Of a pod. `is_over` is asked whether to stop, since the caller is gone or its deadline has
    /// passed.
    #[must_use]
    pub fn of(pod: &Value, is_over: &'b dyn Fn() -> bool) -> Self {
        let limit = STEPS_PER_BYTE.saturating_mul(bytes(pod)).saturating_add(FLOOR_STEPS);
        Self::with_steps(limit.min(MAX_STEPS), is_over)
    }

    fn with_steps(limit: usize, is_over: &'b dyn Fn() -> bool) -> Self {
        let asked_at = Cell::new(limit.saturating_sub(STEPS_UNTIL_ASKED));
        Self { limit, left: Cell::new(limit), asked_at, is_over }
    }

    /// What one pod may take of the rest.
    pub(crate) fn of_pod(&self, pod: &Value) -> Self {
        let of_pod = Self::of(pod, self.is_over);
        Self::with_steps(of_pod.limit.min(self.left()), self.is_over)
    }

    /// Takes steps.
    pub(crate) fn spend(&self, steps: usize) -> Result<(), OverBudget> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        let left = left.ok_or(OverBudget::Steps { limit: self.limit })?;
        // Not at each step: whether the caller waits is a question to a clock.
        if left < self.asked_at.get() {
            self.asked_at.set(left.saturating_sub(STEPS_UNTIL_ASKED));
            if (self.is_over)() {
                return Err(OverBudget::Gone);
            }
        }
        Ok(())
    }

    /// How many steps it had.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many steps are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left.get()
    }

    /// Whether nothing is left, or the caller does not wait for the result.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0 || (self.is_over)()
    }

    /// Takes the steps to read a text that a template has written.
    pub(crate) fn spend_text(&self, text: &str) -> Result<(), OverBudget> {
        self.spend(text.len() / YAML_BYTES)
    }

    /// Whether to stop, since the caller is gone or its deadline has passed.
    pub(crate) fn is_over(&self) -> &'b dyn Fn() -> bool {
        self.is_over
    }

    /// Lends what is left to an execution with a context, until [`Budget::settle`].
    pub(crate) fn lend(&self, context: &mut Context<'_>) {
        context.limits.steps = context.steps() + self.left.get();
    }

    /// Takes the steps of executions since `before`.
    pub(crate) fn settle(&self, context: &Context<'_>, before: usize) -> Result<(), OverBudget> {
        self.spend(context.steps() - before)
    }
}

/// The steps to read or copy a tree: one for each value, and for each [`COPIED_BYTES`] of a text.
pub(crate) fn steps_of(tree: &Value) -> usize {
    1 + match tree {
        Value::String(text) => text.len() / COPIED_BYTES,
        Value::Array(items) => items.iter().map(steps_of).sum(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| key.len() / COPIED_BYTES + steps_of(value)).sum()
        }
        _ => 0,
    }
}

/// About the bytes of a tree as JSON.
fn bytes(tree: &Value) -> usize {
    /// `"":,` of a member, and `,` of an item.
    const MEMBER_BYTES: usize = 4;
    match tree {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| bytes(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| key.len() + bytes(value) + MEMBER_BYTES;
            2 + members.iter().map(member).sum::<usize>()
        }
    }
}
