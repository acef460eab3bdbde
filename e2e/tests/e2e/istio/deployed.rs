//! injectd as `deploy/istio-webhook` describes it: its `ServiceAccount`, its arguments, its Service.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write as _,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use injectd_harness::{
    api::{NAMESPACES, collection},
    balancer::Balancer,
    certificates::{Ca, Certificate},
    client::{self, Answer, Webhook, patch_of},
    expect::{Outcome, eventually, expect, expect_listed, failed},
    injectd::Injectd,
    lab::Lab,
    metrics::metric,
    objects::{self, plain_pod, service_account},
    run::Suite,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::config::Revision;

/// The namespace of istiod and injectd.
pub(super) const NAMESPACE: &str = "istio-system";
/// The `ServiceAccount`, the Deployment and the Service.
pub(super) const ACCOUNT: &str = "injectd";
/// Not that of the other suites, whose Services may still be there.
const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 11));
const REPLICAS: [&str; 2] = ["one", "two"];
/// Flags of the manifests that have other values here, or none.
const REPLACED: [&str; 5] =
    ["--addr=", "--metrics-addr=", "--grpc-addr=", "--tls-cert=", "--tls-key="];

/// What all scenarios of the suite share.
pub(super) struct Deployed {
    pub(super) lab: Lab,
    pub(super) folder: TempDir,
    pub(super) ca: Ca,
    certificate: Certificate,
    pub(super) service: Balancer,
    pub(super) replicas: Vec<Injectd>,
    /// The revisions that have `ConfigMaps`, as they were made.
    pub(super) revisions: BTreeMap<String, Revision>,
}

impl Deployed {
    pub(super) async fn new(lab: &Lab) -> Outcome<Self> {
        let ca = Ca::new()?;
        let revisions = [("default", "1.30.3"), ("canary", "1.30.4")]
            .map(|(name, tag)| (name.to_owned(), Revision::small(name, tag, "injectd")));
        Ok(Self {
            lab: lab.clone(),
            folder: tempfile::tempdir()?,
            certificate: ca.issue(&host(), IP)?,
            ca,
            service: Balancer::new(IP).await?,
            replicas: Vec::new(),
            revisions: revisions.into(),
        })
    }

    // === start ===

    /// Creates the objects of the manifests, and the `ConfigMaps` of both revisions.
    pub(super) async fn apply(&self) -> Outcome<String> {
        self.make_namespace(NAMESPACE, &json!({})).await?;
        let objects = manifests()?;
        for object in &objects {
            let mut object = object.clone();
            if object["kind"] == "Service" {
                // There is no kube-proxy: the cluster's address is where injectd listens.
                let port = self.service.addr.port();
                object["spec"] = json!({"clusterIP": IP.to_string(), "ports": [{"port": port}]});
            }
            let namespace = object["metadata"]["namespace"].as_str();
            self.lab.api.create(namespace, &object).await?.created()?;
        }
        for revision in self.revisions.values() {
            for config_map in revision.config_maps() {
                self.create(NAMESPACE, &config_map).await?;
            }
        }
        self.create(NAMESPACE, &secret(&self.certificate)).await?;
        Ok(format!("{} objects", objects.len()))
    }

    /// Starts two replicas, and waits until both are ready.
    pub(super) async fn start(&mut self) -> Outcome {
        for name in REPLICAS {
            let mut replica = self.replica(name, &self.lab.api.server).await?;
            replica.start().await?;
            self.replicas.push(replica);
        }
        for replica in &self.replicas {
            wait_until_ready(replica).await?;
        }
        self.balance();
        Ok(())
    }

    /// A replica that is not started, with files of its own, for the API server at a URL.
    pub(super) async fn replica(&self, name: &str, server: &str) -> Outcome<Injectd> {
        let folder = self.folder(name)?;
        let kubeconfig = self.kubeconfig(&folder, ACCOUNT, server).await?;
        let (binary, certificate) = (&self.lab.binary, self.certificate.clone());
        let mut replica = Injectd::serve(binary, &folder, IP, certificate, &arguments()?)?;
        replica.set_variable("POD_NAMESPACE", NAMESPACE);
        replica.set_variable("INJECTD_KUBECONFIG", kubeconfig);
        Ok(replica)
    }

    /// A folder for the files of a process.
    pub(super) fn folder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// A kubeconfig in a folder, with a token of a `ServiceAccount`.
    pub(super) async fn kubeconfig(
        &self,
        folder: &Path,
        account: &str,
        server: &str,
    ) -> Outcome<PathBuf> {
        let config = self.lab.api.kubeconfig(NAMESPACE, account, server).await?;
        let file = folder.join("kubeconfig");
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600);
        options.open(&file)?.write_all(config.to_string().as_bytes())?;
        Ok(file)
    }

    /// Sends requests to all replicas.
    pub(super) fn balance(&self) {
        self.service.set(self.replicas.iter().map(|it| it.webhook).collect());
    }

    pub(super) async fn terminate(&mut self) -> Outcome {
        let [one, two] = &mut *self.replicas else { return Err(failed("no two replicas")) };
        tokio::try_join!(one.terminate(), two.terminate()).map(drop)
    }

    /// Prints the end of the logs if a scenario failed.
    pub(super) fn explain(&self, suite: &Suite<'_>) {
        for replica in self.replicas.iter().filter(|_| suite.has_failed()) {
            let log = replica.log();
            let lines: Vec<_> = log.lines().filter(|it| !it.contains("msg=reviewed")).collect();
            suite.print_end("the end of a replica's log", &lines);
        }
    }

    /// PEM of the CA that the API server verifies injectd by.
    pub(super) fn ca_pem(&self) -> &str {
        &self.certificate.ca
    }

    /// Makes a certificate that of both replicas, as the kubelet does with a changed Secret.
    pub(super) fn write_certificate(&self, certificate: &Certificate) -> Outcome {
        for name in REPLICAS {
            let folder = self.folder.path().join(name);
            fs::write(folder.join("tls.crt"), &certificate.certificate)?;
            fs::write(folder.join("tls.key"), &certificate.key)?;
        }
        Ok(())
    }

    /// Writes a certificate into the Secret too, and waits until both replicas have it.
    pub(super) async fn serve_certificate(&self, certificate: &Certificate) -> Outcome {
        let path = format!("{}/injectd-tls", collection("v1", "Secret", Some(NAMESPACE)));
        let secret = secret(certificate);
        let change = |it: &mut Value| it["stringData"] = secret["stringData"].clone();
        self.lab.api.update(&path, change).await?;
        self.write_certificate(certificate)?;
        let pod = plain_pod("tried");
        for replica in &self.replicas {
            let client = Webhook { ca: &certificate.ca, ..replica.client() };
            eventually("the certificate takes effect", async || {
                client.review_at("/inject", "any", &pod, 10).await.map(drop)
            })
            .await?;
        }
        Ok(())
    }

    /// A certificate for the Service that has expired.
    pub(super) fn issue_expired(&self) -> Outcome<Certificate> {
        self.ca.issue_expired(&host(), IP)
    }

    // === objects ===

    pub(super) fn revision(&self, name: &str) -> Outcome<&Revision> {
        self.revisions.get(name).ok_or_else(|| failed(format!("no revision {name}")))
    }

    pub(super) async fn create(&self, namespace: &str, object: &Value) -> Outcome<Value> {
        self.lab.api.create(Some(namespace), object).await?.created()
    }

    /// Makes a namespace in which pods can be created at once.
    pub(super) async fn make_namespace(&self, name: &str, labels: &Value) -> Outcome {
        let namespace = objects::namespace(name, &json!({}), labels);
        self.lab.api.create(None, &namespace).await?.created()?;
        let account = self.lab.api.create(Some(name), &service_account("default")).await?;
        // The controller manager may have been faster.
        expect_listed("the status of its ServiceAccount", account.status, &[201, 409])
    }

    pub(super) async fn label(&self, namespace: &str, labels: &Value) -> Outcome {
        let path = format!("{NAMESPACES}/{namespace}");
        eventually("the namespace is updated", async || {
            self.lab.api.update(&path, |it| it["metadata"]["labels"] = labels.clone()).await
        })
        .await
    }

    /// Replaces both `ConfigMaps` of a revision.
    pub(super) async fn configure(&self, revision: &Revision) -> Outcome {
        for config_map in revision.config_maps() {
            let name = config_map["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{}/{name}", collection("v1", "ConfigMap", Some(NAMESPACE)));
            self.lab.api.update(&path, |it| it["data"] = config_map["data"].clone()).await?;
        }
        Ok(())
    }

    /// The pod that the API server would create.
    pub(super) async fn pod(&self, namespace: &str, pod: &Value) -> Outcome<Value> {
        self.lab.api.dry_run(namespace, pod).await?.created()
    }
}

/// Waits until the patch of each replica has this text, or has it no more.
pub(super) async fn wait_for_patch(
    it: &Deployed,
    (revision, pod): (&str, &Value),
    text: &str,
    has_it: bool,
) -> Outcome {
    for replica in &it.replicas {
        eventually("the configuration takes effect", async || {
            let answer = review(replica, revision, "any", pod).await?;
            let patch = patch_of(&answer.response()?)?;
            let patch: String = patch.iter().map(Value::to_string).collect();
            expect(format!("whether the patch has {text:?}"), has_it, patch.contains(text))
        })
        .await?;
    }
    Ok(())
}

/// Waits until each replica has the revisions as they were made.
pub(super) async fn wait_until_restored(it: &Deployed) -> Outcome {
    for (name, revision) in &it.revisions {
        it.configure(revision).await?;
        let pod = plain_pod("tried");
        let image = format!("\"{}\"", revision.image()?);
        wait_for_patch(it, (name, &pod), &image, true).await?;
        wait_for_patch(it, (name, &pod), "\"injectd\"", true).await?;
    }
    Ok(())
}

/// Sends a review as the API server does.
pub(super) async fn review(
    replica: &Injectd,
    revision: &str,
    namespace: &str,
    pod: &Value,
) -> Outcome<Answer> {
    let path = format!("/istio/{revision}/inject");
    replica.client().review_at(&path, namespace, pod, 10).await
}

pub(super) async fn wait_until_ready(replica: &Injectd) -> Outcome {
    eventually("/ready", async || {
        expect("/ready", 200, client::probe(replica.admin, "/ready").await?.0)
    })
    .await
}

pub(super) async fn metric_of(
    replica: &Injectd,
    name: &str,
    labels: &[(&str, &str)],
) -> Outcome<u64> {
    let (_, text) = client::probe(replica.admin, "/metrics").await?;
    Ok(metric(&text, name, labels))
}

/// The Secret with the certificate, for `take-over.sh`.
fn secret(certificate: &Certificate) -> Value {
    let Certificate { ca, certificate, key, .. } = certificate;
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "injectd-tls"},
        "stringData": {"ca.crt": ca, "tls.crt": certificate, "tls.key": key},
    })
}

/// A certificate for the Service, of a CA.
pub(super) fn certificate_of(ca: &Ca) -> Outcome<Certificate> {
    ca.issue(&host(), IP)
}

fn host() -> String {
    format!("{ACCOUNT}.{NAMESPACE}.svc")
}

/// The objects of the base, in its order.
fn manifests() -> Outcome<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/istio-webhook/base");
    let mut objects = Vec::new();
    for file in ["rbac.yaml", "deployment.yaml", "service.yaml"] {
        let text = fs::read_to_string(folder.join(file))?;
        objects.extend(serde_saphyr::from_multiple::<Value>(&text)?);
    }
    Ok(objects)
}

/// The arguments of the Deployment's container, but for addresses and certificates.
pub(super) fn arguments() -> Outcome<Vec<String>> {
    let objects = manifests()?;
    let deployment = objects.iter().find(|it| it["kind"] == "Deployment");
    let arguments = deployment
        .and_then(|it| it.pointer("/spec/template/spec/containers/0/args")?.as_array())
        .ok_or_else(|| failed("no arguments in deployment.yaml"))?;
    let arguments = arguments.iter().filter_map(Value::as_str).map(str::to_owned);
    Ok(arguments.filter(|it| !REPLACED.iter().any(|flag| it.starts_with(flag))).collect())
}
