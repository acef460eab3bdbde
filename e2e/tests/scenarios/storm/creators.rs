//! Tasks that create pods as controllers do, until each exists.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use injectd_harness::{
    api::Api,
    expect::{DEADLINE, Outcome, expect, failed, soon},
    objects::plain_pod,
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use super::phase::Phase;

/// The label with the number of a creation.
pub(super) const NUMBER: &str = "storm/number";
/// A controller's first retry comes sooner, its later ones later.
const RETRY: Duration = Duration::from_millis(100);

/// Each task creates one pod after the other, and retries until the pod exists.
pub(super) struct Creators {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    count: usize,
}

struct Shared {
    api: Api,
    namespace: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last one counts.
    phases: Vec<Phase>,
    pause: Duration,
    begun: u64,
    /// The creation that each task is busy with.
    busy_with: Vec<Option<u64>>,
    failure: Option<String>,
    is_ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Creators {
    pub(super) fn new(api: &Api, namespace: &str, count: usize, pause: Duration) -> Self {
        let state = State { pause, busy_with: vec![None; count], ..State::default() };
        let (api, namespace) = (api.clone(), namespace.to_owned());
        let shared = Arc::new(Shared { api, namespace, state: Mutex::new(state) });
        Self { shared, tasks: JoinSet::new(), count }
    }

    /// Counts pods for a new phase from now on; waits for creations that count for another.
    pub(super) async fn enter(&mut self, name: &'static str) -> Outcome {
        self.shared.state().phases.push(Phase { name, ..Phase::default() });
        if self.tasks.is_empty() {
            for index in 0..self.count {
                self.tasks.spawn(run(Arc::clone(&self.shared), index));
            }
        }
        self.finish().await
    }

    /// Waits for the creations that are in progress now.
    pub(super) async fn finish(&self) -> Outcome {
        let before = self.shared.state().busy_with.clone();
        soon("the creations in progress", async || {
            let state = self.shared.state();
            let mut pairs = state.busy_with.iter().zip(&before);
            let is_done = pairs.all(|(now, then)| now.is_none() || now != then);
            expect("whether they have ended", true, is_done)
        })
        .await
    }

    /// Creates pods with this pause, as fast as a rollout, so that connections lead to every replica.
    pub(super) async fn hurry(&self, pause: Duration) -> Outcome<Duration> {
        let before = std::mem::replace(&mut self.shared.state().pause, pause);
        self.wait_for(self.phase().created + 4 * self.count).await?;
        Ok(before)
    }

    pub(super) fn set_pause(&self, pause: Duration) {
        self.shared.state().pause = pause;
    }

    /// Waits until the phase has so many pods.
    pub(super) async fn wait_for(&self, created: usize) -> Outcome {
        soon("the pods of the phase", async || {
            let state = self.shared.state();
            let found = state.phases.last().map_or(0, |phase| phase.created);
            let why = state.failure.as_deref().unwrap_or("no failure");
            expect(format!("whether {created} pods are created ({why})"), true, found >= created)
        })
        .await?;
        self.expect_no_failure()
    }

    pub(super) fn expect_no_failure(&self) -> Outcome {
        self.shared.state().failure.as_ref().map_or(Ok(()), |why| Err(failed(why)))
    }

    /// Creates no more pods, and waits for the creations in progress.
    pub(super) async fn stop(&mut self) {
        self.shared.state().is_ended = true;
        while self.tasks.join_next().await.is_some() {}
    }

    pub(super) fn phases(&self) -> Vec<Phase> {
        self.shared.state().phases.clone()
    }

    pub(super) fn phase(&self) -> Phase {
        self.shared.state().phases.last().cloned().unwrap_or_default()
    }

    /// Counts a pod of a controller; returns whether it has a sidecar.
    pub(super) fn count(&self, pod: &Value) -> Outcome<bool> {
        let mut state = self.shared.state();
        let phase = state.phases.last_mut().ok_or_else(|| failed("there must be a phase"))?;
        phase.count(pod, None)
    }

    /// How many creations have begun.
    pub(super) fn begun(&self) -> u64 {
        self.shared.state().begun
    }

    pub(super) fn in_progress(&self) -> usize {
        self.shared.state().busy_with.iter().flatten().count()
    }

    pub(super) fn tasks(&self) -> usize {
        self.count
    }
}

async fn run(shared: Arc<Shared>, index: usize) {
    loop {
        let pause = shared.state().pause;
        sleep(pause).await;
        let (phase, number) = {
            let mut state = shared.state();
            if state.is_ended || state.failure.is_some() {
                return;
            }
            let number = state.begun;
            state.begun += 1;
            state.busy_with[index] = Some(number);
            (state.phases.len().saturating_sub(1), number)
        };
        let outcome = create(&shared, phase, number).await;
        let mut state = shared.state();
        state.busy_with[index] = None;
        if let Err(why) = outcome {
            state.failure = Some(why.to_string());
        }
    }
}

async fn create(shared: &Shared, phase: usize, number: u64) -> Outcome {
    let mut pod = plain_pod("");
    let labels = json!({NUMBER: number.to_string()});
    pod["metadata"] = json!({"generateName": "storm-", "labels": labels});
    let first = Instant::now();
    while first.elapsed() < DEADLINE {
        let begin = Instant::now();
        let made = shared.api.create(Some(&shared.namespace), &pod).await;
        {
            let mut state = shared.state();
            let phase = &mut state.phases[phase];
            match made.and_then(injectd_harness::api::Answer::created) {
                Ok(pod) => {
                    phase.begins.push(begin);
                    phase.slowest = phase.slowest.max(first.elapsed());
                    return phase.count(&pod, Some(begin)).map(drop);
                }
                Err(why) => phase.fail(&why.to_string()),
            }
        }
        sleep(RETRY).await;
    }
    let examples = shared.state().phases[phase].examples.clone();
    Err(failed(format!("no pod after {} s, such as {examples:?}", DEADLINE.as_secs())))
}
