//! Turns of evaluations, which take about ten times as long as an answer from memory.
//!
//! Without them, evaluations would queue in the runtime, in which every task waits for those before
//! it: reviews with a known answer, new connections, probes.

use std::{pin::Pin, sync::Arc, time::Duration};

use injectd_core::lookups::{Turn, Turns};
use tokio::{runtime::Handle, sync::Semaphore, task::yield_now, time::timeout};

use super::{BodyBudget, Permit};

/// Maximum time that a review waits for its turn. The API server, which gives a review 10 s, has time
/// to ask again.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Memory of a waiting review besides its body and what was read of it. The bodies' budget has it.
const WAITING_BYTES: usize = 32 << 10;

/// As many evaluations of a server at a time as the runtime has worker threads.
#[derive(Debug)]
pub struct EvaluationTurns(Arc<Semaphore>);

/// The turns of a caller, whose budget has the memory of its waiting reviews.
#[derive(Debug)]
pub struct TurnsOfCaller<'t> {
    turns: &'t Arc<Semaphore>,
    budget: &'t BodyBudget,
}

impl EvaluationTurns {
    /// Turns for the runtime of the caller; outside of one, one at a time.
    #[must_use]
    pub fn of_runtime() -> Self {
        let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        Self(Arc::new(Semaphore::new(workers)))
    }

    /// The same turns for a caller with this budget.
    #[must_use]
    pub fn of_caller<'t>(&'t self, budget: &'t BodyBudget) -> TurnsOfCaller<'t> {
        TurnsOfCaller { turns: &self.0, budget }
    }
}

impl TurnsOfCaller<'_> {
    async fn turn(&self, bytes: usize) -> Option<Turn> {
        let turns = || Arc::clone(self.turns);
        let free = turns().try_acquire_owned().ok();
        let has_waited = free.is_none();
        let permit = if let Some(permit) = free {
            permit
        } else {
            let mut memory = Permit::default();
            self.budget.take(&mut memory, bytes + WAITING_BYTES).ok()?;
            turns().acquire_owned().await.ok()?
        };
        // What is ready goes first. Requests would otherwise be read as slowly as pods are evaluated,
        // and could not be rejected in time.
        yield_now().await;
        Some(Turn { has_waited, permit: Box::new(permit) })
    }
}

impl Turns for TurnsOfCaller<'_> {
    fn next(&self, bytes: usize) -> Pin<Box<dyn Future<Output = Option<Turn>> + Send + '_>> {
        Box::pin(async move { timeout(MAX_WAIT, self.turn(bytes)).await.ok().flatten() })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream::FuturesUnordered};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_comes_when_another_ends_or_not_at_all() {
        let pool = BodyBudget::pool(1 << 20);
        let (turns, budget) = (EvaluationTurns::of_runtime(), BodyBudget::of_connection(&pool));
        let turns = turns.of_caller(&budget);
        let first = turns.next(0).await.expect("one worker thread");
        assert!(!first.has_waited);
        assert!(turns.next(0).await.is_none());
        let (second, ()) = tokio::join!(turns.next(0), async { drop(first) });
        assert!(second.expect("the first has ended").has_waited);
        assert_eq!(pool.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn not_more_wait_than_the_budget_has_memory_for() {
        const BYTES: usize = 100 << 10;
        let pool = BodyBudget::pool(u32::try_from(10 * (BYTES + WAITING_BYTES)).expect("a size"));
        let (turns, budget) = (EvaluationTurns::of_runtime(), BodyBudget::of_connection(&pool));
        let turns = turns.of_caller(&budget);
        let _first = turns.next(BYTES).await;
        let mut waiting = FuturesUnordered::new();
        waiting.extend((0..=10).map(|_| turns.next(BYTES)));
        let begin = Instant::now();
        assert!(waiting.next().await.is_some_and(|rejected| rejected.is_none()));
        assert_eq!(begin.elapsed(), Duration::ZERO);
        assert!(waiting.next().await.is_some_and(|late| late.is_none()));
        assert_eq!(begin.elapsed(), MAX_WAIT);
    }
}
