//! A release of the chart: its objects, and replicas that run with its arguments and permissions.

use std::{
    fs::{self, File},
    io::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    process::Command,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use injectd_harness::{
    api::{Api, NAMESPACES, WEBHOOK_CONFIGURATIONS, collection},
    balancer::Balancer,
    client::probe,
    expect::{Outcome, eventually, expect, failed},
    injectd::{Injectd, faketime, linkerd_folder},
    istio::Revision,
    lab::Lab,
    objects::{self, enabled, plain_pod, pod},
    run::Suite,
    sidecar::expect_proxy,
    stream::Stream,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::{
    callers::Endpoints,
    left::{self, Objects},
    load::Load,
};

/// The namespace of the release, which stands for that of Linkerd's control plane.
pub(super) const NAMESPACE: &str = "deploy-linkerd";
const ISTIO_NAMESPACE: &str = "deploy-istio";
/// Namespaces of pods.
pub(super) const LINKERD_PODS: &str = "deploy-pods-linkerd";
pub(super) const ISTIO_PODS: &str = "deploy-pods-istio";
const TAG: &str = "deploy-e2e";
const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 17));
/// Names of the pods, and by how many seconds the clock of each is ahead of the API server's. They differ
/// by less than a third of the lifetime of a certificate.
pub(super) const REPLICAS: [(&str, i64); 3] = [("ahead", 8), ("right", 0), ("behind", -8)];
/// Indices of [`REPLICAS`].
pub(super) const AHEAD: usize = 0;
pub(super) const RIGHT: usize = 1;
pub(super) const BEHIND: usize = 2;
/// Flags that have other values here: there is no kubelet that mounts, and ports are free ones.
const REPLACED: [&str; 5] =
    ["--addr=", "--metrics-addr=", "--grpc-addr=", "--values=", "--trust-roots="];
/// Webhook configurations of the release.
pub(super) const CONFIGURATIONS: [&str; 2] = ["injectd-linkerd", "injectd-tag-deploy-e2e"];
/// The Secret, and the Lease of the same name.
pub(super) const SECRET: &str = "injectd-certificates";
/// The Lease of the audit.
pub(super) const AUDIT_LEASE: &str = "injectd-audit";
/// The variable with the credentials of a replica.
const KUBECONFIG: &str = "INJECTD_KUBECONFIG";
const EXPIRY: &str = "injectd_certificate_expiry_timestamp_seconds";

/// What all scenarios of the suite share.
pub(super) struct Installed {
    pub(super) lab: Lab,
    folder: TempDir,
    pub(super) service: Balancer,
    /// The replicas that get reviews.
    endpoints: Endpoints,
    pub(super) replicas: Vec<Injectd>,
    /// The library that sets the clocks of replicas; without it they are right.
    pub(super) faketime: Option<PathBuf>,
    /// What was in the cluster before the suite.
    before: Objects,
}

impl Installed {
    pub(super) async fn new(lab: &Lab) -> Outcome<Self> {
        Ok(Self {
            lab: lab.clone(),
            folder: tempfile::tempdir()?,
            service: Balancer::new(IP).await?,
            endpoints: Endpoints::default(),
            replicas: Vec::new(),
            faketime: faketime(),
            before: left::objects(&lab.api).await?,
        })
    }

    pub(super) fn api(&self) -> &Api {
        &self.lab.api
    }

    /// The objects that `injectd manifest install` prints with these arguments.
    pub(super) async fn objects(&self, arguments: &[&str]) -> Outcome<Vec<Value>> {
        let mut command = Command::new(&self.lab.binary);
        command.args(["manifest", "install", "-o", "json"]).args(arguments);
        let output = spawn_blocking(move || command.output()).await??;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let mut list: Value = serde_json::from_slice(&output.stdout)?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Err(failed("no list of objects")),
        }
    }

    /// The objects of the release.
    pub(super) async fn release(&self) -> Outcome<Vec<Value>> {
        let set = [
            format!("istio.namespace={ISTIO_NAMESPACE}"),
            format!("istio.tags[0].tag={TAG}"),
            // A certificate lives a minute.
            "certificates.managed.caLifetime=2m".to_owned(),
            "certificates.managed.lifetime=1m".to_owned(),
            "webhookDefaults.failurePolicy=Fail".to_owned(),
            "audit.enabled=true".to_owned(),
            "audit.restart=annotated".to_owned(),
            format!("linkerd.webhookOverrides.namespaceSelector.matchLabels.e2e={NAMESPACE}"),
            format!("service.port={}", self.service.addr.port()),
        ];
        let mut arguments = vec!["-n", NAMESPACE, "--mesh", "linkerd,istio"];
        arguments.extend(set.iter().flat_map(|it| ["--set", it]));
        self.objects(&arguments).await
    }

    /// Applies the objects, with what the meshes' control planes have.
    pub(super) async fn apply(&self) -> Outcome<String> {
        let api = self.api();
        let labels = json!({"e2e": NAMESPACE});
        for (name, labels) in [
            (NAMESPACE, json!({})),
            (ISTIO_NAMESPACE, json!({})),
            (LINKERD_PODS, labels),
            (ISTIO_PODS, json!({"istio.io/rev": TAG})),
        ] {
            api.create(None, &objects::namespace(name, &json!({}), &labels)).await?.created()?;
            eventually("the service account is there", async || {
                api.get(&format!("{NAMESPACES}/{name}/serviceaccounts/default"))
                    .await?
                    .ok()
                    .map(drop)
            })
            .await?;
        }
        for config_map in Revision::small("default", "1.30.3", "injectd").config_maps() {
            api.create(Some(ISTIO_NAMESPACE), &config_map).await?.created()?;
        }
        let objects = self.release().await?;
        for object in &objects {
            let mut object = object.clone();
            if object["kind"] == "Service" && object["metadata"]["name"] == "injectd" {
                // There is no kube-proxy: the cluster's address is where the replicas listen.
                object["spec"]["clusterIP"] = json!(IP.to_string());
                object["spec"].as_object_mut().map(|spec| spec.remove("selector"));
            }
            api.apply(&object, "helm").await?;
        }
        Ok(format!("{} objects", objects.len()))
    }

    /// The arguments of the Deployment's container, and files in place of its mounts.
    async fn arguments(&self) -> Outcome<Vec<String>> {
        let objects = self.release().await?;
        let deployment = objects.iter().find(|it| it["kind"] == "Deployment");
        let arguments = deployment
            .and_then(|it| it.pointer("/spec/template/spec/containers/0/args")?.as_array())
            .ok_or_else(|| failed("no arguments in the Deployment"))?;
        let arguments = arguments.iter().filter_map(Value::as_str).map(str::to_owned);
        let mut arguments: Vec<_> =
            arguments.filter(|it| !REPLACED.iter().any(|flag| it.starts_with(flag))).collect();
        let linkerd = linkerd_folder();
        arguments.push(format!("--values={}", linkerd.join("values/default.yaml").display()));
        arguments.push(format!("--trust-roots={}", linkerd.join("example-root.crt").display()));
        Ok(arguments)
    }

    /// Starts the replicas at the same time, and waits until all are ready.
    pub(super) async fn start(&mut self) -> Outcome {
        for index in 0..REPLICAS.len() {
            let replica = self.replica(index).await?;
            self.replicas.push(replica);
        }
        let [one, two, three] = &mut *self.replicas else { return Err(failed("no replicas")) };
        tokio::try_join!(one.start(), two.start(), three.start())?;
        for replica in &self.replicas {
            wait_until_ready(replica).await?;
        }
        Ok(())
    }

    /// A replica that is not started, with a token of the release's `ServiceAccount`.
    async fn replica(&self, index: usize) -> Outcome<Injectd> {
        let (name, seconds) = REPLICAS[index];
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        let kubeconfig = self.kubeconfig(&folder).await?;
        let arguments = self.arguments().await?;
        let mut replica = Injectd::serve_managed(&self.lab.binary, &folder, IP, &arguments)?;
        replica.set_variable("POD_NAMESPACE", NAMESPACE);
        replica.set_variable("POD_NAME", name);
        replica.set_variable(KUBECONFIG, kubeconfig);
        if let Some(library) = self.faketime.as_deref().filter(|_| seconds != 0) {
            replica.set_clock(seconds, library);
        }
        Ok(replica)
    }

    /// Kills a replica.
    pub(super) async fn kill(&mut self, index: usize) -> Outcome {
        self.replicas[index].kill().await
    }

    /// Starts a replica in the place of one that was killed. It is not ready yet, and gets no reviews.
    pub(super) async fn start_again(&mut self, index: usize) -> Outcome {
        let mut again = self.replica(index).await?;
        again.start().await?;
        self.replicas[index] = again;
        Ok(())
    }

    async fn kubeconfig(&self, folder: &std::path::Path) -> Outcome<PathBuf> {
        let config = self.api().kubeconfig(NAMESPACE, "injectd", &self.api().server).await?;
        let file = folder.join("kubeconfig");
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600);
        options.open(&file)?.write_all(config.to_string().as_bytes())?;
        Ok(file)
    }

    /// What the audit log calls the credentials of a replica.
    pub(super) fn credential(&self, index: usize) -> Outcome<String> {
        let file = self.replicas[index].variable(KUBECONFIG).unwrap_or_default();
        let config: Value = serde_json::from_slice(&fs::read(file)?)?;
        let token = config["users"][0]["user"]["token"].as_str().unwrap_or_default();
        let claims = token.split('.').nth(1).unwrap_or_default();
        let claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims)?)?;
        let id = claims["jti"].as_str().ok_or_else(|| failed("a token without jti"))?;
        Ok(format!("JTI={id}"))
    }

    /// Sends reviews to all replicas.
    pub(super) fn balance(&self) {
        self.send_to(self.replicas.iter().map(|it| it.webhook).collect());
    }

    /// Sends reviews to all replicas but one, which is about to break its connections.
    pub(super) async fn balance_without(&self, index: usize) -> Outcome {
        let others = self.replicas.iter().enumerate().filter(|(at, _)| *at != index);
        self.send_to(others.map(|(_, it)| it.webhook).collect());
        self.service.cut();
        // A review fails on a connection of which the API server has not seen that it is closed.
        eventually("the API server has other connections", async || {
            for _ in 0..10 {
                self.inject().await?;
            }
            Ok(())
        })
        .await
    }

    fn send_to(&self, replicas: Vec<SocketAddr>) {
        self.endpoints.set(replicas.clone());
        self.service.set(replicas);
    }

    /// Creates pods of both meshes, as dry runs, all the time.
    pub(super) fn stream(&self) -> Stream {
        let linkerd = pod("stream", &enabled());
        Stream::start(self.api(), &[(LINKERD_PODS, linkerd), (ISTIO_PODS, plain_pod("stream"))])
    }

    /// [`Installed::stream`], and other callers that verify all certificates that are served.
    pub(super) fn load(&self) -> Load {
        Load::start(self.stream(), self.api(), &self.endpoints)
    }

    pub(super) async fn inject(&self) -> Outcome {
        let linkerd = self.api().dry_run(LINKERD_PODS, &pod("tried", &enabled())).await?;
        expect_proxy(&linkerd.created()?)?;
        let istio = self.api().dry_run(ISTIO_PODS, &plain_pod("tried")).await?.created()?;
        let revision = istio["metadata"]["annotations"]["istio.io/rev"].as_str();
        expect("Istio's revision", Some("default"), revision)
    }

    /// The sum of a metric of all replicas that run.
    pub(super) async fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        let mut sum = 0;
        for replica in &self.replicas {
            sum += replica.metric(name, labels).await.unwrap_or_default();
        }
        Ok(sum)
    }

    /// When the certificate of a replica ends, in seconds since 1970.
    pub(super) async fn expiry_of(&self, index: usize) -> Outcome<u64> {
        self.replicas[index].metric(EXPIRY, &[]).await
    }

    /// When the first certificate that is served ends.
    pub(super) async fn expiry(&self) -> Outcome<u64> {
        let mut first = u64::MAX;
        for index in 0..self.replicas.len() {
            first = first.min(self.expiry_of(index).await?);
        }
        Ok(first)
    }

    pub(super) fn secret_path() -> String {
        format!("{}/{SECRET}", collection("v1", "Secret", Some(NAMESPACE)))
    }

    /// Waits until the Secret has its keys, after it was lost.
    pub(super) async fn restored(&self) -> Outcome {
        eventually("the Secret is restored", async || {
            expect("whether it has a key", true, !self.secret("ca.key").await?.is_empty())
        })
        .await
    }

    /// The `caBundle` of a webhook configuration; the API has it in base64.
    pub(super) async fn ca_bundle(&self, configuration: &str) -> Outcome<String> {
        let path = format!("{WEBHOOK_CONFIGURATIONS}/{configuration}");
        let found = self.api().get(&path).await?.ok()?;
        let bundle = found["webhooks"][0]["clientConfig"]["caBundle"].as_str();
        Ok(bundle.unwrap_or_default().to_owned())
    }

    /// The value of a key of the Secret, in base64; empty without.
    pub(super) async fn secret(&self, key: &str) -> Outcome<String> {
        let secret = self.api().get(&Self::secret_path()).await?.ok()?;
        Ok(secret["data"][key].as_str().unwrap_or_default().to_owned())
    }

    /// Prints the end of the logs if a scenario failed.
    pub(super) fn explain(&self, suite: &Suite<'_>) {
        for replica in self.replicas.iter().filter(|_| suite.has_failed()) {
            let log = replica.log();
            let lines: Vec<_> = log.lines().filter(|it| !it.contains("msg=reviewed")).collect();
            suite.print_end("the end of a replica's log", &lines);
        }
    }

    /// Ends the replicas and deletes what the suite made in the cluster.
    pub(super) async fn clean_up(mut self) -> Outcome {
        self.replicas.clear();
        left::delete(self.api(), &self.before).await
    }
}

pub(super) async fn wait_until_ready(replica: &Injectd) -> Outcome {
    eventually("/ready", async || expect("/ready", 200, probe(replica.admin, "/ready").await?.0))
        .await
}
