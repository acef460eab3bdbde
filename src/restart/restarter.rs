//! Restarts the workloads of a list, a few at a time: reads, asks the planner, writes.
//!
//! Not for where the list comes from, nor for who may act: that is the controller, or a person at
//! a terminal.

use std::collections::{BTreeSet, HashMap, VecDeque};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use kube::Client;

use super::{
    decision::{Decision, Wait},
    plan::{Candidate, InFlight, PAUSE, Policy},
    reads::{ByNamespace, Cluster, RequestError},
    workload::{Finding, Observed, Workload},
};

/// Maximum number of findings that are kept: some MiB. Further ones wait for the next audit.
pub const MAX_FINDINGS: usize = 10_000;
/// Maximum number of findings that a step looks at, which bounds its requests.
const BATCH: usize = 50;
/// Maximum concurrent requests.
const MAX_REQUESTS: usize = 8;

/// Restarts the workloads of a list.
pub struct Restarter {
    cluster: Cluster,
    policy: Policy,
    queue: VecDeque<Finding>,
    /// Why the workloads of the queue wait, as far as they were looked at.
    waits: HashMap<Workload, Wait>,
    in_flight: Vec<InFlight>,
}

/// What happened in a step.
#[derive(Debug)]
pub enum Notice {
    /// A workload was restarted.
    Restarted(Finding),
    /// A workload waits, for the first time or for another reason than before.
    Waits(Finding, Wait),
    /// The rollout of a restarted workload is finished, or the workload was deleted.
    Finished(InFlight),
    /// The rollout of a restarted workload does not finish: restarts stop.
    Stuck(InFlight),
    /// A workload could not be read or restarted; it is tried again.
    Failed(Workload, RequestError),
}

impl Restarter {
    /// Restarts workloads of a cluster by these rules.
    #[must_use]
    pub fn new(client: Client, policy: Policy) -> Self {
        Self {
            cluster: Cluster::new(client),
            policy,
            queue: VecDeque::new(),
            waits: HashMap::new(),
            in_flight: Vec::new(),
        }
    }

    /// Replaces the list, without the workloads that roll out. Returns how many findings are over [`MAX_FINDINGS`], and left out.
    pub fn set_findings(&mut self, findings: Vec<Finding>) -> usize {
        let mut known = BTreeSet::new();
        let mut is_new = |it: &Workload| !self.is_in_flight(it) && known.insert(it.clone());
        self.queue = findings.into_iter().filter(|it| is_new(&it.workload)).collect();
        let left_out = self.queue.len().saturating_sub(MAX_FINDINGS);
        self.queue.truncate(MAX_FINDINGS);
        self.waits.retain(|workload, _| known.contains(workload));
        left_out
    }

    /// Counts the rollouts that a predecessor began in the last hour, and that are not finished.
    ///
    /// # Errors
    /// When the workloads cannot be read.
    pub async fn recover(&mut self) -> Result<(), RequestError> {
        for (workload, observed) in self.cluster.unfinished(Timestamp::now() - PAUSE).await? {
            self.adopt(workload, &observed);
        }
        Ok(())
    }

    /// Looks at rollouts and at the next workloads of the list, and restarts those that may be
    /// restarted now. `may_act` is asked before each restart.
    pub async fn step(&mut self, may_act: impl Fn() -> bool) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.follow(&mut notices).await;
        if self.policy.room(&self.in_flight).is_some() {
            return notices;
        }
        let count = self.queue.len().min(BATCH);
        let batch: Vec<_> = self.queue.drain(..count).collect();
        let candidates = match self.candidates(&batch).await {
            Ok(candidates) => candidates,
            Err(error) => {
                let first = batch.first().map(|it| Notice::Failed(it.workload.clone(), error));
                notices.extend(first);
                self.queue.extend(batch);
                return notices;
            }
        };
        let known: Vec<_> = batch
            .into_iter()
            .zip(candidates)
            .filter_map(|(finding, candidate)| match candidate {
                Ok(candidate) => Some((finding, candidate)),
                Err(error) => {
                    notices.push(Notice::Failed(finding.workload.clone(), error));
                    self.queue.push_back(finding);
                    None
                }
            })
            .collect();
        let asked: Vec<_> =
            known.iter().map(|(finding, it)| (finding.workload.clone(), it.clone())).collect();
        let decisions = self.policy.plan(Timestamp::now(), &asked, &self.in_flight);
        for ((finding, candidate), decision) in known.into_iter().zip(decisions) {
            match decision {
                Decision::Wait(wait) => self.wait(finding, &candidate, wait, &mut notices),
                Decision::Restart => self.restart(finding, &may_act, &mut notices).await,
            }
        }
        notices
    }

    /// The restarted workloads whose rollout is not finished.
    #[must_use]
    pub fn in_flight(&self) -> &[InFlight] {
        &self.in_flight
    }

    /// The workloads that are not restarted, and why; `None` if they were not looked at yet.
    pub fn waiting(&self) -> impl Iterator<Item = (&Finding, Option<Wait>)> {
        let room = self.policy.room(&self.in_flight);
        self.queue.iter().map(move |finding| {
            let known = self.waits.get(&finding.workload);
            // What changes within minutes may be out of date.
            let known = known.filter(|wait| room.is_none() || !wait.is_short());
            (finding, known.cloned().or_else(|| room.clone()))
        })
    }

    /// Looks at the rollouts of restarted workloads.
    async fn follow(&mut self, notices: &mut Vec<Notice>) {
        for before in std::mem::take(&mut self.in_flight) {
            let observed = match self.cluster.workload(&before.workload).await {
                Ok(observed) => observed,
                Err(error) => {
                    notices.push(Notice::Failed(before.workload.clone(), error));
                    self.in_flight.push(before);
                    continue;
                }
            };
            let after = self.policy.follow(Timestamp::now(), before.clone(), observed.as_ref());
            let Some(after) = after else {
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
    async fn restart(
        &mut self,
        finding: Finding,
        may_act: impl Fn() -> bool,
        notices: &mut Vec<Notice>,
    ) {
        let workload = &finding.workload;
        let mut candidate = match self.candidate(workload).await {
            Ok(candidate) => candidate,
            Err(error) => return self.failed(finding, error, notices),
        };
        let now = Timestamp::now();
        let asked = [(workload.clone(), candidate)];
        let decision = self.policy.plan(now, &asked, &self.in_flight).pop();
        let [(_, again)] = asked;
        candidate = again;
        if let Some(Decision::Wait(wait)) = decision {
            return self.wait(finding, &candidate, wait, notices);
        }
        let Some(observed) = candidate.observed.filter(|_| may_act()) else {
            return self.queue.push_back(finding);
        };
        if let Err(error) = self.cluster.restart(workload, &observed, now).await {
            return self.failed(finding, error, notices);
        }
        self.waits.remove(workload);
        let uid = Some(observed.uid.clone());
        let workload = Workload { uid, ..workload.clone() };
        self.in_flight.push(InFlight::new(workload, now, &observed));
        notices.push(Notice::Restarted(finding));
    }

    /// Puts a workload first: whether it was restarted must be read before others are.
    fn failed(&mut self, finding: Finding, error: RequestError, notices: &mut Vec<Notice>) {
        notices.push(Notice::Failed(finding.workload.clone(), error));
        self.queue.push_front(finding);
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
        }
        let before = self.waits.insert(finding.workload.clone(), wait.clone());
        if before.is_none_or(|before| before.as_str() != wait.as_str()) {
            notices.push(Notice::Waits(finding.clone(), wait));
        }
        self.queue.push_back(finding);
    }

    /// Counts a workload whose rollout injectd began and that is not finished.
    fn adopt(&mut self, workload: Workload, observed: &Observed) {
        let Some(since) = observed.unfinished_since(Timestamp::now() - PAUSE) else { return };
        if !self.is_in_flight(&workload) {
            let workload = Workload { uid: Some(observed.uid.clone()), ..workload };
            self.in_flight.push(InFlight::new(workload, since, observed));
        }
    }

    fn is_in_flight(&self, workload: &Workload) -> bool {
        self.in_flight.iter().any(|it| it.workload.is_same(workload))
    }

    /// What the cluster has of a workload now.
    async fn candidate(&self, workload: &Workload) -> Result<Candidate, RequestError> {
        Ok(Candidate {
            settings: self.cluster.settings(&workload.namespace).await?,
            observed: self.cluster.workload(workload).await?,
            budgets: self.cluster.budgets(&workload.namespace).await?,
        })
    }

    /// What the cluster has of several workloads. Each namespace is read once, and workloads of
    /// namespaces where nothing is restarted now are not read.
    async fn candidates(
        &self,
        batch: &[Finding],
    ) -> Result<Vec<Result<Candidate, RequestError>>, RequestError> {
        let namespaces: BTreeSet<_> = batch.iter().map(|it| &*it.workload.namespace).collect();
        let settings = of_each(&namespaces, |name| self.cluster.settings(name)).await?;
        let Policy { mode, windows, .. } = &self.policy;
        let now = Timestamp::now();
        let open = settings.iter().filter(|(_, it)| it.wait(now, *mode, windows).is_none());
        let open: BTreeSet<_> = open.map(|(name, _)| &**name).collect();
        let budgets = of_each(&open, |name| self.cluster.budgets(name)).await?;
        let candidate = async |finding: &Finding| {
            let Finding { workload, .. } = finding;
            let is_open = open.contains(&*workload.namespace);
            let observed = if is_open { self.cluster.workload(workload).await? } else { None };
            Ok(Candidate {
                observed,
                settings: settings.get(&workload.namespace).cloned().unwrap_or_default(),
                budgets: budgets.get(&workload.namespace).cloned().unwrap_or_default(),
            })
        };
        let candidates: Vec<_> = batch.iter().map(candidate).collect();
        Ok(stream::iter(candidates).buffered(MAX_REQUESTS).collect().await)
    }
}

/// Reads something of each namespace.
async fn of_each<'a, T, F: Future<Output = Result<T, RequestError>>>(
    namespaces: &BTreeSet<&'a str>,
    read: impl Fn(&'a str) -> F,
) -> Result<ByNamespace<T>, RequestError> {
    let one = |name: &'a str| {
        let read = read(name);
        async move { Ok((name.to_owned(), read.await?)) }
    };
    let reads: Vec<_> = namespaces.iter().map(|&name| one(name)).collect();
    stream::iter(reads).buffered(MAX_REQUESTS).try_collect().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &str) -> Finding {
        let json = format!(
            r#"{{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop",
                "name": "{name}"}}"#
        );
        serde_json::from_str(&json).expect("a finding")
    }

    /// A restarter whose client is never called.
    fn restarter() -> Restarter {
        let uri = "http://127.0.0.1:1".parse().expect("a URI");
        let client = Client::try_from(kube::Config::new(uri)).expect("a client");
        Restarter::new(client, Policy { max_restarting: 1, ..Policy::default() })
    }

    fn observed(since: Timestamp) -> Observed {
        Observed {
            uid: "u".into(),
            is_restarted_by_us: true,
            restarted_at: Some(since),
            rollout: crate::restart::Rollout::InProgress,
            ..Observed::default()
        }
    }

    fn names(restarter: &Restarter) -> Vec<&str> {
        restarter.waiting().map(|(finding, _)| &*finding.workload.name).collect()
    }

    #[tokio::test]
    async fn a_list_is_bounded_and_has_each_workload_once() {
        let mut restarter = restarter();
        assert_eq!(restarter.set_findings(vec![finding("a"), finding("b"), finding("a")]), 0);
        assert_eq!(names(&restarter), ["a", "b"]);
        let many = (0..=MAX_FINDINGS).map(|it| finding(&format!("w{it}"))).collect();
        assert_eq!(restarter.set_findings(many), 1);
        assert_eq!(names(&restarter).len(), MAX_FINDINGS);
    }

    #[tokio::test]
    async fn a_workload_that_rolls_out_is_not_listed_again() {
        let mut restarter = restarter();
        restarter.adopt(finding("a").workload, &observed(Timestamp::now()));
        restarter.adopt(finding("a").workload, &observed(Timestamp::now()));
        assert_eq!(restarter.in_flight().len(), 1);
        restarter.set_findings(vec![finding("a"), finding("b")]);
        assert_eq!(names(&restarter), ["b"]);
        let waits: Vec<_> = restarter.waiting().filter_map(|(_, wait)| wait).collect();
        assert_eq!(waits, [Wait::Others { count: 1 }]);
    }

    #[tokio::test]
    async fn only_unfinished_rollouts_of_the_last_hour_that_injectd_began_are_adopted() {
        let now = Timestamp::now();
        let is_adopted = |change: fn(&mut Observed)| {
            let mut observed = observed(now);
            change(&mut observed);
            let mut restarter = restarter();
            restarter.adopt(finding("a").workload, &observed);
            !restarter.in_flight().is_empty()
        };
        assert!(is_adopted(|_| {}));
        assert!(!is_adopted(|it| it.is_restarted_by_us = false));
        assert!(!is_adopted(|it| it.rollout = crate::restart::Rollout::Finished));
        assert!(!is_adopted(|it| it.restarted_at = it.restarted_at.map(|at| at - PAUSE)));
    }

    #[tokio::test]
    async fn what_is_listed_again_keeps_its_reason() {
        let mut restarter = restarter();
        let paused = |it: &mut Restarter, name: &str| {
            let mut notices = Vec::new();
            it.wait(finding(name), &Candidate::default(), Wait::Paused, &mut notices);
            notices.len()
        };
        assert_eq!((paused(&mut restarter, "a"), paused(&mut restarter, "a")), (1, 0));
        restarter.set_findings(vec![finding("a")]);
        assert_eq!(paused(&mut restarter, "a"), 0, "it is reported once");
        restarter.set_findings(vec![finding("b")]);
        assert_eq!(paused(&mut restarter, "a"), 1, "it was not listed in between");
    }
}
