//! Clients with many connections, and the outcomes of the requests that they sent completely.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use hyper::body::Bytes;
use injectd_harness::{
    client::Answer,
    connection::{Connection, Endpoint},
    expect::{Outcome, expect},
};
use tokio::{task::JoinSet, time::sleep};

/// The connections under load, of all clients.
pub(super) const LOAD_CONNECTIONS: usize = 16;
/// Leaves room for swaps on a machine of few cores.
const PAUSE: Duration = Duration::from_millis(30);
const EXAMPLES: usize = 3;

/// An answer that is right, and the certificate beside it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Good {
    pub(super) body: Bytes,
    pub(super) certificate: Vec<u8>,
}

/// The outcomes of requests that were sent completely.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) answered: usize,
    pub(super) unsent: usize,
    pub(super) opened: usize,
    pub(super) slowest: Duration,
    pub(super) answers: BTreeMap<Bytes, usize>,
    pub(super) certificates: BTreeSet<Vec<u8>>,
    failed: usize,
    examples: Vec<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.unsent += other.unsent;
        self.opened += other.opened;
        self.failed += other.failed;
        self.slowest = self.slowest.max(other.slowest);
        for (body, count) in other.answers {
            *self.answers.entry(body).or_default() += count;
        }
        self.certificates.extend(other.certificates);
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
    }

    fn count(&mut self, answer: Answer) {
        if answer.status != 200 {
            let text = String::from_utf8_lossy(&answer.body);
            let text: String = text.chars().take(80).collect();
            self.fail(format!("status {}: {text}", answer.status));
            return;
        }
        self.answered += 1;
        *self.answers.entry(answer.body).or_default() += 1;
    }

    fn fail(&mut self, example: String) {
        self.failed += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example);
        }
    }

    /// Fails unless all answers, and all certificates, are among these.
    pub(super) fn expect_good(&self, good: &[Good]) -> Outcome {
        let wrong =
            self.answers.iter().filter(|(body, _)| good.iter().all(|answer| answer.body != **body));
        let wrong: usize = wrong.map(|(_, count)| count).sum();
        let is_other =
            |certificate: &&Vec<u8>| good.iter().all(|good| good.certificate != **certificate);
        let others = self.certificates.iter().filter(is_other).count();
        expect(format!("failed reviews (such as {:?})", self.examples), 0, self.failed)?;
        expect(format!("wrong answers, of {}", self.answered), 0, wrong)?;
        expect("unexpected certificates", 0, others)
    }
}

/// When a load ends.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// The server asks for all connections to be closed.
    Closed,
    /// The server refuses new connections, which take the place of those that it closes.
    Refused,
}

/// Connections that send the same review.
pub(super) struct Client {
    endpoint: Endpoint,
    request: Bytes,
    connections: Vec<Connection>,
    pub(super) tally: Tally,
}

impl Client {
    pub(super) fn new(endpoint: Endpoint, request: Bytes) -> Self {
        Self { endpoint, request, connections: Vec::new(), tally: Tally::default() }
    }

    pub(super) async fn open(&mut self, count: usize) {
        for _ in 0..count {
            if let Err(why) = self.connect().await {
                self.tally.fail(format!("no connection: {why}"));
            }
        }
    }

    /// One more connection; one that fails is counted as unsent.
    async fn connect(&mut self) -> io::Result<()> {
        let connection = self.endpoint.connect().await.inspect_err(|_| self.tally.unsent += 1)?;
        self.tally.opened += 1;
        self.tally.certificates.insert(connection.certificate());
        self.connections.push(connection);
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.connections.clear();
    }

    /// One review over each connection at a time; returns how many connections are used up.
    pub(super) async fn round(&mut self) -> usize {
        let (mut sent, mut used) = (Vec::new(), 0);
        for mut connection in std::mem::take(&mut self.connections) {
            if connection.send(&self.request).await.is_ok() {
                sent.push((connection, Instant::now()));
            } else {
                self.tally.unsent += 1;
                used += 1;
            }
        }
        for (mut connection, begin) in sent {
            match connection.receive().await {
                Ok(answer) => {
                    self.tally.slowest = self.tally.slowest.max(begin.elapsed());
                    let is_last = answer.is_last;
                    self.tally.count(answer);
                    used += usize::from(is_last);
                    self.connections.extend((!is_last).then_some(connection));
                }
                Err(why) => {
                    let number = connection.received + 1;
                    self.tally.fail(format!("request {number} of a connection: {why}"));
                    used += 1;
                }
            }
        }
        used
    }

    /// Reviews over all connections until it is stopped; opens this many anew in each round.
    pub(super) async fn load(mut self, is_stopped: Arc<AtomicBool>, replaced: usize) -> Self {
        while !is_stopped.load(Ordering::Relaxed) {
            self.round().await;
            for _ in 0..replaced {
                drop(self.connections.drain(..1));
                self.open(1).await;
            }
            sleep(PAUSE).await;
        }
        self
    }

    /// Reviews as fast as they are answered until it is stopped.
    pub(super) async fn busy(mut self, is_stopped: Arc<AtomicBool>) -> Self {
        while !is_stopped.load(Ordering::Relaxed) {
            self.round().await;
        }
        self
    }

    pub(super) async fn load_until(mut self, end: Until, connections: usize) -> Self {
        self.open(connections).await;
        while !self.connections.is_empty() {
            for _ in 0..self.round().await {
                if matches!(end, Until::Refused) {
                    // At the end it is refused.
                    let _ = self.connect().await;
                }
            }
        }
        self
    }
}

/// Clients that run at the same time.
#[derive(Default)]
pub(super) struct Clients {
    pub(super) is_stopped: Arc<AtomicBool>,
    tasks: JoinSet<Client>,
}

impl Clients {
    pub(super) fn spawn(&mut self, load: impl Future<Output = Client> + Send + 'static) {
        self.tasks.spawn(load);
    }

    /// Stops those that run until then.
    pub(super) async fn stop(self) -> Outcome<Tally> {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.join().await
    }

    /// Waits for the end of all.
    pub(super) async fn join(mut self) -> Outcome<Tally> {
        let mut total = Tally::default();
        while let Some(client) = self.tasks.join_next().await {
            total.add(client?.tally);
        }
        Ok(total)
    }
}
