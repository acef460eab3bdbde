//! The queue of evaluations: who is next, and what is free.
//!
//! Namespaces take turns, so that one with many new pods delays the first of another by one turn only.
//! Not for time: who waits too long drops its [`Waiting`].

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use injectd_telemetry::metrics::EvaluationMetrics;
use tokio::{sync::oneshot, time::Instant};

/// The threads of an evaluation. Each kind has turns of its own; they share the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// Those that accept connections, read requests and answer from memory.
    Workers,
    /// Those of [`LongWork`](crate::server::LongWork).
    Separate,
}

/// The evaluations that wait, and what is free for them.
#[derive(Debug, Clone)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Bytes of all evaluations.
    memory: usize,
    // Held for some operations on maps, and never while a task waits.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free_memory: usize,
    /// By [`Threads`].
    lines: [Line; 2],
    /// The line that is asked first: not the one that had the last turn.
    first: Threads,
    /// The line whose next evaluation waits for memory. All others wait behind it, and so it gets its
    /// memory once the evaluations that run have ended, of which there are few. If they did not wait, small
    /// ones could take the memory of a large one for ever.
    short_of_memory: Option<Threads>,
    tickets: u64,
    last_turn: Instant,
    metrics: EvaluationMetrics,
}

/// What waits for threads of one kind.
#[derive(Debug, Default)]
struct Line {
    free: usize,
    /// The namespaces in the order of their turns, by their places.
    order: BTreeMap<u64, Arc<str>>,
    namespaces: HashMap<Arc<str>, Namespace>,
    waiting: usize,
}

/// What waits in a namespace, by tickets, and the place of the namespace in the order.
#[derive(Debug)]
struct Namespace {
    place: u64,
    // By tickets: the first is the oldest, and one that gives up is found without a walk.
    waiting: BTreeMap<u64, Waiter>,
}

#[derive(Debug)]
struct Waiter {
    memory: usize,
    sender: oneshot::Sender<Held>,
}

/// A turn and its memory, which are free again once it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    queue: Queue,
    threads: Threads,
    memory: usize,
}

/// A place in the queue, which is given up once it is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    queue: Queue,
    threads: Threads,
    namespace: Arc<str>,
    ticket: u64,
    receiver: oneshot::Receiver<Held>,
}

/// An evaluation needs more memory than there is for all.
#[derive(Debug)]
pub(super) struct TooLarge;

// === impl Queue ===

impl Queue {
    /// So many turns of each kind, and so many bytes of memory for all.
    pub(super) fn new(workers: usize, separate: usize, memory: usize) -> Self {
        let line = |free| Line { free, ..Line::default() };
        let state = Mutex::new(State {
            free_memory: memory,
            lines: [line(workers), line(separate)],
            first: Threads::Workers,
            short_of_memory: None,
            tickets: 0,
            last_turn: Instant::now(),
            metrics: EvaluationMetrics::default(),
        });
        Self(Arc::new(Shared { memory, state }))
    }

    pub(super) fn report_to(&self, metrics: EvaluationMetrics) {
        let mut state = self.state();
        state.metrics = metrics;
        state.report(self.0.memory);
    }

    /// Bytes of all evaluations.
    pub(super) fn memory(&self) -> usize {
        self.0.memory
    }

    /// Since when no turn was given or ended, while reviews wait.
    pub(super) fn stands_since(&self) -> Option<Instant> {
        let state = self.state();
        state.lines.iter().any(|line| line.waiting > 0).then_some(state.last_turn)
    }

    /// Takes a place in the queue. What is free at once is there at once.
    pub(super) fn wait(
        &self,
        threads: Threads,
        namespace: &str,
        memory: usize,
    ) -> Result<Waiting, TooLarge> {
        if memory > self.0.memory {
            return Err(TooLarge);
        }
        let (sender, receiver) = oneshot::channel();
        let namespace: Arc<str> = namespace.into();
        let ticket = self.change(|state| {
            state.tickets += 1;
            let (ticket, waiter) = (state.tickets, Waiter { memory, sender });
            state.line(threads).push(Arc::clone(&namespace), ticket, waiter);
            ticket
        });
        Ok(Waiting { queue: self.clone(), threads, namespace, ticket, receiver })
    }

    /// Changes the state, and gives the turns that are free after it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let changed = change(&mut state);
        let mut given = Vec::new();
        while let Some((threads, Waiter { memory, sender })) = state.next() {
            given.push((sender, Held { queue: self.clone(), threads, memory }));
        }
        state.report(self.0.memory);
        // A turn that is not received is dropped, which changes the state again.
        drop(state);
        for (sender, held) in given {
            drop(sender.send(held));
        }
        changed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn line(&mut self, threads: Threads) -> &mut Line {
        &mut self.lines[threads as usize]
    }

    /// Takes the next evaluation for which there are a thread and memory.
    fn next(&mut self) -> Option<(Threads, Waiter)> {
        let short = self.short_of_memory.take();
        let order = short.into_iter().chain([self.first, self.first.others()]);
        for threads in order {
            let line = &self.lines[threads as usize];
            let Some(memory) = line.memory_of_next().filter(|_| line.free > 0) else { continue };
            if memory > self.free_memory {
                self.short_of_memory = Some(threads);
                return None;
            }
            self.tickets += 1;
            let place = self.tickets;
            let waiter = self.line(threads).pop(place)?;
            self.free_memory -= memory;
            self.first = threads.others();
            self.turned();
            return Some((threads, waiter));
        }
        None
    }

    fn turned(&mut self) {
        self.last_turn = Instant::now();
        self.metrics.turned();
    }

    fn report(&self, memory: usize) {
        let [workers, separate] = &self.lines;
        let taken = memory - self.free_memory;
        self.metrics.report([workers.waiting, separate.waiting], taken);
    }
}

// === impl Line ===

impl Line {
    fn push(&mut self, namespace: Arc<str>, ticket: u64, waiter: Waiter) {
        self.waiting += 1;
        let queued = self.namespaces.entry(Arc::clone(&namespace)).or_insert_with(|| {
            self.order.insert(ticket, namespace);
            Namespace { place: ticket, waiting: BTreeMap::new() }
        });
        queued.waiting.insert(ticket, waiter);
    }

    fn memory_of_next(&self) -> Option<usize> {
        let (_, namespace) = self.order.first_key_value()?;
        let (_, waiter) = self.namespaces.get(namespace)?.waiting.first_key_value()?;
        Some(waiter.memory)
    }

    /// Takes the first of the first namespace, which goes to this place, the last.
    fn pop(&mut self, place: u64) -> Option<Waiter> {
        let (_, namespace) = self.order.pop_first()?;
        let queued = self.namespaces.get_mut(&namespace)?;
        let (_, waiter) = queued.waiting.pop_first()?;
        if queued.waiting.is_empty() {
            self.namespaces.remove(&namespace);
        } else {
            queued.place = place;
            self.order.insert(place, namespace);
        }
        self.waiting -= 1;
        self.free -= 1;
        Some(waiter)
    }

    /// Removes an evaluation that no longer waits, if it had no turn.
    fn remove(&mut self, namespace: &str, ticket: u64) {
        let Some(queued) = self.namespaces.get_mut(namespace) else { return };
        if queued.waiting.remove(&ticket).is_none() {
            return;
        }
        self.waiting -= 1;
        if queued.waiting.is_empty() {
            self.order.remove(&queued.place);
            self.namespaces.remove(namespace);
        }
    }
}

// === impl Threads ===

impl Threads {
    fn others(self) -> Self {
        match self {
            Self::Workers => Self::Separate,
            Self::Separate => Self::Workers,
        }
    }
}

// === impl Waiting ===

impl Waiting {
    /// The turn, if it is there.
    pub(super) fn try_turn(&mut self) -> Option<Held> {
        self.receiver.try_recv().ok()
    }

    /// Waits for the turn.
    pub(super) async fn turn(mut self) -> Held {
        let held = (&mut self.receiver).await;
        held.expect("a place in the queue must not be lost")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.change(|state| state.line(self.threads).remove(&self.namespace, self.ticket));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.queue.change(|state| {
            state.line(self.threads).free += 1;
            state.free_memory += self.memory;
            state.turned();
        });
    }
}

#[cfg(test)]
mod tests;
