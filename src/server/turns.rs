//! Turns of evaluations, which take a hundred times as long as an answer from memory.
//!
//! Without them, evaluations would queue in the runtime, in which every task waits for those before
//! it: reviews with a known answer, new connections, probes.

use std::{pin::Pin, sync::Arc, time::Duration};

use injectd_core::lookups::{Turn, Turns};
use tokio::{runtime::Handle, sync::Semaphore, time::timeout};

/// Maximum time that a review waits for its turn. The API server, which gives a review 10 s, has time
/// to ask again.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// As many evaluations at a time as the runtime has worker threads.
#[derive(Debug)]
pub struct EvaluationTurns(Arc<Semaphore>);

impl EvaluationTurns {
    /// Turns for the runtime of the caller; outside of one, one at a time.
    #[must_use]
    pub fn of_runtime() -> Self {
        let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        Self(Arc::new(Semaphore::new(workers)))
    }
}

impl Turns for EvaluationTurns {
    fn at_once(&self) -> Option<Turn> {
        let permit = Arc::clone(&self.0).try_acquire_owned().ok()?;
        Some(Box::new(permit))
    }

    fn next(&self) -> Pin<Box<dyn Future<Output = Option<Turn>> + Send + '_>> {
        Box::pin(async {
            let permit = timeout(MAX_WAIT, Arc::clone(&self.0).acquire_owned()).await;
            let turn: Turn = Box::new(permit.ok()?.ok()?);
            Some(turn)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_comes_when_another_ends_or_not_at_all() {
        let turns = EvaluationTurns::of_runtime();
        let first = turns.at_once().expect("one worker thread");
        assert!(turns.at_once().is_none());
        assert!(turns.next().await.is_none());
        let (second, ()) = tokio::join!(turns.next(), async { drop(first) });
        assert!(second.is_some());
    }
}
