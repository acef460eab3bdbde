//! The controller: one replica asks for findings at intervals and restarts their workloads.

use std::{error::Error, time::Duration};

use injectd_cluster::{
    causes::with_causes,
    lease::{Elector, LeaseOptions, Term},
};
use kube::Client;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{
    finding::Audit,
    plan::Policy,
    report::Reporter,
    restarter::{MAX_FINDINGS, Notice, Restarter},
};

/// Time between two looks at rollouts and waiting workloads.
// A rollout takes longer than that. Each look is a request for each workload that is restarted.
pub const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// What a controller needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// The rules of a restart.
    pub policy: Policy,
    /// The Lease that the leader holds.
    pub lease: LeaseOptions,
    /// Time between two audits.
    pub audit_interval: Duration,
    /// Time between two looks at rollouts and waiting workloads.
    pub poll_interval: Duration,
}

/// Why an audit failed.
pub type AuditError = Box<dyn Error + Send + Sync>;

/// The audit: finds workloads whose pods should be replaced.
pub trait Findings: Send {
    /// Audits all pods. Only the leader asks; it drops the future when it loses the Lease.
    fn find(&mut self) -> impl Future<Output = Result<Audit, AuditError>> + Send;
}

/// Counts what a controller does.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn notice(&self, notice: &Notice);

    /// The state after each step: workloads in flight, and those that wait.
    fn state(&self, restarter: &Restarter);

    /// This process became the leader, or is no longer.
    fn leads(&self, is_leader: bool);
}

/// Restarts workloads while this process is the leader.
pub struct Controller<F, O> {
    client: Client,
    options: Options,
    findings: F,
    observer: O,
}

impl<F: Findings, O: Observer> Controller<F, O> {
    /// A controller of a cluster.
    pub fn new(client: Client, options: Options, findings: F, observer: O) -> Self {
        Self { client, options, findings, observer }
    }

    /// Runs until `shutdown` ends; then gives its Lease away. A controller that is dropped stops
    /// at once, and its Lease expires.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut elector = Elector::new(self.client.clone(), self.options.lease.clone());
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                () = elector.acquire() => {}
            }
            info!("leads: restarts workloads");
            self.observer.leads(true);
            let term = elector.term();
            let is_shut_down = tokio::select! {
                biased;
                () = &mut shutdown => true,
                () = elector.keep() => false,
                () = self.lead(&term) => false,
            };
            self.observer.leads(false);
            if is_shut_down {
                // Nothing acts any more.
                return elector.release().await;
            }
            warn!("lost the Lease: restarts no workloads");
        }
    }

    async fn lead(&mut self, term: &Term) {
        let mut restarter = Restarter::new(self.client.clone(), self.options.policy.clone());
        let reporter = Reporter::new(self.client.clone());
        // Before the first restart: what an earlier leader began counts, else more would roll out
        // at once than is allowed.
        while let Err(error) = restarter.recover().await {
            warn!(error = with_causes(&error), "cannot read the rollouts of a previous leader");
            sleep(self.options.poll_interval).await;
        }
        let mut next_audit = Instant::now();
        loop {
            if next_audit <= Instant::now() {
                self.audit(&mut restarter).await;
                // From the end of the audit: one that takes longer than the interval must leave
                // time for steps.
                next_audit = Instant::now() + self.options.audit_interval;
            }
            let notices = restarter.step(&|| term.is_current()).await;
            for notice in &notices {
                self.observer.notice(notice);
            }
            self.observer.state(&restarter);
            for notice in &notices {
                reporter.report(notice).await;
            }
            sleep(self.options.poll_interval).await;
        }
    }

    /// Asks for findings. If that fails, the previous ones stay.
    async fn audit(&mut self, restarter: &mut Restarter) {
        let audit = match self.findings.find().await {
            Ok(audit) => audit,
            Err(error) => {
                let error = with_causes(&*error);
                return warn!(error, "the audit failed; the workloads found before stay listed");
            }
        };
        let left_out = restarter.audited(audit);
        if left_out > 0 {
            warn!("{left_out} workloads over {MAX_FINDINGS} wait for a later audit");
        }
    }
}
