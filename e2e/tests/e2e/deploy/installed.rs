//! A release of the chart: its objects, and replicas that run with its arguments and permissions.

use std::{
    fs::{self, File},
    io::Write as _,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    process::Command,
};

use injectd_e2e::{
    api::{Api, NAMESPACES, WEBHOOK_CONFIGURATIONS, collection},
    balancer::Balancer,
    client::probe,
    expect::{Outcome, eventually, expect, failed},
    injectd::{Injectd, linkerd_folder},
    lab::Lab,
    metrics::metric,
    objects::{self, enabled, plain_pod, pod},
    run::Suite,
    sidecar::expect_proxy,
    stream::Stream,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::istio::config::Revision;

/// The namespace of the release, which stands for that of Linkerd's control plane.
pub(super) const NAMESPACE: &str = "deploy-linkerd";
const ISTIO_NAMESPACE: &str = "deploy-istio";
/// Namespaces of pods.
pub(super) const LINKERD_PODS: &str = "deploy-pods-linkerd";
pub(super) const ISTIO_PODS: &str = "deploy-pods-istio";
const TAG: &str = "deploy-e2e";
const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 17));
const REPLICAS: [&str; 3] = ["one", "two", "three"];
/// Flags that have other values here: there is no kubelet that mounts, and ports are free ones.
const REPLACED: [&str; 5] =
    ["--addr=", "--metrics-addr=", "--grpc-addr=", "--values=", "--trust-roots="];
/// Webhook configurations of the release.
pub(super) const CONFIGURATIONS: [&str; 2] = ["injectd-linkerd", "injectd-tag-deploy-e2e"];
/// The Secret, and the Lease of the same name.
pub(super) const SECRET: &str = "injectd-certificates";

/// What all scenarios of the suite share.
pub(super) struct Installed {
    pub(super) lab: Lab,
    folder: TempDir,
    pub(super) service: Balancer,
    pub(super) replicas: Vec<Injectd>,
}

impl Installed {
    pub(super) async fn new(lab: &Lab) -> Outcome<Self> {
        Ok(Self {
            lab: lab.clone(),
            folder: tempfile::tempdir()?,
            service: Balancer::new(IP).await?,
            replicas: Vec::new(),
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
        for mut config_map in Revision::small("default", "1.30.3", "injectd").config_maps() {
            config_map["metadata"]["namespace"] = json!(ISTIO_NAMESPACE);
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
        for name in REPLICAS {
            let replica = self.replica(name).await?;
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
    pub(super) async fn replica(&self, name: &str) -> Outcome<Injectd> {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        let kubeconfig = self.kubeconfig(&folder).await?;
        let arguments = self.arguments().await?;
        let mut replica = Injectd::serve_managed(&self.lab.binary, &folder, IP, &arguments)?;
        replica.set_variable("POD_NAMESPACE", NAMESPACE);
        replica.set_variable("POD_NAME", name);
        replica.set_variable("INJECTD_KUBECONFIG", kubeconfig);
        Ok(replica)
    }

    async fn kubeconfig(&self, folder: &std::path::Path) -> Outcome<PathBuf> {
        let config = self.api().kubeconfig(NAMESPACE, "injectd", &self.api().server).await?;
        let file = folder.join("kubeconfig");
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600);
        options.open(&file)?.write_all(config.to_string().as_bytes())?;
        Ok(file)
    }

    /// The index of the replica that manages the certificates.
    pub(super) async fn leader(&self) -> Outcome<usize> {
        eventually("one replica leads", async || {
            let mut leaders = Vec::new();
            for (index, replica) in self.replicas.iter().enumerate() {
                let name = "injectd_managed_certificate_leader";
                if metric_of(replica, name, &[]).await.is_ok_and(|value| value == 1) {
                    leaders.push(index);
                }
            }
            match *leaders {
                [leader] => Ok(leader),
                _ => Err(failed(format!("leaders: {leaders:?}"))),
            }
        })
        .await
    }

    /// Sends reviews to all replicas but one.
    pub(super) fn balance_without(&self, index: usize) {
        let others = self.replicas.iter().enumerate().filter(|(at, _)| *at != index);
        self.service.set(others.map(|(_, it)| it.webhook).collect());
    }

    /// Creates pods of both meshes, as dry runs, all the time.
    pub(super) fn stream(&self) -> Stream {
        let linkerd = pod("stream", &enabled());
        Stream::start(self.api(), &[(LINKERD_PODS, linkerd), (ISTIO_PODS, plain_pod("stream"))])
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
            sum += metric_of(replica, name, labels).await.unwrap_or_default();
        }
        Ok(sum)
    }

    pub(super) fn secret_path() -> String {
        format!("{}/{SECRET}", collection("v1", "Secret", Some(NAMESPACE)))
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

    pub(super) async fn clean_up(mut self) -> Outcome {
        self.replicas.clear();
        for name in CONFIGURATIONS {
            self.api().delete(&format!("{WEBHOOK_CONFIGURATIONS}/{name}")).await?;
        }
        for name in [NAMESPACE, ISTIO_NAMESPACE, LINKERD_PODS, ISTIO_PODS] {
            self.api().delete(&format!("{NAMESPACES}/{name}")).await?;
        }
        Ok(())
    }
}

pub(super) async fn wait_until_ready(replica: &Injectd) -> Outcome {
    eventually("/ready", async || expect("/ready", 200, probe(replica.admin, "/ready").await?.0))
        .await
}

pub(super) async fn metric_of(
    replica: &Injectd,
    name: &str,
    labels: &[(&str, &str)],
) -> Outcome<u64> {
    let (_, text) = probe(replica.admin, "/metrics").await?;
    Ok(metric(&text, name, labels))
}
