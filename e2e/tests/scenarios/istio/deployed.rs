//! injectd as `deploy/istio-webhook` describes it: its `ServiceAccount`, its arguments, its Service.

use std::{collections::BTreeMap, fs, net::IpAddr, path::PathBuf};

use injectd_harness::{
    api::{NAMESPACES, WEBHOOK_CONFIGURATIONS, collection, path_of, write_kubeconfig},
    balancer::Balancer,
    certificates::{Ca, Certificate},
    client::wait_until_ready,
    expect::{Outcome, eventually},
    injectd::Injectd,
    istio::Revision,
    lab::{Lab, service_ip},
    namespaced::{Namespaced, OF_SCENARIO},
    objects::{RBAC_VERSION, ServiceAccount},
    stream::Stream,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{certificates::secret, pods::labelled, replicas::expect_revision};

/// The `ServiceAccount`, the Deployment and the Service.
pub(super) const ACCOUNT: &str = "injectd";
/// The names of the replicas.
pub(super) const REPLICAS: [&str; 2] = ["one", "two"];

/// Two replicas and what they serve. Namespaces are named by what is behind the scenario's name.
pub(super) struct Istio<'a> {
    pub(super) it: &'a Namespaced<'a>,
    pub(super) lab: &'a Lab,
    /// The namespace of istiod and injectd.
    pub(super) control_plane: String,
    pub(super) folder: TempDir,
    pub(super) ca: Ca,
    pub(super) certificate: Certificate,
    ip: IpAddr,
    pub(super) service: Balancer,
    pub(super) replicas: Vec<Injectd>,
    /// The revisions that have `ConfigMaps`, as they were made.
    pub(super) revisions: BTreeMap<String, Revision>,
}

impl<'a> Istio<'a> {
    pub(super) async fn new(it: &'a Namespaced<'a>) -> Outcome<Self> {
        let (control_plane, ip) = (it.name_of("control-plane"), service_ip()?);
        let kinds = ["ClusterRole", "ClusterRoleBinding"];
        let roles = kinds.map(|kind| collection(RBAC_VERSION, kind, None));
        for path in roles.iter().map(String::as_str).chain([WEBHOOK_CONFIGURATIONS]) {
            it.delete_at_end(format!("{path}?labelSelector={OF_SCENARIO}%3D{}", it.name));
        }
        let ca = Ca::new()?;
        let revisions = [("default", "1.30.3"), ("canary", "1.30.4")].map(|(name, tag)| {
            let mut revision = Revision::small(name, tag, "injectd");
            revision.mesh = format!("{}\nrootNamespace: {control_plane}\n", revision.mesh);
            (name.to_owned(), revision)
        });
        Ok(Self {
            it,
            lab: it.lab,
            folder: tempfile::tempdir()?,
            certificate: ca.issue(&format!("{ACCOUNT}.{control_plane}.svc"), ip)?,
            ca,
            ip,
            service: Balancer::new(ip).await?,
            replicas: Vec::new(),
            revisions: revisions.into(),
            control_plane,
        })
    }

    // === start and end ===

    /// Starts two replicas, and makes the API server call them for both revisions.
    pub(super) async fn serve(&mut self) -> Outcome {
        self.apply().await?;
        for name in REPLICAS {
            let mut replica = self.replica(name, &self.lab.api.server).await?;
            replica.start().await?;
            self.replicas.push(replica);
        }
        for replica in &self.replicas {
            wait_until_ready(replica.admin).await?;
        }
        self.balance();
        self.make_namespace("enabled", &json!({"istio-injection": "enabled"})).await?;
        self.make_namespace("rev-canary", &json!({"istio.io/rev": "canary"})).await?;
        self.call().await
    }

    /// Makes the webhook configurations of both revisions, and waits until they act.
    pub(super) async fn call(&self) -> Outcome {
        for (file, revision) in [("default.yaml", "default"), ("revision.yaml", "canary")] {
            let configuration = self.configuration(file, revision, "")?;
            self.lab.api.create(None, &configuration).await?.created()?;
        }
        eventually("the webhooks take effect", async || {
            for (namespace, revision) in [("enabled", "default"), ("rev-canary", "canary")] {
                let pod = self.pod(namespace, &labelled(&json!({}))).await?;
                expect_revision(self, &pod, revision)?;
            }
            Ok(())
        })
        .await
    }

    /// Creates the objects of the manifests, and the `ConfigMaps` of both revisions.
    async fn apply(&self) -> Outcome {
        self.it.make(&self.control_plane, &json!({})).await?;
        for mut object in self.manifests()? {
            if object["kind"] == "Service" {
                // There is no kube-proxy: the cluster's address is where injectd listens.
                let port = self.service.addr.port();
                object["spec"] = json!({"clusterIP": self.ip, "ports": [{"port": port}]});
            }
            self.own(&mut object);
            let namespace = object["metadata"]["namespace"].as_str();
            self.lab.api.create(namespace, &object).await?.created()?;
        }
        for revision in self.revisions.values() {
            self.install(revision).await?;
        }
        self.create(&secret(&self.certificate)).await.map(drop)
    }

    // === processes ===

    /// A replica that is not started, with files of its own, for the API server at a URL.
    pub(super) async fn replica(&self, name: &str, server: &str) -> Outcome<Injectd> {
        self.injectd(name, self.account(), server, &self.arguments()?).await
    }

    /// A process that is not started, which is this account.
    pub(super) async fn injectd(
        &self,
        name: &str,
        account: ServiceAccount<'_>,
        server: &str,
        arguments: &[String],
    ) -> Outcome<Injectd> {
        let folder = self.folder(name)?;
        let config = self.lab.api.kubeconfig(account.namespace, account.name, server).await?;
        let (binary, certificate) = (&self.lab.binary, self.certificate.clone());
        let mut injectd = Injectd::serve(binary, &folder, self.ip, certificate, arguments)?;
        injectd.set_variable("POD_NAMESPACE", &self.control_plane);
        injectd.set_variable("INJECTD_KUBECONFIG", write_kubeconfig(&folder, &config)?);
        Ok(injectd)
    }

    /// A folder for the files of a process.
    pub(super) fn folder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Sends requests to all replicas.
    pub(super) fn balance(&self) {
        self.service.set(self.replicas.iter().map(|replica| replica.webhook).collect());
    }

    pub(super) fn account(&self) -> ServiceAccount<'_> {
        ServiceAccount { namespace: &self.control_plane, name: ACCOUNT }
    }

    /// A certificate for the Service, of a CA.
    pub(super) fn certificate_of(&self, ca: &Ca) -> Outcome<Certificate> {
        ca.issue(&self.certificate.host, self.ip)
    }

    /// A certificate for the Service that has expired.
    pub(super) fn expired(&self) -> Outcome<Certificate> {
        self.ca.issue_expired(&self.certificate.host, self.ip)
    }

    // === objects ===

    /// Creates an object in the namespace of the control plane.
    pub(super) async fn create(&self, object: &Value) -> Outcome<Value> {
        self.lab.api.create(Some(&self.control_plane), object).await?.created()
    }

    /// The path of an object in the namespace of the control plane.
    pub(super) fn path(&self, object: &Value) -> String {
        path_of(object, Some(&self.control_plane))
    }

    pub(super) async fn make_namespace(&self, namespace: &str, labels: &Value) -> Outcome {
        self.it.make_labelled(&self.it.name_of(namespace), labels).await
    }

    /// Replaces the labels of a namespace.
    pub(super) async fn label(&self, namespace: &str, labels: &Value) -> Outcome {
        let path = format!("{NAMESPACES}/{}", self.it.name_of(namespace));
        let labels = self.it.with_labels(labels);
        eventually("the namespace is updated", async || {
            self.lab
                .api
                .update(&path, |namespace| namespace["metadata"]["labels"] = labels.clone())
                .await
        })
        .await
    }

    /// The pod that the API server would create.
    pub(super) async fn pod(&self, namespace: &str, pod: &Value) -> Outcome<Value> {
        self.lab.api.dry_run(&self.it.name_of(namespace), pod).await?.created()
    }

    /// Creates pods until it is stopped.
    pub(super) async fn stream(&self, pods: &[(&str, Value)]) -> Outcome<Stream> {
        let names: Vec<_> = pods.iter().map(|(name, _)| self.it.name_of(name)).collect();
        let api = self.it.unaudited(&names).await?;
        let pods = names.iter().zip(pods).map(|(name, (_, pod))| (&**name, pod.clone()));
        Ok(Stream::start(&api, &pods.collect::<Vec<_>>()))
    }
}
