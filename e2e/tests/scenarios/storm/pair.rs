//! Two replicas with their Service and webhook, and the API server that calls them.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use injectd_harness::{
    api::WEBHOOK_CONFIGURATIONS,
    balancer::Balancer,
    certificates::Ca,
    client::probe,
    component::Component,
    expect::{Outcome, eventually, expect, soon},
    lab::{Lab, service_ip},
    linkerd::{ACCOUNT, make_account},
    objects::{enabled, namespace, plain_pod, service, service_account, webhook_configuration},
    scenario::note,
    sidecar::expect_proxy,
    volume::Files,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::replica::{Mounts, Replica};

const CONTROL_PLANE: &str = "linkerd";
/// Between two probes of a kubelet, and how long it waits for an answer.
const PROBE: Duration = Duration::from_secs(1);
/// From a kubelet's report to the kernel's rules.
const LAG: Duration = Duration::from_millis(500);

/// Two replicas.
pub(super) struct Pair<'a> {
    pub(super) lab: &'a Lab,
    pub(super) api_server: Component,
    pub(super) replicas: Vec<Replica>,
    /// The newest CA is the last.
    pub(super) authorities: Vec<Ca>,
    pub(super) mounts: Mounts,
    pub(super) rotation: Rotation,
    /// The values and the trust roots that are not in use.
    other_values: String,
    other_roots: String,
    policy: &'static str,
    namespace: String,
    witnesses: usize,
    _folder: TempDir,
}

impl<'a> Pair<'a> {
    pub(super) async fn start(lab: &'a Lab, policy: &'static str) -> Outcome<Self> {
        let (folder, ca) = (tempfile::tempdir()?, Ca::new()?);
        let kubeconfig = make_account(&lab.api, CONTROL_PLANE, folder.path()).await?;
        let mounts = Mounts::new(&ca)?;
        let mut replicas = Vec::new();
        for name in ["replica-0", "replica-1"] {
            let folder = folder.path().join(name);
            let mut replica = Replica::new(&lab.binary, &folder, &kubeconfig, &mounts)?;
            let limits = [
                ("INJECTD_MAX_CONNECTIONS", super::MAX_CONNECTIONS),
                ("INJECTD_MAX_REQUESTS", super::MAX_REQUESTS),
            ];
            for (name, limit) in limits {
                replica.injectd.set_variable(name, limit.to_string());
            }
            note(&format!("{name}: ready after {:.2} s", replica.start().await?));
            replicas.push(replica);
        }
        let rotation = Rotation::start(&replicas).await?;
        let line = "outboundConnectTimeout: 1000ms\n";
        Ok(Self {
            lab,
            api_server: Component::beside(&lab.kubeconfig, "kube-apiserver")?,
            replicas,
            other_values: mounts.values.replace(line, &line.replace("1000", "2000")),
            other_roots: format!("{}{}", mounts.roots, ca.pem()),
            authorities: vec![ca],
            mounts,
            rotation,
            policy,
            namespace: format!("storm-{}", policy.to_lowercase()),
            witnesses: 0,
            _folder: folder,
        })
    }

    /// Where pods are created.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Makes the API server call the webhook for the pods of the namespace.
    pub(super) async fn register(&mut self) -> Outcome {
        let addr = self.rotation.balancer.addr;
        let service = service(ACCOUNT, &addr.ip().to_string(), addr.port());
        self.lab.api.create(Some(CONTROL_PLANE), &service).await?.created()?;
        self.make_namespace(&self.namespace).await?;
        self.configure(0).await
    }

    async fn make_namespace(&self, name: &str) -> Outcome {
        let object = namespace(name, &enabled(), &json!({}));
        self.lab.api.create(None, &object).await?.created()?;
        // The controller manager may be faster.
        self.lab.api.create(Some(name), &service_account("default")).await.map(drop)
    }

    /// Writes the webhook's configuration with the CAs from this one on, and waits until the API server
    /// uses it.
    async fn configure(&mut self, first: usize) -> Outcome {
        self.witnesses += 1;
        // Only this version of the configuration injects its pods.
        let witness = format!("witness-{}", self.witnesses);
        self.make_namespace(&witness).await?;
        let bundle: String = self.authorities[first..].iter().map(Ca::pem).collect();
        let port = self.rotation.balancer.addr.port();
        let client =
            json!({"service": {"name": ACCOUNT, "namespace": CONTROL_PLANE, "port": port}});
        let mut wanted = webhook_configuration(ACCOUNT, client, &bundle, &json!({}));
        let webhook = &mut wanted["webhooks"][0];
        let names = json!([self.namespace, witness]);
        let selector =
            json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": names});
        webhook["namespaceSelector"] = json!({"matchExpressions": [selector]});
        webhook["failurePolicy"] = json!(self.policy);
        let path = format!("{WEBHOOK_CONFIGURATIONS}/{ACCOUNT}");
        let api = &self.lab.api;
        if api.get(&path).await?.status == 404 {
            api.create(None, &wanted).await?.created()?;
        } else {
            api.update(&path, |configuration| {
                configuration["webhooks"] = wanted["webhooks"].take();
            })
            .await?;
        }
        let what = "the configuration of the webhook takes effect";
        eventually(what, async || self.expect_injected(&witness).await.map(drop)).await
    }

    /// The pod that the API server would create.
    pub(super) async fn expect_injected(&self, namespace: &str) -> Outcome<Value> {
        let made = self.lab.api.dry_run(namespace, &plain_pod("tried")).await?.created()?;
        expect_proxy(&made)?;
        Ok(made)
    }

    /// Swaps a mount of one replica after the other, as kubelets do, and waits for both.
    async fn rewrite(&mut self, volume: &str, content: &Files) -> Outcome {
        for replica in &mut self.replicas {
            replica.rewrite(volume, content).await?;
        }
        Ok(())
    }

    pub(super) async fn change_values(&mut self) -> Outcome {
        std::mem::swap(&mut self.mounts.values, &mut self.other_values);
        self.rewrite("config", &self.mounts.config()).await
    }

    pub(super) async fn change_roots(&mut self) -> Outcome {
        std::mem::swap(&mut self.mounts.roots, &mut self.other_roots);
        self.rewrite("roots", &self.mounts.bundle()).await
    }

    /// The API server trusts both CAs before the first replica has the new certificate.
    pub(super) async fn rotate_certificate(&mut self) -> Outcome {
        self.authorities.push(Ca::new()?);
        let newest = self.authorities.len() - 1;
        self.configure(newest - 1).await?;
        self.mounts.certificate = Mounts::new(&self.authorities[newest])?.certificate;
        self.rewrite("tls", &self.mounts.certificate.files()).await?;
        self.configure(newest).await
    }

    pub(super) fn newest_ca(&self) -> &Ca {
        &self.authorities[self.authorities.len() - 1]
    }

    pub(super) async fn wait_for_api_server(&self) -> Outcome {
        eventually("/readyz", async || self.lab.api.get("/readyz").await?.ok().map(drop)).await
    }
}

/// A stand-in for kube-proxy: new connections to the Service go to ready replicas in turn.
///
/// It probes as a kubelet does. A change takes effect a little later, as with endpoints. Open
/// connections stay where they are.
pub(super) struct Rotation {
    pub(super) balancer: Arc<Balancer>,
    ready: Arc<Mutex<Vec<bool>>>,
    _probes: JoinSet<()>,
}

impl Rotation {
    async fn start(replicas: &[Replica]) -> Outcome<Self> {
        let it = Self {
            balancer: Arc::new(Balancer::new(service_ip()?).await?),
            ready: Arc::new(Mutex::new(vec![false; replicas.len()])),
            _probes: JoinSet::new(),
        };
        let webhooks: Vec<_> = replicas.iter().map(|replica| replica.injectd.webhook).collect();
        let mut probes = JoinSet::new();
        for (index, replica) in replicas.iter().enumerate() {
            let (balancer, ready) = (Arc::clone(&it.balancer), Arc::clone(&it.ready));
            let (admin, webhooks) = (replica.injectd.admin, webhooks.clone());
            probes.spawn(async move {
                loop {
                    let answer = timeout(PROBE, probe(admin, "/ready")).await;
                    let is_ready = matches!(answer, Ok(Ok((200, _))));
                    sleep(LAG).await;
                    {
                        let mut all = ready.lock().unwrap_or_else(PoisonError::into_inner);
                        if all[index] != is_ready {
                            all[index] = is_ready;
                            balancer.set(endpoints(&webhooks, &all));
                        }
                    }
                    sleep(PROBE.saturating_sub(LAG)).await;
                }
            });
        }
        let it = Self { _probes: probes, ..it };
        for index in 0..replicas.len() {
            it.wait_for(index, true).await?;
        }
        Ok(it)
    }

    /// Waits until a replica is in rotation, or out of it.
    pub(super) async fn wait_for(&self, index: usize, is_in: bool) -> Outcome {
        soon("the rotation of the replicas", async || {
            let all = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            expect(format!("whether replica {index} is in"), is_in, all[index])
        })
        .await
    }
}

fn endpoints(webhooks: &[SocketAddr], ready: &[bool]) -> Vec<SocketAddr> {
    let all = webhooks.iter().zip(ready);
    all.filter(|(_, is_ready)| **is_ready).map(|(webhook, _)| *webhook).collect()
}
