//! Controllers that share a Lease, each a task with the permissions that `manifest` will print.

use std::{collections::HashMap, sync::Arc, time::Duration};

use injectd_cluster::{ClientOptions, client};
use injectd_controllers::restart::{
    Audit, AuditError, Controller, Finding, Findings, LEASE_RULES, LeaseOptions, Mode, Notice,
    Observer, Options, Policy, RESTART_RULES, RULES, Restarter, Wait, Workload,
};
use injectd_harness::{
    api::{path_of, write_kubeconfig},
    expect::{Outcome, failed},
    namespaced::Namespaced,
    objects::{RBAC_VERSION, ServiceAccount, service_account},
};
use injectd_k8s::rbac::Rule;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use super::fleet::Fleet;

/// Workloads that roll out at the same time.
pub(super) const MAX_RESTARTING: usize = 6;

const ACCOUNT: &str = "injectd-restart";
const LEASE: &str = "injectd-restart";
const POLL: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_mins(3);

/// What the controllers did.
#[derive(Debug, Default, Clone)]
pub(super) struct Seen {
    pub(super) waits: HashMap<Workload, Wait>,
    pub(super) leader: Option<&'static str>,
}

pub(super) struct Controllers<'a> {
    it: &'a Namespaced<'a>,
    client: Client,
    findings: Vec<Finding>,
    seen: Arc<watch::Sender<Seen>>,
    running: HashMap<&'static str, Running>,
}

struct Running {
    task: JoinHandle<()>,
    end: oneshot::Sender<()>,
}

/// An audit that finds all workloads each time, also those that were restarted.
struct All(Vec<Finding>);

impl Findings for All {
    async fn find(&mut self) -> Result<Audit, AuditError> {
        Ok(Audit { begun: Timestamp::now(), findings: self.0.clone(), ..Audit::default() })
    }
}

struct Observed {
    name: &'static str,
    seen: Arc<watch::Sender<Seen>>,
}

impl Observer for Observed {
    fn notice(&self, notice: &Notice) {
        if let Notice::Waits(finding, wait) = notice {
            self.seen.send_modify(|seen| {
                seen.waits.insert(finding.workload.clone(), wait.clone());
            });
        }
    }

    fn state(&self, _: &Restarter) {}

    fn leads(&self, is_leader: bool) {
        self.seen.send_modify(|seen| seen.leader = is_leader.then_some(self.name));
    }
}

impl Drop for Controllers<'_> {
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.task.abort());
    }
}

impl<'a> Controllers<'a> {
    /// Makes the account.
    pub(super) async fn new(fleet: &Fleet<'a>) -> Outcome<Self> {
        let (it, api) = (fleet.it, &fleet.it.lab.api);
        it.create(&service_account(ACCOUNT)).await?.created()?;
        let account = ServiceAccount { namespace: &it.name, name: ACCOUNT };
        let cluster = [RULES, RESTART_RULES].concat();
        for (kind, scope, rules) in
            [("ClusterRole", None, cluster), ("Role", Some(&*it.name), LEASE_RULES.to_vec())]
        {
            let binding = account.bound(&format!("{kind}Binding"), &it.name, kind, &it.name);
            for object in [role(kind, &it.name, &rules), binding] {
                it.delete_at_end(path_of(&object, scope));
                api.create(scope, &object).await?.created()?;
            }
        }
        let config = api.kubeconfig(&it.name, ACCOUNT, &api.server).await?;
        let folder = tempfile::tempdir()?;
        let file = write_kubeconfig(folder.path(), &config)?;
        let options = ClientOptions { kubeconfig: Some(&file), ..ClientOptions::default() };
        let client = client(options).await?;
        let (findings, seen) = (fleet.findings(), Arc::default());
        Ok(Self { it, client, findings, seen, running: HashMap::new() })
    }

    pub(super) fn start(&mut self, name: &'static str, mode: Mode) {
        let lease = LeaseOptions {
            // Short, so that the next leader comes within the scenario after the first one was
            // killed.
            duration: Duration::from_secs(3),
            renew_deadline: Duration::from_secs(2),
            retry: Duration::from_millis(200),
            ..LeaseOptions::new(&*self.it.name, LEASE, name)
        };
        let policy = Policy { mode, max_restarting: MAX_RESTARTING, ..Policy::default() };
        let audit_interval = Duration::from_secs(1);
        let options = Options { policy, lease, audit_interval, poll_interval: POLL };
        let observer = Observed { name, seen: Arc::clone(&self.seen) };
        let findings = All(self.findings.clone());
        let controller = Controller::new(self.client.clone(), options, findings, observer);
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(controller.run(async move { drop(ended.await) }));
        self.running.insert(name, Running { task, end });
    }

    /// Ends a controller at once: it does not give its Lease away.
    pub(super) fn kill(&mut self, name: &str) {
        if let Some(running) = self.running.remove(name) {
            running.task.abort();
        }
    }

    /// Ends a controller as SIGTERM does.
    pub(super) async fn terminate(&mut self, name: &str) -> Outcome {
        let running = self.running.remove(name);
        let Running { task, end } = running.ok_or_else(|| failed(format!("no {name}")))?;
        drop(end);
        Ok(timeout(PATIENCE, task).await??)
    }

    pub(super) async fn wait(&self, what: &str, is_so: impl Fn(&Seen) -> bool) -> Outcome<Seen> {
        let mut seen = self.seen.subscribe();
        let found = timeout(PATIENCE, seen.wait_for(is_so)).await;
        let late = |_| failed(format!("{what}: not in time"));
        Ok(found.map_err(late)??.clone())
    }

    /// Who holds the Lease.
    pub(super) async fn holder(&self) -> Outcome<Option<String>> {
        let path = self.it.path("coordination.k8s.io/v1", "Lease", LEASE);
        let lease = self.it.lab.api.get(&path).await?.ok()?;
        Ok(lease["spec"]["holderIdentity"].as_str().map(str::to_owned))
    }
}

/// A role with the name of the scenario's namespace.
fn role(kind: &str, name: &str, rules: &[Rule]) -> Value {
    let rule = |rule: &Rule| json!({"apiGroups": [rule.api_group], "resources": rule.resources, "verbs": rule.verbs});
    let rules: Vec<_> = rules.iter().map(rule).collect();
    json!({"apiVersion": RBAC_VERSION, "kind": kind, "metadata": {"name": name}, "rules": rules})
}
