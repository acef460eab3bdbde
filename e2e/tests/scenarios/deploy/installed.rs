//! A release of the chart: its objects, and replicas that run with its arguments and permissions.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use injectd_harness::{
    api::{Api, WEBHOOK_CONFIGURATIONS, write_kubeconfig},
    balancer::Balancer,
    client::wait_until_ready,
    expect::{Outcome, eventually, expect, failed},
    injectd::{Injectd, faketime, linkerd_folder},
    istio::Revision,
    lab::service_ip,
    manifests::arguments,
    namespaced::Namespaced,
    objects::{enabled, plain_pod, pod},
    sidecar::expect_proxy,
    stream::Stream,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    callers::{Callers, Endpoints},
    load::Load,
    release::{Release, delete_release_at_end, objects},
};

/// Ends of the names of namespaces of pods.
pub(super) const LINKERD_PODS: &str = "pods-linkerd";
const ISTIO_PODS: &str = "pods-istio";
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
/// The variable with the credentials of a replica.
const KUBECONFIG: &str = "INJECTD_KUBECONFIG";
const EXPIRY: &str = "injectd_certificate_expiry_timestamp_seconds";

/// A release and its replicas.
pub(super) struct Installed<'a> {
    pub(super) it: &'a Namespaced<'a>,
    pub(super) release: Release,
    /// The webhook configuration of istiod that the leader writes too. istiod and its `ConfigMaps` are in
    /// the namespace of the release then.
    pub(super) of_istiod: Option<String>,
    ip: IpAddr,
    folder: TempDir,
    pub(super) service: Balancer,
    /// The replicas that get reviews.
    endpoints: Endpoints,
    pub(super) replicas: Vec<Injectd>,
    /// The library that sets the clocks of replicas; without it they are right.
    pub(super) faketime: Option<PathBuf>,
    /// Creates pods that are not in the audit log.
    creator: Api,
}

impl<'a> Installed<'a> {
    /// A release, maybe beside istiod.
    pub(super) async fn new(it: &'a Namespaced<'a>, has_istiod: bool) -> Outcome<Self> {
        it.make(&it.name_of("istio"), &json!({})).await?;
        it.make_labelled(&it.name_of(LINKERD_PODS), &json!({"e2e": it.name})).await?;
        it.make_labelled(&it.name_of(ISTIO_PODS), &json!({"istio.io/rev": it.name})).await?;
        let creator =
            it.unaudited(&[LINKERD_PODS, ISTIO_PODS].map(|name| it.name_of(name))).await?;
        let ip = service_ip()?;
        delete_release_at_end(it);
        Ok(Self {
            it,
            release: Release(it.name.clone()),
            of_istiod: has_istiod.then(|| it.name_of("istio-sidecar-injector")),
            ip,
            folder: tempfile::tempdir()?,
            service: Balancer::new(ip).await?,
            endpoints: Endpoints::default(),
            replicas: Vec::new(),
            faketime: faketime(),
            creator,
        })
    }

    pub(super) fn api(&self) -> &Api {
        &self.it.lab.api
    }

    /// The namespace of Istio's `ConfigMaps`.
    fn istio(&self) -> String {
        if self.of_istiod.is_some() { self.it.name.clone() } else { self.it.name_of("istio") }
    }

    /// The objects of the release.
    pub(super) async fn objects(&self) -> Outcome<Vec<Value>> {
        let name = &self.it.name;
        let written = self.of_istiod.as_deref().unwrap_or_default();
        let set = [
            format!("istio.namespace={}", self.istio()),
            format!("certificates.managed.webhookConfigurations=[{written}]"),
            format!("istio.tags[0].tag={name}"),
            // A certificate lives a minute.
            "certificates.managed.caLifetime=2m".to_owned(),
            "certificates.managed.lifetime=1m".to_owned(),
            "webhookDefaults.failurePolicy=Fail".to_owned(),
            "audit.enabled=true".to_owned(),
            "audit.restart=annotated".to_owned(),
            format!("linkerd.webhookOverrides.namespaceSelector.matchLabels.e2e={name}"),
            format!("service.port={}", self.service.addr.port()),
        ];
        let mut arguments = vec!["-n", name, "--name", name, "--mesh", "linkerd,istio"];
        arguments.extend(set.iter().flat_map(|setting| ["--set", setting]));
        objects(&self.it.lab.binary, &arguments).await
    }

    /// Applies the objects, starts the replicas at once, and waits until both meshes are injected.
    pub(super) async fn install(&mut self) -> Outcome {
        for config_map in Revision::small("default", "1.30.3", "injectd").config_maps() {
            self.api().create(Some(&self.istio()), &config_map).await?.created()?;
        }
        for mut object in self.objects().await? {
            if object["kind"] == "Service" && object["metadata"]["name"] == *self.it.name {
                // There is no kube-proxy: the cluster's address is where the replicas listen.
                object["spec"]["clusterIP"] = json!(self.ip.to_string());
                object["spec"].as_object_mut().map(|spec| spec.remove("selector"));
            }
            self.api().apply(&object, "helm").await?;
        }
        self.start().await?;
        self.balance();
        eventually("both webhooks take effect", async || self.inject().await).await?;
        expect("CAs that were made", 1, super::certificates::made_cas(self).await?)
    }

    /// The arguments of the Deployment's container, and files in place of its mounts.
    async fn arguments(&self) -> Outcome<Vec<String>> {
        let mut arguments = arguments(&self.objects().await?, &REPLACED)?;
        let linkerd = linkerd_folder();
        arguments.push(format!("--values={}", linkerd.join("values/default.yaml").display()));
        arguments.push(format!("--trust-roots={}", linkerd.join("example-root.crt").display()));
        Ok(arguments)
    }

    /// Starts the replicas at the same time, and waits until all are ready.
    async fn start(&mut self) -> Outcome {
        for index in 0..REPLICAS.len() {
            let replica = self.replica(index).await?;
            self.replicas.push(replica);
        }
        let [one, two, three] = &mut *self.replicas else { return Err(failed("no replicas")) };
        tokio::try_join!(one.start(), two.start(), three.start())?;
        for replica in &self.replicas {
            wait_until_ready(replica.admin).await?;
        }
        Ok(())
    }

    /// A replica that is not started, with a token of the release's `ServiceAccount`.
    async fn replica(&self, index: usize) -> Outcome<Injectd> {
        let (name, seconds) = REPLICAS[index];
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder)?;
        let account = self.release.account();
        let (namespace, server) = (account.namespace, &self.api().server);
        let config = self.api().kubeconfig(namespace, account.name, server).await?;
        let kubeconfig = write_kubeconfig(&folder, &config)?;
        let arguments = self.arguments().await?;
        let mut replica =
            Injectd::serve_managed(&self.it.lab.binary, &folder, self.ip, &arguments)?;
        replica.set_variable("POD_NAMESPACE", namespace);
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
        self.send_to(self.replicas.iter().map(|replica| replica.webhook).collect());
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
        let [linkerd, istio] = [LINKERD_PODS, ISTIO_PODS].map(|name| self.it.name_of(name));
        let pods = [(&*linkerd, pod("stream", &enabled())), (&*istio, plain_pod("stream"))];
        Stream::start(&self.creator, &pods)
    }

    /// Creates these pods for Linkerd, as dry runs, all the time.
    pub(super) fn stream_of(&self, pod: Value) -> Stream {
        Stream::start(&self.creator, &[(&self.it.name_of(LINKERD_PODS), pod)])
    }

    /// [`Installed::stream`], and other callers that verify all certificates that are served.
    pub(super) fn load(&self) -> Load {
        let callers = Callers::start(self.api(), &self.release, &self.endpoints);
        Load::start(self.stream(), callers)
    }

    pub(super) async fn inject(&self) -> Outcome {
        let [linkerd, istio] = [LINKERD_PODS, ISTIO_PODS].map(|name| self.it.name_of(name));
        let linkerd = self.api().dry_run(&linkerd, &pod("tried", &enabled())).await?;
        expect_proxy(&linkerd.created()?)?;
        let istio = self.api().dry_run(&istio, &plain_pod("tried")).await?.created()?;
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

    pub(super) fn secret_path(&self) -> String {
        self.it.path("v1", "Secret", &self.release.certificates())
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
        let secret = self.api().get(&self.secret_path()).await?.ok()?;
        Ok(secret["data"][key].as_str().unwrap_or_default().to_owned())
    }
}
