//! injectd in the place of Linkerd's injector: `proxy-injector`, as a `ServiceAccount` with exactly
//! Linkerd's `ClusterRole`, called by its Service for the namespaces of one scenario.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write as _,
    net::IpAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use injectd_harness::{
    api::{WEBHOOK_CONFIGURATIONS, collection},
    client,
    expect::{Outcome, eventually, expect},
    injectd::Injectd,
    lab::service_ip,
    metrics::metric,
    namespaced::{Namespaced, with_namespace},
    objects::{enabled, plain_pod, service, service_account, webhook_configuration},
    scenario::with_lab,
    sidecar::{expect_proxy, workload_labels},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The `ServiceAccount` and the Service.
pub(crate) const ACCOUNT: &str = "linkerd-proxy-injector";
const RBAC: &str = "rbac.authorization.k8s.io";

/// A cluster with the injector, and an annotated namespace.
pub(crate) struct Linkerd<'a> {
    /// Where pods are injected.
    pub(crate) it: &'a Namespaced<'a>,
    pub(crate) injectd: Injectd,
    /// The namespace of the control plane.
    control_plane: String,
    ip: IpAddr,
}

/// Runs a scenario in a namespace whose pods the injector is called for, with these flags.
pub(crate) async fn with_linkerd(
    flags: &[&str],
    scenario: impl AsyncFnOnce(&mut Linkerd<'_>) -> Outcome,
) -> Outcome {
    with_lab(async |lab| {
        lab.local()?;
        with_namespace(lab, &enabled(), async |it| {
            let folder = tempfile::tempdir()?;
            let mut linkerd = Linkerd::new(it, &folder, flags).await?;
            let mut outcome = linkerd.serve().await;
            if outcome.is_ok() {
                outcome = scenario(&mut linkerd).await;
            }
            linkerd.clean_up().await?;
            outcome
        })
        .await
    })
    .await
}

impl<'a> Linkerd<'a> {
    /// Makes the account, and the command that starts the injector with its credentials.
    async fn new(it: &'a Namespaced<'a>, folder: &TempDir, flags: &[&str]) -> Outcome<Self> {
        let control_plane = format!("{}-control-plane", it.name);
        let name = json!({"name": control_plane});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": name});
        it.lab.api.create(None, &namespace).await?.created()?;
        let account = service_account(ACCOUNT);
        it.lab.api.create(Some(&control_plane), &account).await?.created()?;
        for object in permissions(&control_plane)? {
            it.lab.api.create(None, &object).await?.created()?;
        }
        let api = &it.lab.api;
        let config = api.kubeconfig(&control_plane, ACCOUNT, &api.server).await?;
        let file = folder.path().join("kubeconfig");
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600);
        options.open(&file)?.write_all(config.to_string().as_bytes())?;
        let ip = service_ip()?;
        let host = format!("{ACCOUNT}.{control_plane}.svc");
        let mut injectd = Injectd::proxy_injector(&it.lab.binary, folder.path(), &host, ip, &file)?;
        for flag in flags {
            injectd.add_argument(flag);
        }
        Ok(Self { it, injectd, control_plane, ip })
    }

    /// Starts proxy-injector, and makes the API server call it by its Service.
    async fn serve(&mut self) -> Outcome {
        self.injectd.start().await?;
        eventually("/ready", async || {
            let found = client::probe(self.injectd.admin, "/ready").await?;
            expect("/ready", (200, "ok\n".to_owned()), found)
        })
        .await?;
        let (api, port) = (&self.it.lab.api, self.injectd.webhook.port());
        let service = service(ACCOUNT, &self.ip.to_string(), port);
        api.create(Some(&self.control_plane), &service).await?.created()?;
        let reference = json!({"name": ACCOUNT, "namespace": self.control_plane, "port": port});
        let (client, ca) = (json!({"service": reference}), self.injectd.ca());
        let labels = self.it.labels();
        let configuration = webhook_configuration(&self.control_plane, client, ca, &labels);
        api.create(None, &configuration).await?.created()?;
        eventually("the configuration of the webhook takes effect", async || {
            self.expect_injected(&plain_pod("probe")).await.map(drop)
        })
        .await
    }

    /// Removes what is not in the namespace of the scenario.
    async fn clean_up(&mut self) -> Outcome {
        self.injectd.discard();
        let api = &self.it.lab.api;
        let path = format!("{WEBHOOK_CONFIGURATIONS}/{}", self.control_plane);
        api.delete(&path).await?;
        for kind in ["ClusterRoleBinding", "ClusterRole"] {
            let roles = collection(&format!("{RBAC}/v1"), kind, None);
            api.delete(&format!("{roles}/{}", self.control_plane)).await?;
        }
        self.it.delete(&self.control_plane).await
    }

    // === objects ===

    pub(crate) async fn create(&self, object: &Value) -> Outcome<Value> {
        self.it.create(object).await?.created()
    }

    pub(crate) async fn of_app(&self, version: &str, kind: &str, app: &str) -> Outcome<Vec<Value>> {
        self.it.lab.api.of_app((version, kind), &self.it.name, app).await
    }

    /// Waits for the pods of a workload; fails unless all have a sidecar and these labels.
    pub(crate) async fn expect_pods(
        &self,
        app: &str,
        count: usize,
        labels: &[(&str, &str)],
    ) -> Outcome {
        let pods = eventually("the controllers make pods", async || {
            let pods = self.of_app("v1", "Pod", app).await?;
            expect("the number of pods", count, pods.len())?;
            Ok(pods)
        })
        .await?;
        let expected: BTreeMap<_, _> = labels.iter().copied().collect();
        for pod in &pods {
            expect_proxy(pod)?;
            expect("the labels of the workload", &expected, &workload_labels(pod))?;
        }
        Ok(())
    }

    pub(crate) async fn expect_injected(&self, pod: &Value) -> Outcome<Value> {
        let pod = self.it.dry_run(pod).await?.created()?;
        expect_proxy(&pod)?;
        Ok(pod)
    }

    // === requests of our own ===

    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        let (_, text) = client::probe(self.injectd.admin, "/metrics").await?;
        Ok(metric(&text, name, labels))
    }
}

/// Linkerd's `ClusterRole`, and its binding to the account, both with the name of the namespace.
fn permissions(control_plane: &str) -> Outcome<[Value; 2]> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster-role.yaml");
    let mut role: Value = serde_saphyr::from_str(&fs::read_to_string(file)?)?;
    role["metadata"]["name"] = json!(control_plane);
    let account = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": control_plane});
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": control_plane},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": control_plane},
        "subjects": [account],
    });
    Ok([role, binding])
}
