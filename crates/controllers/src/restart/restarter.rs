//! Restarts the workloads of a list, a few at a time: reads, asks the planner, writes.
//!
//! Not for where the list comes from, nor for who may act: that is the controller, or a person at
//! a terminal.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::future::BoxFuture;
use injectd_k8s::workload::Workload;
use jiff::Timestamp;
use kube::Client;

use super::{
    decision::{Decision, Wait},
    finding::{Audit, Finding},
    outcomes::{Outcomes, Stopped},
    plan::{Candidate, InFlight, PAUSE, Policy},
    queue::Queue,
    reads::ApiServer,
    rim::{Answer, Mark, RequestError, Rim},
    workload::Observed,
};

mod candidates;

/// Maximum number of findings that are kept: some MiB, in equal parts of the namespaces. Further ones
/// wait for the next audit.
pub const MAX_FINDINGS: usize = 10_000;
/// Maximum number of findings that a step looks at, which bounds its requests.
const BATCH: usize = 50;

/// Restarts the workloads of a list.
pub struct Restarter {
    cluster: Box<dyn Rim>,
    policy: Policy,
    queue: Queue,
    /// Why the workloads of the queue wait, as far as they were looked at.
    waits: HashMap<Workload, Waiting>,
    /// Workloads that waited and that are not listed any more, until that is reported.
    gone: Vec<Workload>,
    in_flight: Vec<InFlight>,
    /// When the API server refused to restart workloads of the queue.
    refused: HashMap<Workload, Timestamp>,
    outcomes: Outcomes,
    /// Whether all restarts are stopped, as far as it was reported.
    is_stopped: bool,
}

/// Why a workload waits, as it was reported.
struct Waiting {
    wait: Wait,
    /// What was found about it, without the number of its pods.
    found: String,
}

/// Whether the process may act now: it may have lost its Lease.
pub type MayAct<'a> = &'a (dyn Fn() -> bool + Send + Sync + 'a);

/// What happened in a step.
#[derive(Debug)]
pub enum Notice {
    /// A workload was restarted.
    Restarted(Finding),
    /// A workload waits, for the first time, or what was found about it or the reason to wait is another
    /// one than before.
    Waits(Finding, Wait),
    /// A workload that waited is not found any more.
    Gone(Workload),
    /// The rollout of a restarted workload is finished, or the workload was deleted.
    Finished(InFlight),
    /// The rollout of a restarted workload does not finish: restarts of its namespace stop.
    Stuck(InFlight),
    /// All restarts stopped, since those of this workload and in these namespaces did not help.
    Stopped(Workload, String),
    /// Restarts go on.
    Resumed,
    /// A workload could not be read or restarted; it is tried again.
    Failed(Workload, RequestError),
}

impl Restarter {
    /// Restarts workloads of a cluster by these rules.
    #[must_use]
    pub fn new(client: Client, policy: Policy) -> Self {
        Self::of(Box::new(ApiServer::new(client)), policy)
    }

    fn of(cluster: Box<dyn Rim>, policy: Policy) -> Self {
        Self {
            cluster,
            policy,
            queue: Queue::default(),
            waits: HashMap::new(),
            gone: Vec::new(),
            in_flight: Vec::new(),
            refused: HashMap::new(),
            outcomes: Outcomes::default(),
            is_stopped: false,
        }
    }

    /// Replaces the list, without the workloads that roll out. Returns how many findings are over
    /// [`MAX_FINDINGS`], and left out.
    pub fn set_findings(&mut self, findings: Vec<Finding>) -> usize {
        let mut known = BTreeSet::new();
        let mut is_new =
            |workload: &Workload| !self.is_in_flight(workload) && known.insert(workload.clone());
        let new = findings.into_iter().filter(|finding| is_new(&finding.workload)).collect();
        let (queue, left_out) = self.queue.replaced(new, MAX_FINDINGS);
        self.queue = queue;
        let gone: Vec<_> = self.waits.extract_if(|workload, _| !known.contains(workload)).collect();
        let gone = gone.into_iter().map(|(workload, _)| workload);
        // The end of a rollout is reported.
        let gone: Vec<_> = gone.filter(|workload| !self.is_in_flight(workload)).collect();
        self.gone.extend(gone);
        self.refused.retain(|workload, _| known.contains(workload));
        left_out
    }

    /// Replaces the list by the findings of an audit, which also shows whether earlier restarts helped.
    /// Returns what [`Self::set_findings`] does.
    pub fn audited(&mut self, audit: Audit) -> usize {
        self.outcomes.audited(&audit);
        self.set_findings(audit.findings)
    }

    /// Counts the rollouts that a predecessor began in the last hour, and that are not finished.
    ///
    /// # Errors
    /// When the workloads cannot be read.
    pub fn recover(&mut self) -> Answer<'_, ()> {
        Box::pin(async move {
            let since = self.cluster.now() - PAUSE;
            for (workload, observed) in self.cluster.unfinished(since).await? {
                self.adopt(workload, &observed);
            }
            Ok(())
        })
    }

    /// Looks at rollouts and at the next workloads of the list, and restarts those that may be
    /// restarted now. `may_act` is asked before each restart.
    pub fn step<'a>(&'a mut self, may_act: MayAct<'a>) -> BoxFuture<'a, Vec<Notice>> {
        Box::pin(async move {
            let mut notices: Vec<_> = self.gone.drain(..).map(Notice::Gone).collect();
            self.follow(&mut notices).await;
            let batch = self.draw();
            if !batch.is_empty() {
                self.look(batch, may_act, &mut notices).await;
            }
            self.note_stop(&mut notices);
            notices
        })
    }

    /// Reports once that all restarts stopped, or that they go on.
    fn note_stop(&mut self, notices: &mut Vec<Notice>) {
        let stopped = self.outcomes.stopped(&self.in_flight);
        let was_stopped = std::mem::replace(&mut self.is_stopped, stopped.is_some());
        match stopped {
            Some(Stopped { example, namespaces }) if !was_stopped => {
                notices.push(Notice::Stopped(example, namespaces));
            }
            None if was_stopped => notices.push(Notice::Resumed),
            _ => {}
        }
    }

    /// Takes the next findings of namespaces with room.
    fn draw(&mut self) -> Vec<Finding> {
        let namespaces: BTreeSet<_> =
            self.queue.iter().map(|finding| finding.workload.namespace.clone()).collect();
        let room = self.room();
        let closed = namespaces.into_iter().filter(|namespace| room(namespace).is_some()).collect();
        drop(room);
        self.queue.draw(BATCH, &closed)
    }

    /// Why no workload of a namespace is restarted now, if so.
    fn room(&self) -> impl Fn(&str) -> Option<Wait> {
        let stops = self.outcomes.stops(&self.in_flight);
        move |namespace| {
            stops.wait(namespace).or_else(|| self.policy.room(namespace, &self.in_flight))
        }
    }

    /// Looks at findings, and restarts those that may be restarted now.
    async fn look(&mut self, batch: Vec<Finding>, may_act: MayAct<'_>, notices: &mut Vec<Notice>) {
        let candidates = self.candidates(&batch).await;
        let (mut known, mut asked) = (Vec::new(), Vec::new());
        for (finding, candidate) in batch.into_iter().zip(candidates) {
            match candidate {
                Ok(candidate) => {
                    asked.push((finding.workload.clone(), candidate));
                    known.push(finding);
                }
                Err(error) => {
                    let workload = &finding.workload;
                    notices.extend(error.map(|error| Notice::Failed(workload.clone(), error)));
                    self.queue.push_back(finding);
                }
            }
        }
        let decisions = self.policy.plan(self.cluster.now(), &asked, &self.in_flight);
        let mut chosen = Vec::new();
        for ((finding, (_, candidate)), decision) in known.into_iter().zip(asked).zip(decisions) {
            match decision {
                Decision::Wait(wait) => self.wait(finding, &candidate, wait, notices),
                Decision::Restart => chosen.push(finding),
            }
        }
        // After all others were looked at: they show which restarts did not help.
        for finding in chosen {
            self.restart(finding, may_act, notices).await;
        }
    }

    /// The restarted workloads whose rollout is not finished.
    #[must_use]
    pub fn in_flight(&self) -> &[InFlight] {
        &self.in_flight
    }

    /// Whether all restarts are stopped, since those in several namespaces did not help.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The workloads that are not restarted, and why; `None` if they were not looked at yet.
    pub fn waiting(&self) -> impl Iterator<Item = (&Finding, Option<Wait>)> {
        let of_namespace = self.room();
        let mut rooms = BTreeMap::new();
        self.queue.iter().map(move |finding| {
            let namespace = &*finding.workload.namespace;
            let room = rooms.entry(namespace).or_insert_with(|| of_namespace(namespace));
            let known = self.waits.get(&finding.workload).map(|waiting| &waiting.wait);
            // What changes within minutes may be out of date.
            let known = known.filter(|wait| room.is_none() || !wait.is_short());
            (finding, known.cloned().or_else(|| room.clone()))
        })
    }

    /// Looks at the rollouts of restarted workloads.
    async fn follow(&mut self, notices: &mut Vec<Notice>) {
        for before in std::mem::take(&mut self.in_flight) {
            if !before.is_due(self.cluster.now()) {
                self.in_flight.push(before);
                continue;
            }
            let observed = match self.cluster.workload(&before.workload).await {
                Ok(observed) => observed,
                Err(error) => {
                    notices.push(Notice::Failed(before.workload.clone(), error));
                    self.in_flight.push(InFlight { asked_at: self.cluster.now(), ..before });
                    continue;
                }
            };
            let now = self.cluster.now();
            let Some(after) = self.policy.follow(now, before.clone(), observed.as_ref()) else {
                if observed.is_some() {
                    self.outcomes.finished(before.clone(), now);
                }
                notices.push(Notice::Finished(before));
                continue;
            };
            if after.stuck.is_some() && before.stuck.is_none() {
                notices.push(Notice::Stuck(after.clone()));
            }
            self.in_flight.push(after);
        }
    }

    /// Restarts a workload, if what is read now still allows it.
    async fn restart(&mut self, finding: Finding, may_act: MayAct<'_>, notices: &mut Vec<Notice>) {
        let workload = &finding.workload;
        let candidate = match self.candidate(&finding).await {
            Ok(candidate) => candidate,
            Err(error) => {
                notices.push(Notice::Failed(workload.clone(), error));
                return self.queue.push_back(finding);
            }
        };
        let now = self.cluster.now();
        let asked = [(workload.clone(), candidate)];
        let decision = self.policy.plan(now, &asked, &self.in_flight).pop();
        let [(_, candidate)] = asked;
        let wait = match decision {
            Some(Decision::Wait(wait)) => Some(wait),
            _ => self.room()(&workload.namespace),
        };
        if let Some(wait) = wait {
            return self.wait(finding, &candidate, wait, notices);
        }
        let Some(observed) = candidate.observed.filter(|_| may_act()) else {
            return self.queue.push_back(finding);
        };
        let trigger = finding.evidence.trigger(&observed);
        let digest = trigger.as_ref().map(|trigger| &*trigger.digest);
        let mark = Mark { observed: &observed, at: now, digest };
        if let Err(error) = self.cluster.restart(workload, mark).await {
            return self.failed(finding, error, notices);
        }
        self.queue.restarted(&workload.namespace);
        self.waits.remove(workload);
        self.outcomes.forget(workload);
        let workload = Workload { uid: Some(observed.uid), ..workload.clone() };
        self.in_flight.push(InFlight { trigger, ..InFlight::new(workload, now) });
        notices.push(Notice::Restarted(finding));
    }

    /// A restart failed. Other namespaces are next.
    fn failed(&mut self, finding: Finding, error: RequestError, notices: &mut Vec<Notice>) {
        self.queue.restarted(&finding.workload.namespace);
        if error.may_have_acted() {
            // Whether it was restarted must be read before others of its namespace are.
            self.queue.push_front(finding.clone());
        } else {
            if error.is_refusal() {
                self.refused.insert(finding.workload.clone(), self.cluster.now());
            }
            self.queue.push_back(finding.clone());
        }
        notices.push(Notice::Failed(finding.workload, error));
    }

    fn wait(
        &mut self,
        finding: Finding,
        candidate: &Candidate,
        wait: Wait,
        notices: &mut Vec<Notice>,
    ) {
        if let Some(observed) = &candidate.observed {
            // The answer to an earlier restart of it was lost.
            self.adopt(finding.workload.clone(), observed);
            self.note(&finding, observed, &wait);
        }
        let now = Waiting { wait: wait.clone(), found: finding.without_count().to_owned() };
        let is_known = |before: &Waiting| {
            before.wait.as_str() == wait.as_str() && before.found == finding.without_count()
        };
        let before = self.waits.insert(finding.workload.clone(), now);
        if !before.as_ref().is_some_and(is_known) {
            notices.push(Notice::Waits(finding.clone(), wait));
        }
        self.queue.push_back(finding);
    }

    /// Takes note of a restart that did not help, or of one that is not waited for any more.
    fn note(&mut self, finding: &Finding, observed: &Observed, wait: &Wait) {
        let trigger = finding.evidence.trigger(observed);
        match (wait, trigger) {
            (Wait::DidNotHelp { at }, Some(trigger)) => {
                self.outcomes.failed(&finding.workload, *at, trigger);
            }
            (Wait::Gone | Wait::NotOwner | Wait::NoRollout { .. }, _) => {
                self.outcomes.forget(&finding.workload);
            }
            _ => {}
        }
    }

    /// Counts a workload whose rollout injectd began and that is not finished.
    fn adopt(&mut self, workload: Workload, observed: &Observed) {
        let Some(since) = observed.unfinished_since(self.cluster.now() - PAUSE) else { return };
        if !self.is_in_flight(&workload) {
            let workload = Workload { uid: Some(observed.uid.clone()), ..workload };
            self.in_flight.push(InFlight::new(workload, since));
        }
    }

    fn is_in_flight(&self, workload: &Workload) -> bool {
        self.in_flight.iter().any(|restart| restart.workload.is_same(workload))
    }
}

#[cfg(test)]
mod tests;
