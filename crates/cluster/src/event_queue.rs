//! Events about one object, written one after the other: who records them never waits for the API
//! server.
//!
//! Not for the events of reviews, which are counted and merged (`events.rs` of the library).

#![expect(clippy::disallowed_types, reason = "events are sent outside of reviews")]

use std::time::Duration;

use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};
use tracing::debug;

use crate::{causes::with_causes, events::Events};

/// Events that wait to be written; further ones are dropped.
const QUEUE: usize = 32;
/// The same event is written once in this time.
// A state that stays is found again at each look, which may be every second.
const REPEAT: Duration = Duration::from_mins(1);

/// A queue of events about an object.
#[derive(Debug)]
pub struct EventQueue {
    /// Kind and name of the object, for the log.
    object: String,
    sender: mpsc::Sender<Queued>,
}

#[derive(Debug)]
struct Queued {
    is_warning: bool,
    reason: &'static str,
    message: String,
}

impl EventQueue {
    /// A queue of events about an object of [`super::about`], and the task that writes them.
    pub fn new(events: Events, object: Value) -> (Self, impl Future<Output = ()> + use<>) {
        Self::start(events, object, false)
    }

    /// The same for events that several processes record: they share one.
    pub fn shared(events: Events, object: Value) -> (Self, impl Future<Output = ()> + use<>) {
        Self::start(events, object, true)
    }

    fn start(
        events: Events,
        object: Value,
        is_shared: bool,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let (sender, received) = mpsc::channel(QUEUE);
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let queue = Self { object: format!("{} {}", text("kind"), text("name")), sender };
        (queue, write(events, object, is_shared, received))
    }

    /// Adds an event.
    pub fn add(&self, is_warning: bool, reason: &'static str, message: String) {
        if self.sender.try_send(Queued { is_warning, reason, message }).is_err() {
            debug!("an event of the {} is dropped: the queue is full", self.object);
        }
    }
}

/// Writes events until the queue is gone.
async fn write(
    events: Events,
    object: Value,
    is_shared: bool,
    mut received: mpsc::Receiver<Queued>,
) {
    let mut recent: Vec<(String, Instant)> = Vec::new();
    while let Some(Queued { is_warning, reason, message }) = received.recv().await {
        let now = Instant::now();
        recent.retain(|(_, at)| *at + REPEAT > now);
        if recent.iter().any(|(of, _)| *of == message) {
            continue;
        }
        let written = if is_shared {
            events.record_shared(&object, is_warning, reason, &message).await
        } else {
            events.record(&object, is_warning, reason, &message).await
        };
        if let Err(error) = written {
            debug!(error = with_causes(&error), "cannot write an event");
        }
        // Also after a failure: an API server that refuses events is not asked again at each look.
        recent.push((message, now));
    }
}
