//! injectd in the place of Linkerd's injector: `proxy-injector`, as a `ServiceAccount` with exactly
//! Linkerd's `ClusterRole`, called by its Service. The suites of a watched cluster share it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write as _,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use injectd_harness::{
    api::{NAMESPACES, collection},
    client::{self, Answer},
    expect::{Outcome, eventually, expect, expect_listed, expect_same, failed},
    injectd::Injectd,
    lab::{Lab, Local},
    metrics::metric,
    objects::{self, enabled, plain_pod, service, service_account, webhook_configuration},
    run::Suite,
    sidecar::{expect_no_proxy, expect_proxy, workload_labels},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The namespace of the control plane.
pub(crate) const CONTROL_PLANE: &str = "linkerd";
/// The `ServiceAccount`, the Service and the webhook configuration.
pub(crate) const ACCOUNT: &str = "linkerd-proxy-injector";
/// Not that of the suite `standalone`, whose Service may still be there.
const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 10));

/// What the scenarios of a suite share.
pub(crate) struct Linkerd {
    pub(crate) lab: Lab,
    pub(crate) local: Local,
    /// Where pods are injected.
    namespace: &'static str,
    /// More of proxy-injector's flags.
    flags: &'static [&'static str],
    injectd: Option<Injectd>,
    folder: TempDir,
}

impl Linkerd {
    pub(crate) fn new(
        lab: &Lab,
        local: &Local,
        namespace: &'static str,
        flags: &'static [&'static str],
    ) -> Outcome<Self> {
        let (lab, local, folder) = (lab.clone(), local.clone(), tempfile::tempdir()?);
        Ok(Self { lab, local, folder, namespace, flags, injectd: None })
    }

    // === start ===

    pub(crate) async fn make_account(&self) -> Outcome<String> {
        self.make_namespace(CONTROL_PLANE, &json!({})).await?;
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster-role.yaml");
        let role: Value = serde_saphyr::from_str(&fs::read_to_string(file)?)?;
        let compared = self.expect_upstream(&role)?;
        let group = "rbac.authorization.k8s.io";
        let name = &role["metadata"]["name"];
        let account =
            json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": CONTROL_PLANE});
        let binding = json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [account],
        });
        self.create(CONTROL_PLANE, &service_account(ACCOUNT)).await?;
        for object in [&role, &binding] {
            self.lab.api.create(None, object).await?.created()?;
        }
        Ok(format!("compared with {compared} of Linkerd's manifests"))
    }

    /// Compares the role with those of Linkerd's charts; returns how many there are.
    fn expect_upstream(&self, role: &Value) -> Outcome<usize> {
        let folder = self.lab.corpus.as_ref().map(|it| it.join("manifests"));
        let Some(folder) = folder.filter(|it| it.is_dir()) else { return Ok(0) };
        let mut compared = 0;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let objects: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(&path)?)?;
            let name = path.display().to_string();
            let theirs = objects.iter().find(|it| it["kind"] == "ClusterRole");
            let theirs = theirs.ok_or_else(|| failed(format!("no role in {name}")))?;
            expect_same(&name, &theirs["rules"], &role["rules"])?;
            compared += 1;
        }
        Ok(compared)
    }

    /// Starts proxy-injector for the API server at a URL.
    pub(crate) async fn start(&mut self, server: &str) -> Outcome {
        let config = self.lab.api.kubeconfig(CONTROL_PLANE, ACCOUNT, server).await?;
        let file = self.folder.path().join("kubeconfig");
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600);
        options.open(&file)?.write_all(config.to_string().as_bytes())?;
        let host = format!("{ACCOUNT}.{CONTROL_PLANE}.svc");
        let (binary, folder) = (&self.lab.binary, self.folder.path());
        let mut injectd = Injectd::proxy_injector(binary, folder, &host, IP, &file)?;
        for flag in self.flags {
            injectd.add_argument(flag);
        }
        self.injectd.insert(injectd).start().await
    }

    pub(crate) async fn wait_until_ready(&self) -> Outcome {
        eventually("/ready", async || self.expect_probe("/ready", 200, "ok\n").await).await?;
        self.injectd()?.logs("caches synced").await
    }

    /// Starts proxy-injector, and makes the API server call it by its Service.
    pub(crate) async fn serve(&mut self) -> Outcome {
        let server = self.lab.api.server.clone();
        self.start(&server).await?;
        self.wait_until_ready().await?;
        let (port, ca) = (self.injectd()?.webhook.port(), self.injectd()?.ca());
        self.create(CONTROL_PLANE, &service(ACCOUNT, &IP.to_string(), port)).await?;
        let reference = json!({"name": ACCOUNT, "namespace": CONTROL_PLANE, "port": port});
        let client = json!({"service": reference});
        let configuration = webhook_configuration(ACCOUNT, client, ca, &selected());
        self.lab.api.create(None, &configuration).await?.created()?;
        self.make_namespace(self.namespace, &enabled()).await?;
        eventually("the configuration of the webhook takes effect", async || {
            self.expect_injected(self.namespace, &plain_pod("probe")).await.map(drop)
        })
        .await
    }

    /// Ends proxy-injector.
    pub(crate) fn discard(&mut self) {
        self.injectd = None;
    }

    pub(crate) async fn terminate(&mut self) -> Outcome {
        self.injectd_mut()?.terminate().await
    }

    pub(crate) fn injectd(&self) -> Outcome<&Injectd> {
        self.injectd.as_ref().ok_or_else(|| failed("proxy-injector was not started"))
    }

    pub(crate) fn injectd_mut(&mut self) -> Outcome<&mut Injectd> {
        self.injectd.as_mut().ok_or_else(|| failed("proxy-injector was not started"))
    }

    /// Prints the end of the log if a scenario failed.
    pub(crate) fn explain(&self, suite: &Suite<'_>) {
        if let (true, Some(injectd)) = (suite.has_failed(), &self.injectd) {
            let log = injectd.log();
            suite.print_end("the end of injectd's log", &log.lines().collect::<Vec<_>>());
        }
    }

    // === objects ===

    pub(crate) async fn create(&self, namespace: &str, object: &Value) -> Outcome<Value> {
        self.lab.api.create(Some(namespace), object).await?.created()
    }

    /// Makes a namespace in which pods can be created at once.
    pub(crate) async fn make_namespace(&self, name: &str, annotations: &Value) -> Outcome {
        let namespace = objects::namespace(name, annotations, &selected());
        self.lab.api.create(None, &namespace).await?.created()?;
        let account = self.lab.api.create(Some(name), &service_account("default")).await?;
        // The controller manager may have been faster.
        expect_listed("the status of its ServiceAccount", account.status, &[201, 409])
    }

    pub(crate) async fn annotate(&self, namespace: &str, annotations: &Value) -> Outcome {
        let path = format!("{NAMESPACES}/{namespace}");
        eventually("the namespace is updated", async || {
            let annotate = |it: &mut Value| it["metadata"]["annotations"] = annotations.clone();
            self.lab.api.update(&path, annotate).await
        })
        .await
    }

    pub(crate) async fn scale(&self, deployment: &str, replicas: usize) -> Outcome {
        let path = collection("apps/v1", "Deployment", Some(self.namespace));
        let path = format!("{path}/{deployment}/scale");
        eventually("the Deployment is scaled", async || {
            self.lab.api.update(&path, |it| it["spec"]["replicas"] = json!(replicas)).await
        })
        .await
    }

    pub(crate) async fn of_app(&self, version: &str, kind: &str, app: &str) -> Outcome<Vec<Value>> {
        self.lab.api.of_app((version, kind), self.namespace, app).await
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
        for pod in &pods {
            expect_proxy(pod)?;
            expect_workload(pod, labels)?;
        }
        Ok(())
    }

    pub(crate) async fn expect_injected(&self, namespace: &str, pod: &Value) -> Outcome<Value> {
        let pod = self.lab.api.dry_run(namespace, pod).await?.created()?;
        expect_proxy(&pod)?;
        Ok(pod)
    }

    pub(crate) async fn expect_left_alone(&self, namespace: &str, pod: &Value) -> Outcome {
        expect_no_proxy(&self.lab.api.dry_run(namespace, pod).await?.created()?)
    }

    // === requests of our own ===

    /// Sends a review as the API server does.
    pub(crate) async fn review(
        &self,
        namespace: &str,
        pod: &Value,
        seconds: u64,
    ) -> Outcome<Answer> {
        self.injectd()?.client().review(namespace, pod, seconds).await
    }

    pub(crate) async fn response(&self, namespace: &str, pod: &Value) -> Outcome<Value> {
        self.review(namespace, pod, 10).await?.response()
    }

    pub(crate) async fn expect_not_found(&self, namespace: &str) -> Outcome {
        let response = self.response(namespace, &plain_pod("lost")).await?;
        expect("whether it is allowed", Some(false), response["allowed"].as_bool())?;
        let message = format!("namespaces \"{namespace}\" not found");
        expect("the message", Some(&*message), response["status"]["message"].as_str())
    }

    pub(crate) async fn expect_probe(&self, path: &str, status: u16, text: &str) -> Outcome {
        let found = client::probe(self.injectd()?.admin, path).await?;
        expect(path, (status, text.to_owned()), found)
    }

    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        let (_, text) = client::probe(self.injectd()?.admin, "/metrics").await?;
        Ok(metric(&text, name, labels))
    }

    /// How often a cache did not have what a review needed.
    pub(crate) async fn misses(&self, cache: &str) -> Outcome<u64> {
        self.metric("injectd_cache_misses_total", &[("cache", cache)]).await
    }
}

/// Fails unless the labels of a pod that name its workload are these.
pub(crate) fn expect_workload(pod: &Value, labels: &[(&str, &str)]) -> Outcome {
    let expected: BTreeMap<_, _> = labels.iter().copied().collect();
    expect("the labels of the workload", expected, workload_labels(pod))
}

/// The labels of the namespaces that the webhook is called for.
fn selected() -> Value {
    json!({"e2e": "watched"})
}
