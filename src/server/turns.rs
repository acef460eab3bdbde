//! Turns of evaluations, which take about ten times as long as an answer from memory.
//!
//! Without them, evaluations would queue in the runtime, in which every task waits for those before
//! it: reviews with a known answer, new connections, probes.

use std::{sync::Arc, time::Duration};

use injectd_core::lookups::{Asked, Granted, NextTurn, NoTurn, Patience, Turn, Turns};
use injectd_telemetry::metrics::{EvaluationMetrics, Registry};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{block_in_place, yield_now},
    time::timeout,
};

pub use self::queue::Threads;
use self::queue::{Held, Queue};
use super::{
    BodyBudget, BudgetExceeded, CallerPatience, DEFAULT_TIMEOUT, Limits, Permit,
    long_work::{LongWork, MAX_AT_A_TIME},
};

mod queue;

/// Maximum time that a review waits for its turn. The API server, which gives a review 10 s, has time
/// to ask again.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Memory of a waiting review besides its body and what was read of it. The bodies' budget has it.
const WAITING_BYTES: usize = 32 << 10;
/// Time without a turn, while reviews wait, after which the process is not ready. Every evaluation that
/// had a turn before is past its deadline then, and should have ended.
const STANDSTILL: Duration = DEFAULT_TIMEOUT;

/// The turns of a process: one less than the runtime has worker threads, so that one of them always
/// answers from memory, and one for each separate thread.
#[derive(Debug, Clone)]
pub struct EvaluationTurns {
    queue: Queue,
    /// The separate threads.
    long_work: LongWork,
    /// The only worker thread hands its other tasks to another thread before an evaluation.
    hands_over: bool,
}

/// The turns of a caller, whose budget has the memory of its waiting reviews.
#[derive(Debug)]
pub struct TurnsOfCaller<'t> {
    turns: &'t EvaluationTurns,
    budget: &'t BodyBudget,
    patience: &'t CallerPatience,
    threads: Threads,
}

/// A turn, its memory, and who waits for it.
#[derive(Debug)]
struct Evaluating {
    _held: Held,
    hands_over: bool,
    patience: CallerPatience,
}

/// Who waits for an evaluation, and where the evaluation runs.
#[derive(Debug, Clone, Copy)]
pub struct TurnCaller<'c> {
    /// How long the caller waits.
    pub patience: &'c CallerPatience,
    /// The threads.
    pub threads: Threads,
}

impl EvaluationTurns {
    /// Turns for the runtime of the caller.
    #[must_use]
    pub fn of_runtime(limits: &Limits) -> Self {
        let runtime = Handle::try_current();
        let workers = runtime.as_ref().map_or(1, |runtime| runtime.metrics().num_workers());
        let has_workers = |runtime: &Handle| {
            // Other runtimes cannot hand over.
            runtime.runtime_flavor() == RuntimeFlavor::MultiThread
        };
        let hands_over = workers == 1 && runtime.as_ref().is_ok_and(has_workers);
        let memory = limits.evaluation_memory();
        // One thread always answers from memory. With a single worker there is no other to evaluate
        // on.
        let queue = Queue::new(workers.saturating_sub(1).max(1), MAX_AT_A_TIME, memory);
        Self { queue, long_work: LongWork::default(), hands_over }
    }

    /// The separate threads, for reviews that take long.
    #[must_use]
    pub fn long_work(&self) -> &LongWork {
        &self.long_work
    }

    /// Reports to the metrics of a registry.
    pub fn register(&self, registry: &Registry) {
        self.queue.report_to(EvaluationMetrics::register(registry));
    }

    /// The same turns for a caller with this budget and this patience.
    #[must_use]
    pub fn of_caller<'t>(
        &'t self,
        budget: &'t BodyBudget,
        patience: &'t CallerPatience,
        threads: Threads,
    ) -> TurnsOfCaller<'t> {
        TurnsOfCaller { turns: self, budget, patience, threads }
    }

    /// Whether reviews wait, and none has had a turn for so long that evaluations must hang.
    #[must_use]
    pub fn stand_still(&self) -> bool {
        self.queue.stands_since().is_some_and(|last_turn| last_turn.elapsed() >= STANDSTILL)
    }
}

impl TurnsOfCaller<'_> {
    async fn turn(&self, asked: Asked<'_>) -> Result<Turn, NoTurn> {
        let Asked { namespace, waiting_bytes, memory } = asked;
        let queue = &self.turns.queue;
        let waiting = queue.wait(self.threads, namespace, memory);
        let mut waiting = waiting.map_err(|queue::TooLarge| self.too_large(memory))?;
        // Without waiting there is nothing to pay for: the body of the review is counted already.
        let free = waiting.try_turn();
        let has_waited = free.is_none();
        let held = if let Some(held) = free {
            held
        } else {
            let mut permit = Permit::default();
            // Thousands of waiting reviews would otherwise take memory that no budget knows.
            let bytes = waiting_bytes + namespace.len() + WAITING_BYTES;
            let taken = self.budget.take(&mut permit, bytes);
            taken.map_err(|BudgetExceeded| NoTurn::Late)?;
            waiting.turn().await
        };
        if self.threads == Threads::Workers {
            // What is ready goes first. Requests would otherwise be read as slowly as pods are
            // evaluated, and could not be rejected in time.
            yield_now().await;
        }
        // The caller would not read the answer, and another one may have the turn.
        if self.patience.is_over() {
            return Err(NoTurn::Late);
        }
        let hands_over = self.turns.hands_over && self.threads == Threads::Workers;
        let patience = self.patience.clone();
        Ok(Turn { has_waited, granted: Box::new(Evaluating { _held: held, hands_over, patience }) })
    }

    fn too_large(&self, memory: usize) -> NoTurn {
        NoTurn::TooLarge(format!(
            "the pod is too large: its evaluation takes up to {memory} bytes of memory, and \
             --max-evaluation-memory is {}",
            self.turns.queue.memory()
        ))
    }
}

impl Turns for TurnsOfCaller<'_> {
    fn next<'t>(&'t self, asked: Asked<'t>) -> NextTurn<'t> {
        Box::pin(
            async move { timeout(MAX_WAIT, self.turn(asked)).await.unwrap_or(Err(NoTurn::Late)) },
        )
    }
}

impl Granted for Evaluating {
    fn run(&self, work: &mut dyn FnMut()) {
        if self.hands_over { block_in_place(work) } else { work() }
    }

    fn patience(&self) -> Arc<dyn Patience> {
        Arc::new(self.patience.clone())
    }
}

#[cfg(test)]
mod tests;
