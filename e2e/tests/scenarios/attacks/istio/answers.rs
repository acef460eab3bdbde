//! What a server answers while a tenant is beside it, and the row of figures.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use injectd_harness::{
    expect::{Outcome, eventually, expect, failed},
    scenario::note,
};
use injectd_testkit::reviews::TYPICAL;
use serde_json::Value;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::attacks::{
    beside::{Beside, Sample, percentile, problems},
    expensive,
    target::{Place, Target},
};

/// The longest wait for the answers of an attack.
const ANSWER_TIME: Duration = Duration::from_mins(1);
// Samples before the attack, without which there is nothing to compare with.
const QUIET_TIME: Duration = Duration::from_secs(1);
const BETWEEN_REVIEWS: Duration = Duration::from_millis(20);
/// Reviews of the tenant that are beside each attack at least.
const FEW: usize = 10;
/// One of as many reviews of the tenant has to be evaluated.
// Answers from memory alone would show nothing of the threads that evaluate.
const COLD_ONE_IN: usize = 5;
const COLD_ANNOTATION: &str = "sidecar.istio.io/proxyCPU";

/// How often each outcome of a review was seen.
pub(super) type Answers = BTreeMap<String, usize>;

pub(super) fn text(answers: &Answers) -> String {
    let answers: Vec<_> = answers.iter().map(|(text, count)| format!("{text} × {count}")).collect();
    answers.join(", ")
}

/// Sends a body so often at the same time, each over a connection of its own.
pub(super) async fn ask_all(place: &Place, body: Vec<u8>, count: usize) -> Answers {
    let (body, mut tasks) = (Arc::new(body), JoinSet::new());
    for _ in 0..count {
        let (place, body) = (place.clone(), Arc::clone(&body));
        tasks.spawn(async move { ask(&place, &body).await });
    }
    let mut answers = Answers::new();
    while let Some(outcome) = tasks.join_next().await {
        *answers.entry(outcome.unwrap_or_else(|_| "a panic".to_owned())).or_default() += 1;
    }
    answers
}

/// Sends a review; returns the outcome as a text.
async fn ask(place: &Place, body: &[u8]) -> String {
    let exchange = async {
        let mut connection = place.endpoint.connect().await?;
        connection.send(&place.request(body)).await?;
        connection.receive().await
    };
    match timeout(ANSWER_TIME, Box::pin(exchange)).await {
        Ok(Ok(answer)) if answer.status == 200 => verdict(&answer.body),
        Ok(Ok(answer)) => answer.status.to_string(),
        Ok(Err(_)) => "connection closed".to_owned(),
        Err(_) => format!("no answer in {} s", ANSWER_TIME.as_secs()),
    }
}

fn verdict(body: &[u8]) -> String {
    let review: Value = serde_json::from_slice(body).unwrap_or_default();
    let response = &review["response"];
    if response["allowed"] == false {
        let message = response["status"]["message"].as_str().unwrap_or_default();
        return format!("denied ({})", message.chars().take(70).collect::<String>());
    }
    (if response["patch"].is_string() { "injected" } else { "skipped" }).to_owned()
}

/// The tenant and the probes beside an attack.
pub(super) struct Tenant {
    reviews: Beside,
    probes: Beside,
    begin: Instant,
    cpu: f64,
    hits: u64,
}

impl Tenant {
    /// Starts them, and returns after a quiet time.
    pub(super) async fn start(target: &mut Target) -> Outcome<Self> {
        let reviews = Beside::reviews(&target.place()?, BETWEEN_REVIEWS, |index| {
            if is_cold(index) {
                let value = format!("{}m", index + 1);
                expensive::annotated(COLD_ANNOTATION, value).to_string().into()
            } else {
                TYPICAL.as_bytes().to_vec()
            }
        });
        let probes = Beside::probes(target.admin());
        sleep(QUIET_TIME).await;
        let (cpu, hits) = (target.cpu_seconds()?, target.hits().await?);
        Ok(Self { reviews, probes, begin: Instant::now(), cpu, hits })
    }

    /// Prints the figures of an attack that has ended. Fails if it has ended the process, or if a review of
    /// the tenant whose answer is known was not answered.
    pub(super) async fn end(self, target: &mut Target, what: &str, answers: &str) -> Outcome {
        // Also beside an attack that is answered at once.
        let reviews = async || match self.reviews.since(self.begin).len() {
            FEW.. => Ok(()),
            few => Err(failed(format!("there are {few}"))),
        };
        eventually("the tenant sends reviews", reviews).await?;
        let end = Instant::now();
        let state = target.server.injectd.expect_running();
        let hits = target.hits().await.unwrap_or_default().saturating_sub(self.hits);
        let cpu = target.cpu_seconds().unwrap_or_default() - self.cpu;
        let seen: Vec<(usize, Sample)> = self.reviews.end().into_iter().enumerate().collect();
        let of = |is_wanted: fn(usize) -> bool| -> Vec<Sample> {
            let during = |sample: &Sample| sample.begin >= self.begin && sample.begin < end;
            let seen = seen.iter().filter(|(index, it)| during(it) && is_wanted(*index));
            seen.map(|(_, it)| it.clone()).collect()
        };
        let (all, known, probes) = (of(|_| true), of(|sample| !is_cold(sample)), self.probes.end());
        let [p99, longest] = [99, 100].map(|percent| percentile(&all, percent).as_millis());
        note(&format!(
            "{what}: {cpu:.2} s of CPU; peak RSS {} MiB; answers: {}; tenant: p99 / longest {p99} / \
             {longest} ms, {} of {} refused, {hits} answers from memory of {} known; worst probe {} ms",
            target.peak_mib().unwrap_or_default(),
            answers,
            problems(&all).len(),
            all.len(),
            known.len(),
            percentile(&probes, 100).as_millis(),
        ));
        state?;
        // Those at its begin and its end may count before or after it.
        let is_known = hits + 2 >= u64::try_from(known.len())?;
        expect(format!("whether {hits} of {} come from memory", known.len()), true, is_known)?;
        expect("reviews with a known answer that failed", &[] as &[&str], &*problems(&known))?;
        expect("probes that failed", &[] as &[&str], &*problems(&probes))
    }
}

fn is_cold(index: usize) -> bool {
    index % COLD_ONE_IN == COLD_ONE_IN - 1
}
