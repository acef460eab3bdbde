//! Pods that are created all the time, as dry runs, and what became of each.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    api::Api,
    expect::{Outcome, eventually, expect, failed},
};
use serde_json::Value;
use tokio::{task::JoinSet, time::Instant};

/// What became of a pod.
#[derive(Debug)]
pub struct Seen {
    /// When the request was sent.
    pub begin: Instant,
    /// When its answer was there.
    pub end: Instant,
    /// The pod that the API server would create, or why it refuses it.
    pub result: Result<Value, String>,
}

/// Creates pods until it is stopped or dropped.
#[derive(Debug)]
pub struct Stream {
    is_stopped: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Seen>>>,
    tasks: JoinSet<()>,
}

impl Stream {
    /// Creates each of these pods, `(namespace, pod)`, one after the other, all at the same time.
    #[must_use]
    pub fn start(api: &Api, pods: &[(&str, Value)]) -> Self {
        let (is_stopped, seen) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<Seen>>>::default());
        let mut tasks = JoinSet::new();
        for (namespace, pod) in pods {
            let (api, namespace, pod) = (api.clone(), (*namespace).to_owned(), pod.clone());
            let (is_stopped, seen) = (Arc::clone(&is_stopped), Arc::clone(&seen));
            tasks.spawn(async move {
                while !is_stopped.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    let made = api.dry_run(&namespace, &pod).await;
                    let result = made.and_then(crate::api::Answer::created);
                    let result = result.map_err(|why| format!("in {namespace}: {why}"));
                    let seen_now = Seen { begin, end: Instant::now(), result };
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen_now);
                }
            });
        }
        Self { is_stopped, seen, tasks }
    }

    /// How many pods there are so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits until so many more pods were created.
    ///
    /// # Errors
    ///
    /// Fails if there are not enough in time.
    pub async fn wait_for(&self, more: usize) -> Outcome {
        let before = self.count();
        eventually("more pods are created", async || {
            expect("whether there are enough", true, self.count() >= before + more)
        })
        .await
    }

    /// Stops, and returns what became of each pod.
    pub async fn stop(mut self) -> Vec<Seen> {
        // The tasks look at nothing else that this thread writes, and they are joined below.
        self.is_stopped.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The pods that were created.
///
/// # Errors
///
/// Fails if one was refused.
pub fn all_created(seen: &[Seen]) -> Outcome<Vec<(&Seen, &Value)>> {
    let refused: Vec<_> = seen.iter().filter_map(|created| created.result.as_ref().err()).collect();
    if let Some(first) = refused.first() {
        let (count, total) = (refused.len(), seen.len());
        return Err(failed(format!("{count} of {total} pods were refused, the first {first}")));
    }
    Ok(seen.iter().filter_map(|created| Some((created, created.result.as_ref().ok()?))).collect())
}
