//! A well-behaved client beside attackers, and a kubelet's probes, with a sample of each request.
//!
//! Each has a thread of its own, so that the tasks of attackers do not delay it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use injectd_harness::{
    client::probe,
    connection::Connection,
    expect::{Outcome, expect, failed},
};
use tokio::{
    runtime,
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use super::target::Place;

/// A webhook's default timeout: the client gives up on a review after it.
const GIVES_UP: Duration = Duration::from_secs(10);
// A kubelet asks each ten seconds; a scenario is shorter, and must not miss a stop of a second.
const BETWEEN_PROBES: Duration = Duration::from_millis(50);
// A handshake takes the CPU of several reviews: more of them would be load and not a measure.
const BETWEEN_CONNECTIONS: Duration = Duration::from_secs(1);
const PATCH: &[u8] = br#""patch":""#;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) begin: Instant,
    pub(super) took: Duration,
    /// Bytes of the request; 0 without a body.
    pub(super) bytes: usize,
    /// Why it failed, if it did.
    pub(super) problem: Option<String>,
}

/// The problem of a review that is refused for now: 503 with `Retry-After`.
pub(super) const REFUSED: &str = "the review is refused for now";

/// A client that sends requests until it is ended.
pub(super) struct Beside {
    samples: Arc<Mutex<Vec<Sample>>>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Reviews over a kept connection, each as soon as the last one is answered, and with `every` not
    /// sooner than so long after it.
    pub(super) fn reviews(
        place: &Place,
        every: Duration,
        body: impl Fn(usize) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let mut caller = Caller { place: place.clone(), kept: None };
        let mut count = 0;
        Self::start(every, async move || {
            let request = caller.place.request(&body(count));
            count += 1;
            caller.sample(&request).await
        })
    }

    /// A new connection each second with one review, of these in turn.
    pub(super) fn new_connections(place: &Place, bodies: [Vec<u8>; 2]) -> Self {
        let mut caller = Caller { place: place.clone(), kept: None };
        let mut requests = bodies.map(|body| caller.place.request(&body));
        Self::start(BETWEEN_CONNECTIONS, async move || {
            caller.kept = None;
            requests.rotate_left(1);
            caller.sample(&requests[0]).await
        })
    }

    /// `/live` and `/ready` in turn, each over a new connection.
    pub(super) fn probes(admin: SocketAddr) -> Self {
        let mut paths = ["/live", "/ready"];
        Self::start(BETWEEN_PROBES, async move || {
            paths.rotate_left(1);
            sample(0, async || {
                let (status, _) = probe(admin, paths[0]).await?;
                expect(paths[0], 200, status)
            })
            .await
        })
    }

    fn start<A>(every: Duration, mut ask: A) -> Self
    where
        A: AsyncFnMut() -> Sample + Send + 'static,
    {
        let (samples, (stop, stopped)) = (Arc::<Mutex<Vec<_>>>::default(), watch::channel(false));
        let seen = Arc::clone(&samples);
        let thread = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let mut stopped = stopped;
                while !*stopped.borrow() {
                    let sample = ask().await;
                    let next = sample.begin + every;
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
                    tokio::select! {
                        () = sleep_until(next) => {}
                        _ = stopped.changed() => return,
                    }
                }
            });
        });
        Self { samples, stop, thread: Some(thread) }
    }

    /// The samples since a time, so far.
    pub(super) fn since(&self, begin: Instant) -> Vec<Sample> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let first = samples.partition_point(|sample| sample.begin < begin);
        samples[first..].to_vec()
    }

    /// The samples before a time.
    pub(super) fn before(&self, end: Instant) -> Vec<Sample> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let last = samples.partition_point(|sample| sample.begin < end);
        samples[..last].to_vec()
    }

    /// Ends the client once its request is answered; returns all samples.
    pub(super) fn end(mut self) -> Vec<Sample> {
        self.join();
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn join(&mut self) {
        // The thread may have ended.
        let _ = self.stop.send(true);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.join();
    }
}

/// Sends reviews over one connection, and over a new one after an error.
struct Caller {
    place: Place,
    kept: Option<Connection>,
}

impl Caller {
    async fn sample(&mut self, request: &[u8]) -> Sample {
        let found = sample(request.len(), async || {
            let connection = match &mut self.kept {
                Some(connection) => connection,
                None => self.kept.insert(self.place.endpoint.connect().await?),
            };
            connection.send(request).await?;
            let answer = connection.receive().await?;
            if answer.status == 503 && answer.retry_after.is_some() {
                return Err(failed(REFUSED));
            }
            expect("the status of a review", 200, answer.status)?;
            let has_patch = answer.body.windows(PATCH.len()).any(|window| window == PATCH);
            if has_patch { Ok(()) } else { Err(failed("a review is answered without a patch")) }
        })
        .await;
        if found.problem.is_some() {
            self.kept = None;
        }
        found
    }
}

async fn sample(bytes: usize, mut request: impl AsyncFnMut() -> Outcome) -> Sample {
    let begin = Instant::now();
    let problem = match timeout(GIVES_UP, request()).await {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why.to_string()),
        Err(_) => Some(format!("not answered within {} s", GIVES_UP.as_secs())),
    };
    Sample { begin, took: begin.elapsed(), bytes, problem }
}

/// The time that this share of the samples does not exceed, by nearest rank.
pub(super) fn percentile(samples: &[Sample], percent: usize) -> Duration {
    let mut times: Vec<_> = samples.iter().map(|sample| sample.took).collect();
    times.sort_unstable();
    let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(rank).copied().unwrap_or_default()
}

/// p50, p99 and the longest, in ms.
pub(super) fn times(samples: &[Sample]) -> String {
    let times = [50, 99, 100].map(|percent| percentile(samples, percent).as_secs_f64() * 1e3);
    times.map(|time| format!("{time:.2}")).join(" / ")
}

/// Those that failed.
pub(super) fn problems(samples: &[Sample]) -> Vec<&str> {
    samples.iter().filter_map(|sample| sample.problem.as_deref()).collect()
}
