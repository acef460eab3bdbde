//! Metrics of the evaluations of Istio's templates.

use std::time::UNIX_EPOCH;

use metrics::{Gauge, gauge};

use super::Registry;

/// The evaluations that wait, their memory, and the last turn.
#[derive(Debug, Clone)]
pub struct EvaluationMetrics {
    waiting_for_workers: Gauge,
    waiting_for_separate: Gauge,
    memory: Gauge,
    last_turn: Gauge,
}

impl EvaluationMetrics {
    /// Registers the metrics of a process.
    #[must_use]
    pub fn register(registry: &Registry) -> Self {
        registry.register(Self::new)
    }

    fn new() -> Self {
        let waiting = |threads| gauge!("injectd_evaluations_waiting", "threads" => threads);
        Self {
            waiting_for_workers: waiting("worker"),
            waiting_for_separate: waiting("separate"),
            memory: gauge!("injectd_evaluation_memory_bytes"),
            last_turn: gauge!("injectd_evaluations_last_turn_timestamp_seconds"),
        }
    }

    /// Records how many wait for worker threads and for separate ones, and the memory of those that
    /// run.
    #[expect(clippy::cast_precision_loss, reason = "reviews and bytes are below 2^52")]
    pub fn report(&self, [workers, separate]: [usize; 2], memory: usize) {
        self.waiting_for_workers.set(workers as f64);
        self.waiting_for_separate.set(separate as f64);
        self.memory.set(memory as f64);
    }

    /// Records that an evaluation began or ended.
    pub fn turned(&self) {
        self.last_turn.set(UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64());
    }
}

impl Default for EvaluationMetrics {
    fn default() -> Self {
        Self::new()
    }
}
