//! What an evaluation may cost: the units of an API server, and the bytes that are read and written
//! here. Both are counted before the work is done.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use super::{
    fault::{Fault, Res},
    limits::{MAX_BYTES, MAX_COST, MAX_COST_OF_CONDITIONS, MAX_PATTERNS},
    patterns::{Pattern, Written},
};

/// The rest of the budget that several conditions share.
#[derive(Debug)]
pub struct Budget(u64);

/// The work of one evaluation.
#[derive(Debug, Default)]
pub(super) struct Work {
    cost: u64,
    bytes: usize,
    /// Regular expressions that were compiled, by their texts: at most [`MAX_PATTERNS`].
    // Most evaluations compile none, and end sooner without a map.
    compiled: Option<BTreeMap<Rc<str>, Arc<Pattern>>>,
    /// Those that are written in the expression.
    written: Option<Arc<Written>>,
}

impl Budget {
    /// The budget of all match conditions of a webhook or policy.
    #[must_use]
    pub fn of_conditions() -> Self {
        Self(MAX_COST_OF_CONDITIONS)
    }

    /// Takes the cost of a condition; `false` if it is not left.
    pub(super) fn take(&mut self, work: &Work) -> bool {
        match self.0.checked_sub(work.cost) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

impl Work {
    /// The work of an expression with these regular expressions.
    pub(super) fn of(written: Option<Arc<Written>>) -> Self {
        Self { written, ..Self::default() }
    }

    /// Counts units of cost.
    ///
    /// # Errors
    /// The condition costs more than it may.
    pub(super) fn charge(&mut self, units: u64) -> Res<()> {
        self.cost = self.cost.saturating_add(units);
        if self.cost > MAX_COST { Err(Fault::Cost) } else { Ok(()) }
    }

    /// Counts units of cost and bytes; `false`, and nothing is counted, if they are more than allowed.
    pub(super) fn pay(&mut self, units: u64, bytes: usize) -> bool {
        let (cost, bytes) = (self.cost.saturating_add(units), self.bytes.saturating_add(bytes));
        let is_paid = cost <= MAX_COST && bytes <= MAX_BYTES;
        if is_paid {
            (self.cost, self.bytes) = (cost, bytes);
        }
        is_paid
    }

    /// Gives back a unit: a test of a field costs less than reading it.
    pub(super) fn refund(&mut self) {
        self.cost = self.cost.saturating_sub(1);
    }

    /// Counts bytes that are read or written.
    ///
    /// # Errors
    /// They are more than allowed.
    pub(super) fn spend(&mut self, bytes: usize) -> Res<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES { Err(Fault::Bytes) } else { Ok(()) }
    }

    /// A regular expression that is written in the expression, or was compiled.
    pub(super) fn pattern(&self, text: &str) -> Option<Arc<Pattern>> {
        let written = self.written.as_ref().and_then(|written| written.get(text));
        written.or_else(|| self.compiled.as_ref()?.get(text).cloned())
    }

    /// Keeps a regular expression that was compiled.
    pub(super) fn keep(&mut self, text: &str, pattern: Arc<Pattern>) {
        let kept = self.compiled.get_or_insert_default();
        if kept.len() >= MAX_PATTERNS {
            // All at once: so many patterns are made of elements of a list, and none of them comes
            // back.
            kept.clear();
        }
        kept.insert(text.into(), pattern);
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Goes back to a cost: what is constant costs nothing.
    pub(super) fn restore(&mut self, cost: u64) {
        self.cost = cost;
    }
}
