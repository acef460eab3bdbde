//! Many callers of a webhook at a time, over kept-alive connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use hyper::body::Bytes;
use injectd_harness::{
    client::Answer,
    connection::Endpoint,
    expect::{Outcome, expect, failed},
};
use serde_json::Value;
use tokio::task::JoinSet;

/// The answers in the order of their requests, and their times.
pub(super) struct Answers {
    pub(super) list: Vec<Answer>,
    times: Vec<Duration>,
    pub(super) seconds: f64,
}

/// A request's place in the order, its answer and its time.
struct One {
    index: usize,
    answer: Answer,
    time: Duration,
}

/// Sends each body once, with this timeout of the webhook (s).
pub(super) async fn send(
    endpoint: &Endpoint,
    bodies: &[Vec<u8>],
    callers: usize,
    timeout_seconds: u64,
) -> Outcome<Answers> {
    let requests = bodies.iter().map(|body| endpoint.post(body, timeout_seconds));
    let requests: Arc<Vec<Bytes>> = Arc::new(requests.collect());
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = Vec::new();
    for _ in 0..callers {
        connections.push(endpoint.connect().await?);
    }
    let (begin, mut tasks) = (Instant::now(), JoinSet::new());
    for mut connection in connections {
        let (requests, next) = (Arc::clone(&requests), Arc::clone(&next));
        tasks.spawn(async move {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = requests.get(index) else {
                    return Ok::<_, std::io::Error>(done);
                };
                let begin = Instant::now();
                connection.send(request).await?;
                let answer = connection.receive().await?;
                done.push(One { index, answer, time: begin.elapsed() });
            }
        });
    }
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.extend(done??);
    }
    let seconds = begin.elapsed().as_secs_f64();
    all.sort_unstable_by_key(|answer| answer.index);
    expect("the number of answers", bodies.len(), all.len())?;
    let (list, mut times): (Vec<_>, Vec<_>) =
        all.into_iter().map(|answer| (answer.answer, answer.time)).unzip();
    times.sort_unstable();
    Ok(Answers { list, times, seconds })
}

impl Answers {
    /// The only answer.
    pub(super) fn only(&self) -> Outcome<&Answer> {
        self.list.first().ok_or_else(|| failed("no answer"))
    }

    /// Fails unless all pods are injected; returns the responses.
    pub(super) fn expect_injected(&self) -> Outcome<Vec<Value>> {
        let mut responses = Vec::new();
        for answer in &self.list {
            let response = answer.response()?;
            let verdict = response["auditAnnotations"]["verdict"].as_str();
            expect("the verdict", Some("injected"), verdict)?;
            responses.push(response);
        }
        Ok(responses)
    }

    /// Answers each second.
    #[expect(clippy::cast_precision_loss, reason = "some thousand answers")]
    pub(super) fn rate(&self) -> f64 {
        self.list.len() as f64 / self.seconds
    }

    pub(super) fn text(&self) -> String {
        let centile = |percent: usize| {
            let at = self.times.len() * percent / 100;
            self.times.get(at).copied().unwrap_or_default().as_secs_f64() * 1000.0
        };
        let rate = self.rate();
        format!("{rate:.0} reviews/s, p50 {:.1} ms, p99 {:.1} ms", centile(50), centile(99))
    }
}
