//! Reads what the planner needs to know of workloads and their namespaces.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{StreamExt as _, stream};

use super::Restarter;
use crate::restart::{
    budget::Budget,
    finding::Finding,
    namespace::{Mode, NamespaceSettings},
    plan::{Candidate, Policy},
    rim::RequestError,
};

/// Maximum concurrent requests.
const MAX_REQUESTS: usize = 8;

/// What is read of a namespace.
#[derive(Debug, Clone, Default)]
struct Surroundings {
    settings: NamespaceSettings,
    budgets: Arc<[Budget]>,
    /// Whether workloads may be restarted there now.
    is_open: bool,
}

impl Restarter {
    /// What the cluster has of a workload now.
    pub(super) async fn candidate(&self, finding: &Finding) -> Result<Candidate, RequestError> {
        let namespace = &finding.workload.namespace;
        let settings = self.cluster.settings(namespace).await?;
        let budgets = self.cluster.budgets(namespace).await?;
        Ok(Candidate { settings, budgets, ..self.observe(finding).await? })
    }

    /// What the cluster has of several workloads. Each namespace is read once, and workloads of
    /// namespaces where nothing is restarted now are not read. If a namespace cannot be read, only the
    /// first of its workloads has the error.
    pub(super) async fn candidates(
        &self,
        batch: &[Finding],
    ) -> Vec<Result<Candidate, Option<RequestError>>> {
        let mut namespaces = self.surroundings(batch).await;
        let found: Vec<_> = batch
            .iter()
            .map(|finding| match namespaces.get_mut(&finding.workload.namespace) {
                Some(Ok(it)) => Ok(it.clone()),
                Some(Err(error)) => Err(error.take()),
                None => Err(None),
            })
            .collect();
        let candidate = async |(finding, found): (&Finding, Result<Surroundings, _>)| {
            let Surroundings { settings, budgets, is_open } = found?;
            let seen = if is_open { self.observe(finding).await? } else { Candidate::default() };
            Ok(Candidate { settings, budgets, ..seen })
        };
        let candidates: Vec<_> = batch.iter().zip(found).map(candidate).collect();
        stream::iter(candidates).buffered(MAX_REQUESTS).collect().await
    }

    async fn surroundings(
        &self,
        batch: &[Finding],
    ) -> BTreeMap<String, Result<Surroundings, Option<RequestError>>> {
        let now = self.cluster.now();
        let Policy { mode, windows, .. } = &self.policy;
        let read = async |name: &str| {
            let settings = self.cluster.settings(name).await?;
            let is_open = settings.wait(now, *mode, windows).is_none();
            let budgets = if is_open { self.cluster.budgets(name).await? } else { Arc::default() };
            Ok(Surroundings { settings, budgets, is_open })
        };
        let names: BTreeSet<_> = batch.iter().map(|finding| &*finding.workload.namespace).collect();
        let one = async |name: &str| (name.to_owned(), read(name).await.map_err(Some));
        let reads: Vec<_> = names.into_iter().map(one).collect();
        stream::iter(reads).buffered(MAX_REQUESTS).collect().await
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
        let is_not_owner = finding.is_forged()
            || is_checked && !self.cluster.is_owner(workload, &observed.uid, named).await?;
        let did_not_help = observed.did_not_help(evidence, self.policy.rollout_timeout);
        let trigger = evidence.trigger(&observed);
        let known = || self.outcomes.failure(workload, &trigger?);
        let did_not_help = did_not_help.or_else(known);
        let refused = self.refused.get(workload).copied();
        let observed = Some(observed);
        Ok(Candidate { observed, is_not_owner, did_not_help, refused, ..Candidate::default() })
    }
}
