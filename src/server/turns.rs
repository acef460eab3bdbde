//! Turns of evaluations, which take a hundred times as long as an answer from memory.
//!
//! Without them, evaluations would queue in the runtime, in which every task waits for those before
//! it: reviews with a known answer, new connections, probes.

use std::{pin::Pin, sync::Arc, time::Duration};

use injectd_core::lookups::{Turn, Turns};
use tokio::{runtime::Handle, sync::Semaphore, task::yield_now, time::timeout};

/// Maximum time that a review waits for its turn. The API server, which gives a review 10 s, has time
/// to ask again.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Maximum number of reviews that wait. Each holds its body, and takes about 50 KB.
const MAX_WAITING: usize = 2000;

/// As many evaluations at a time as the runtime has worker threads.
#[derive(Debug)]
pub struct EvaluationTurns {
    turns: Arc<Semaphore>,
    waiting: Semaphore,
}

impl EvaluationTurns {
    /// Turns for the runtime of the caller; outside of one, one at a time.
    #[must_use]
    pub fn of_runtime() -> Self {
        let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        Self { turns: Arc::new(Semaphore::new(workers)), waiting: Semaphore::new(MAX_WAITING) }
    }
}

impl EvaluationTurns {
    async fn permit(&self) -> Option<Turn> {
        let turns = || Arc::clone(&self.turns);
        let free = turns().try_acquire_owned().ok();
        let has_waited = free.is_none();
        let permit = if let Some(permit) = free {
            permit
        } else {
            let _place = self.waiting.try_acquire().ok()?;
            turns().acquire_owned().await.ok()?
        };
        // What is ready goes first. Requests would otherwise be read as slowly as pods are evaluated,
        // and could not be rejected in time.
        yield_now().await;
        Some(Turn { has_waited, held: Box::new(permit) })
    }
}

impl Turns for EvaluationTurns {
    fn next(&self) -> Pin<Box<dyn Future<Output = Option<Turn>> + Send + '_>> {
        Box::pin(async { timeout(MAX_WAIT, self.permit()).await.ok().flatten() })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream::FuturesUnordered};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_comes_when_another_ends_or_not_at_all() {
        let turns = EvaluationTurns::of_runtime();
        let first = turns.next().await.expect("one worker thread");
        assert!(!first.has_waited);
        assert!(turns.next().await.is_none());
        let (second, ()) = tokio::join!(turns.next(), async { drop(first) });
        assert!(second.expect("the first has ended").has_waited);
    }

    #[tokio::test(start_paused = true)]
    async fn not_more_wait_than_there_is_memory_for() {
        let turns = EvaluationTurns::of_runtime();
        let _first = turns.next().await;
        let mut waiting = FuturesUnordered::new();
        waiting.extend((0..=MAX_WAITING).map(|_| turns.next()));
        let begin = Instant::now();
        assert!(waiting.next().await.is_some_and(|rejected| rejected.is_none()));
        assert_eq!(begin.elapsed(), Duration::ZERO);
        assert!(waiting.next().await.is_some_and(|late| late.is_none()));
        assert_eq!(begin.elapsed(), MAX_WAIT);
    }
}
