//! Reads what the planner must know of workloads.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;

use super::{
    super::{
        finding::Finding,
        namespace::Mode,
        plan::{Candidate, Policy},
        reads::{ByNamespace, RequestError},
    },
    Restarter,
};

/// Maximum concurrent requests.
const MAX_REQUESTS: usize = 8;

impl Restarter {
    /// What the cluster has of a workload now.
    pub(super) async fn candidate(&self, finding: &Finding) -> Result<Candidate, RequestError> {
        let namespace = &finding.workload.namespace;
        let settings = self.cluster.settings(namespace).await?;
        let budgets = self.cluster.budgets(namespace).await?;
        Ok(Candidate { settings, budgets, ..self.observe(finding).await? })
    }

    /// The workload itself, and whether it is the one whose pods were found.
    async fn observe(&self, finding: &Finding) -> Result<Candidate, RequestError> {
        let Finding { workload, evidence, .. } = finding;
        let Some(observed) = self.cluster.workload(workload).await? else {
            return Ok(Candidate::default());
        };
        let named = &evidence.replica_sets;
        // A dry run needs no permission to read ReplicaSets.
        let is_checked = self.policy.mode != Mode::DryRun && !named.is_empty();
        let is_not_owner =
            is_checked && !self.cluster.is_owner(workload, &observed.uid, named).await?;
        let not_cured = observed.not_cured(evidence, self.policy.rollout_timeout);
        let trigger = evidence.trigger(&observed);
        let known = || self.brake.failure(workload, &trigger?);
        let not_cured = not_cured.or_else(known);
        Ok(Candidate { observed: Some(observed), is_not_owner, not_cured, ..Candidate::default() })
    }

    /// What the cluster has of several workloads. Each namespace is read once, and workloads of
    /// namespaces where nothing is restarted now are not read.
    pub(super) async fn candidates(
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
            let namespace = &*finding.workload.namespace;
            let is_open = open.contains(namespace);
            let seen = if is_open { self.observe(finding).await? } else { Candidate::default() };
            Ok(Candidate {
                settings: settings.get(namespace).cloned().unwrap_or_default(),
                budgets: budgets.get(namespace).cloned().unwrap_or_default(),
                ..seen
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
