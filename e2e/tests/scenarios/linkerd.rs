//! injectd in the place of Linkerd's injector: `proxy-injector`, as a `ServiceAccount` with exactly
//! Linkerd's `ClusterRole`, called by its Service for the namespaces of one scenario.

use std::{collections::BTreeSet, net::IpAddr, path::PathBuf};

use injectd_harness::{
    api::{NAMESPACES, collection, write_kubeconfig},
    audit_log::events,
    client::{self, Answer},
    expect::{Outcome, eventually, expect, failed},
    injectd::Injectd,
    lab::{Lab, service_ip},
    linkerd::{ACCOUNT, make_account},
    namespaced::{Namespaced, with_namespace},
    objects::{RBAC_VERSION, ServiceAccount, enabled, plain_pod, service},
    scenario::{explain, with_lab},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What injection needs of the API server: verbs and resources.
pub(crate) const REQUESTS: [&str; 9] = [
    "list namespaces",
    "watch namespaces",
    "get namespaces",
    "get replicasets",
    "get jobs",
    "get deployments",
    "get cronjobs",
    "create events",
    "patch events",
];

/// A cluster with the injector, and an annotated namespace.
pub(crate) struct Linkerd<'a> {
    /// Where pods are injected.
    pub(crate) it: &'a Namespaced<'a>,
    pub(crate) injectd: Injectd,
    /// The namespace of the control plane.
    pub(crate) control_plane: String,
    ip: IpAddr,
    folder: PathBuf,
}

/// Runs a scenario in a namespace whose pods the injector is called for, with these flags.
pub(crate) async fn with_linkerd(
    flags: &[&str],
    scenario: impl AsyncFnOnce(&mut Linkerd<'_>) -> Outcome,
) -> Outcome {
    with_lab(async |lab| in_lab(lab, flags, scenario).await).await
}

/// As [`with_linkerd`], in a lab that the scenario has already.
pub(crate) async fn in_lab(
    lab: &Lab,
    flags: &[&str],
    scenario: impl AsyncFnOnce(&mut Linkerd<'_>) -> Outcome,
) -> Outcome {
    with_account(lab, flags, async |linkerd| {
        linkerd.start().await?;
        linkerd.serve().await?;
        scenario(linkerd).await
    })
    .await
}

/// As [`in_lab`], with an injector that the scenario starts, and that is not called.
///
/// Each injector must end by SIGTERM with exit code 0, having requested only [`REQUESTS`].
pub(crate) async fn with_account(
    lab: &Lab,
    flags: &[&str],
    scenario: impl AsyncFnOnce(&mut Linkerd<'_>) -> Outcome,
) -> Outcome {
    lab.local()?;
    with_namespace(lab, &enabled(), async |namespaced| {
        let folder = tempfile::tempdir()?;
        let mut linkerd = Linkerd::new(namespaced, &folder, flags)?;
        let mut outcome = linkerd.make_account().await;
        if outcome.is_ok() {
            outcome = scenario(&mut linkerd).await;
        }
        if outcome.is_ok() {
            outcome = linkerd.end().await;
        }
        explain(&outcome, "injectd's log", linkerd.injectd.log().lines());
        outcome
    })
    .await
}

impl<'a> Linkerd<'a> {
    fn new(it: &'a Namespaced<'a>, folder: &TempDir, flags: &[&str]) -> Outcome<Self> {
        let control_plane = format!("{}-control-plane", it.name);
        let kubeconfig = folder.path().join("kubeconfig");
        let ip = service_ip()?;
        let host = format!("{ACCOUNT}.{control_plane}.svc");
        let (binary, folder) = (&it.lab.binary, folder.path());
        let mut injectd = Injectd::proxy_injector(binary, folder, &host, ip, &kubeconfig)?;
        for flag in flags {
            injectd.add_argument(flag);
        }
        Ok(Self { it, injectd, control_plane, ip, folder: folder.to_owned() })
    }

    // === start and end ===

    async fn make_account(&self) -> Outcome {
        delete_account_at_end(self.it, &self.control_plane);
        make_account(&self.it.lab.api, &self.control_plane, &self.folder).await.map(drop)
    }

    /// The name of the account as the API server has it.
    fn user(&self) -> String {
        ServiceAccount { namespace: &self.control_plane, name: ACCOUNT }.user()
    }

    /// Gives the injector credentials for the API server at a URL.
    pub(crate) async fn use_server(&self, server: &str) -> Outcome {
        let config = self.it.lab.api.kubeconfig(&self.control_plane, ACCOUNT, server).await?;
        write_kubeconfig(&self.folder, &config).map(drop)
    }

    pub(crate) async fn wait_until_ready(&self) -> Outcome {
        eventually("/ready", async || self.expect_probe("/ready", 200, "ok\n").await).await?;
        self.injectd.logs("caches synced").await
    }

    async fn start(&mut self) -> Outcome {
        self.injectd.start().await?;
        self.wait_until_ready().await
    }

    /// Makes the API server call the injector by its Service.
    async fn serve(&self) -> Outcome {
        let port = self.injectd.webhook.port();
        let service = service(ACCOUNT, &self.ip.to_string(), port);
        let api = &self.it.lab.api;
        api.create(Some(&self.control_plane), &service).await?.created()?;
        let reference = json!({"name": ACCOUNT, "namespace": self.control_plane, "port": port});
        self.it.call(json!({"service": reference}), self.injectd.ca()).await?;
        self.it.expect_injected(&self.it.name, &plain_pod("probe")).await.map(drop)
    }

    async fn end(&mut self) -> Outcome {
        self.injectd.terminate().await?;
        let mut requests = self.requests()?;
        requests.retain(|request| !REQUESTS.contains(&&**request));
        expect("the requests that injection does not need", BTreeSet::new(), requests)
    }

    // === requests of the injector ===

    /// The verbs and resources of all requests in the audit log; fails if one was forbidden.
    pub(crate) fn requests(&self) -> Outcome<BTreeSet<String>> {
        let log = &self.it.lab.local()?.audit_log;
        let found = events(log, &format!("\"username\":\"{}\"", self.user()))?;
        for event in &found {
            if [401, 403].contains(&event["responseStatus"]["code"].as_u64().unwrap_or_default()) {
                return Err(failed(format!("a request that is forbidden: {event}")));
            }
        }
        Ok(found.iter().map(verb_and_resource).collect())
    }

    // === requests of our own ===

    pub(crate) async fn create(&self, object: &Value) -> Outcome<Value> {
        self.it.create(object).await?.created()
    }

    /// Sends a review as the API server does.
    pub(crate) async fn review(
        &self,
        namespace: &str,
        pod: &Value,
        seconds: u64,
    ) -> Outcome<Answer> {
        self.injectd.client().review(namespace, pod, seconds).await
    }

    pub(crate) async fn response(&self, namespace: &str, pod: &Value) -> Outcome<Value> {
        self.review(namespace, pod, 10).await?.response()
    }

    /// Fails unless a pod of a namespace that does not exist is denied in the API server's words.
    pub(crate) async fn expect_not_found(&self, namespace: &str) -> Outcome {
        let response = self.response(namespace, &plain_pod("lost")).await?;
        expect("whether it is allowed", Some(false), response["allowed"].as_bool())?;
        let message = format!("namespaces \"{namespace}\" not found");
        expect("the message", Some(&*message), response["status"]["message"].as_str())
    }

    pub(crate) async fn expect_probe(&self, path: &str, status: u16, text: &str) -> Outcome {
        let found = client::probe(self.injectd.admin, path).await?;
        expect(path, (status, text.to_owned()), found)
    }

    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        self.injectd.metric(name, labels).await
    }

    /// How often a cache did not have what a review needed.
    pub(crate) async fn misses(&self, cache: &str) -> Outcome<u64> {
        self.metric("injectd_cache_misses_total", &[("cache", cache)]).await
    }
}

/// The resource is a path for requests of none.
fn verb_and_resource(event: &Value) -> String {
    let resource = event["objectRef"]["resource"].as_str().or(event["requestURI"].as_str());
    format!("{} {}", event["verb"].as_str().unwrap_or_default(), resource.unwrap_or_default())
}

/// Lets the end of the scenario delete what [`make_account`] makes.
pub(crate) fn delete_account_at_end(it: &Namespaced<'_>, control_plane: &str) {
    it.delete_at_end(format!("{NAMESPACES}/{control_plane}"));
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        let roles = collection(RBAC_VERSION, kind, None);
        it.delete_at_end(format!("{roles}/{control_plane}"));
    }
}
