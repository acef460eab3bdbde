//! Events on the owners of pods: queued by the servers, sent in the background.
//!
//! Pods of one owner with the same outcome are one series: an Event whose count rises. A series is
//! written when it begins, then after growing pauses, like the rate limit of Go's clients. No
//! review waits for an event; events over a limit are dropped and counted.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use injectd_cluster::{Events, WriteError, causes::with_causes, now, sources::Sources};
use injectd_telemetry::metrics::EventMetrics;
use moka::{policy::EvictionPolicy, sync::Cache};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{Instant, sleep},
};
use tracing::{debug, warn};

use crate::{
    linkerd::events,
    outcome::{Event, InvolvedObject, Outcome, SkipReasons},
};

/// Maximum number of events that wait for the lookup of their owner: the same limit as upstream's.
const MAX_QUEUED: usize = 1000;
/// Maximum concurrent lookups, and maximum concurrent writes.
// Reviews wait for their own lookups in the same API server, and none waits for an event.
const MAX_AT_WORK: usize = 16;
/// Maximum number of cached series.
// The next pod of a series that was evicted starts another event, which costs only the count.
const MAX_SERIES: u64 = 10_000;
/// Maximum number of series that are being written or pause.
// Each is a task that sleeps between its writes.
const MAX_OPEN: usize = 5000;
/// Time that an idle series is cached: API servers keep an unchanged event for as long.
const SERIES_KEPT: Duration = Duration::from_hours(1);
/// Pause after the first write of a series; it doubles with each write.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause; a series that was idle for as long starts with the first pause again.
const LAST_PAUSE: Duration = Duration::from_mins(5);
/// Maximum number of failed writes in a row that are retried.
// The pauses between them are four minutes together: an API server that restarts is back by then.
const MAX_FAILURES: u32 = 8;
/// Pause after a rejected event, or one whose involved object does not exist.
// Pods that come meanwhile are folded into the series, and do not each send another request that
// fails.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
/// Maximum length of the owner's name in an event's name, which has 17 more characters.
// An API server refuses names of more than 253 characters.
const MAX_NAME: usize = 230;

/// Queues events.
#[derive(Debug, Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Event<'static>>,
    metrics: EventMetrics,
}

/// Sends the queued events.
#[derive(Debug)]
struct Sender {
    sources: Sources,
    events: Events,
    series: Cache<Key, Arc<Series>>,
    open: Arc<Semaphore>,
    writes: Semaphore,
    metrics: EventMetrics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    namespace: String,
    object: InvolvedObject<'static>,
    reasons: SkipReasons,
}

/// Pods of one owner with the same outcome.
#[derive(Debug)]
struct Series {
    key: Key,
    /// Name of the Event.
    name: String,
    begun: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Pods so far.
    count: u32,
    /// Pods that the written Event counts.
    written: u32,
    is_open: bool,
    pause: Duration,
    last_write: Option<Instant>,
}

impl Recorder {
    /// Starts a task that sends events until all recorders are dropped.
    #[must_use]
    pub fn start(sources: Sources, events: Events, metrics: EventMetrics) -> Self {
        let (queue, mut queued) = mpsc::channel(MAX_QUEUED);
        let series = Cache::builder()
            .max_capacity(MAX_SERIES)
            .eviction_policy(EvictionPolicy::lru())
            .time_to_idle(SERIES_KEPT)
            .build();
        let sender = Arc::new(Sender {
            sources,
            events,
            series,
            open: Arc::new(Semaphore::new(MAX_OPEN)),
            writes: Semaphore::new(MAX_AT_WORK),
            metrics: metrics.clone(),
        });
        tokio::spawn(async move {
            stream::poll_fn(|context| queued.poll_recv(context))
                .for_each_concurrent(MAX_AT_WORK, |event| sender.take(event))
                .await;
        });
        Self { queue, metrics }
    }

    /// Queues the event of an outcome, if there is one.
    pub fn record(&self, outcome: &Outcome<'_>) {
        let Some(event) = &outcome.event else { return };
        match self.queue.try_reserve() {
            // Copied only if there is room for it.
            Ok(room) => room.send(event.to_static()),
            Err(_) => self.metrics.dropped.increment(1),
        }
    }
}

impl Sender {
    async fn take(self: &Arc<Self>, event: Event<'static>) {
        let Some(object) = events::involved_object(&self.sources, &event).await else {
            return self.metrics.no_object.increment(1);
        };
        let object = object.to_static();
        let key = Key { namespace: event.namespace.0.into_owned(), object, reasons: event.reasons };
        let series = self.series.get_with_by_ref(&key, || Arc::new(Series::new(key.clone())));
        match series.add(&self.open) {
            Added::First(permit) => {
                let sender = Arc::clone(self);
                tokio::spawn(async move {
                    sender.write(&series).await;
                    drop(permit);
                });
            }
            Added::Folded => self.metrics.folded.increment(1),
            Added::Dropped => self.metrics.dropped.increment(1),
        }
    }

    /// Writes a series, and writes it again after each pause in which it grew.
    async fn write(&self, series: &Series) {
        let mut failures = 0;
        loop {
            let permit = self.writes.acquire().await;
            let Some(count) = series.unwritten() else { return };
            // Boxed: thousands of sleeping tasks must not each hold the future of a write.
            let written = Box::pin(self.write_once(series, count)).await;
            drop(permit);
            match written {
                Ok(()) => {
                    self.metrics.sent.increment(1);
                    series.wrote(count);
                    failures = 0;
                }
                Err(WriteError::NoObject) => {
                    self.metrics.no_object.increment(1);
                    return self.forget(series).await;
                }
                Err(WriteError::Failed(_)) if failures < MAX_FAILURES => failures += 1,
                Err(error) => {
                    self.metrics.failed.increment(1);
                    let (namespace, name) = (&series.key.namespace, &series.name);
                    let error = with_causes(&error);
                    warn!(error, namespace, name, "cannot write an event");
                    return self.forget(series).await;
                }
            }
            sleep(series.pause()).await;
        }
    }

    async fn write_once(&self, series: &Series, count: u32) -> Result<(), WriteError> {
        let Series { key: Key { namespace, object, reasons }, name, begun, .. } = series;
        if series.is_written() {
            match self.events.count_up(namespace, name, count).await {
                Err(WriteError::NoEvent) => debug!(namespace, name, "creating an event again"),
                counted => return counted,
            }
        }
        let object_uid = self.events.object_uid(namespace, object).await?;
        let mut event = events::to_json(namespace, object, *reasons);
        event["involvedObject"]["uid"] = object_uid.into();
        event["count"] = count.into();
        event["firstTimestamp"] = begun.clone().into();
        event["lastTimestamp"] = now().into();
        self.events.create(namespace, name, event).await
    }

    /// Drops a series after a pause; the next pod starts a new one.
    async fn forget(&self, series: &Series) {
        sleep(REFUSED_PAUSE).await;
        self.series.invalidate(&series.key);
        // Tasks that still hold the series start over, too.
        *series.state() = State::default();
    }
}

/// The result of adding a pod to a series.
enum Added {
    /// The series must be written.
    First(OwnedSemaphorePermit),
    /// The next write of the open series counts the pod.
    Folded,
    /// Too many series are open.
    Dropped,
}

impl Series {
    fn new(key: Key) -> Self {
        let mut owner = &*key.object.name;
        owner = &owner[..owner.floor_char_boundary(MAX_NAME)];
        let owner = owner.trim_end_matches(['-', '.']);
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let name = format!("{owner}.{:x}", since.as_nanos());
        Self { key, name, begun: now(), state: Mutex::default() }
    }

    fn add(&self, open: &Arc<Semaphore>) -> Added {
        let mut state = self.state();
        if state.is_open {
            state.count = state.count.saturating_add(1);
            return Added::Folded;
        }
        let Ok(permit) = Arc::clone(open).try_acquire_owned() else { return Added::Dropped };
        state.count = state.count.saturating_add(1);
        state.is_open = true;
        Added::First(permit)
    }

    /// The count to write; `None` if it is written already, and the series is then closed.
    fn unwritten(&self) -> Option<u32> {
        let mut state = self.state();
        state.is_open = state.count > state.written;
        state.is_open.then_some(state.count)
    }

    fn is_written(&self) -> bool {
        self.state().written > 0
    }

    fn wrote(&self, count: u32) {
        self.state().written = count;
    }

    /// The pause before the next write.
    fn pause(&self) -> Duration {
        let mut state = self.state();
        let is_fresh =
            state.last_write.is_none_or(|last| last.elapsed() > state.pause + LAST_PAUSE);
        state.pause = if is_fresh { FIRST_PAUSE } else { LAST_PAUSE.min(2 * state.pause) };
        state.last_write = Some(Instant::now());
        state.pause
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size of a method's future.
    fn future_bytes<'a, F: Future>(_: impl Fn(&'a Sender, &'a Series) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_series_that_waits_or_pauses_does_not_hold_the_future_of_a_write() {
        let paused = future_bytes(Sender::write);
        let writing = future_bytes(|sender, series| sender.write_once(series, 1));
        assert!(paused < 512, "a series that pauses holds {paused} bytes, a write {writing}");
    }
}
