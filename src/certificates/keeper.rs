//! The task of one replica: it watches Secret and webhooks, chooses the certificate that is served,
//! and writes while it holds the Lease.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout},
};
use tracing::{info, warn};

use super::{
    authority::{Leaf, Lifetimes, service_names},
    metrics::{CertificateMetrics, Stage},
    plan::{self, Change, Observed, Step},
    report::Reporter,
    serving::{Choice, Trusted, choose},
    state::State,
    view::{self, Found, Service, View},
};
use crate::{
    causes::with_causes,
    cluster::{
        Events,
        lease::{Elector, LeaseOptions, Term},
        watch::{KindMetrics, WatchFailure, Watched, follow},
    },
    metrics::WatchMetrics,
    readiness::Hold,
};

/// Field manager of the writes.
const FIELD_MANAGER: &str = "injectd";
/// Time after which a failed write is tried again, and the longest time between two looks.
const RETRY: Duration = Duration::from_secs(2);
const MAX_WAIT: Duration = Duration::from_mins(1);
/// How long the API server may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Changes that wait to be read.
const QUEUE: usize = 16;

/// What a keeper manages.
#[derive(Debug, Clone)]
pub struct Options {
    /// Namespace of the Service, of the Secret and of the Lease.
    pub namespace: String,
    /// The Service that the API server calls.
    pub service: String,
    /// The Secret.
    pub secret: String,
    /// Webhook configurations whose entries may lead to the Service.
    pub configurations: Vec<String>,
    /// Lifetimes of new certificates.
    pub lifetimes: Lifetimes,
    /// The Lease that the writer holds.
    pub lease: LeaseOptions,
}

/// Manages the certificates of a Service, in one of its replicas.
pub struct Keeper {
    client: Client,
    options: Options,
    names: Vec<String>,
    service: Service,
    metrics: CertificateMetrics,
    reporter: Reporter,
    view: View,
    trusted: Trusted,
    /// The last usable state of the Secret.
    memory: Option<State>,
    served: watch::Sender<Option<Arc<Leaf>>>,
    /// Keeps the process unready until a certificate is served.
    hold: Option<Hold>,
    /// Configurations of which a `caBundle` does not verify the served certificate, and since when.
    overwritten: BTreeMap<String, Instant>,
    /// When the webhooks may be written again, after that was forbidden.
    publish_again: Instant,
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("the API server rejected the request")]
    Api(#[from] kube::Error),
    #[error("the API server does not answer")]
    Timeout,
    #[error("a certificate cannot be made")]
    Make(#[from] rcgen::Error),
}

impl Keeper {
    /// A keeper, and the certificate that it serves. It drops `hold` once there is one.
    #[must_use]
    pub fn new(
        client: Client,
        options: Options,
        metrics: CertificateMetrics,
        hold: Hold,
    ) -> (Self, watch::Receiver<Option<Arc<Leaf>>>) {
        let (served, receiver) = watch::channel(None);
        let service =
            Service { namespace: options.namespace.clone(), name: options.service.clone() };
        let keeper = Self {
            names: service_names(&options.service, &options.namespace),
            reporter: Reporter::new(Events::new(client.clone()), &service, &options.secret),
            view: View::new(&options.configurations),
            service,
            metrics,
            trusted: Trusted::default(),
            memory: None,
            served,
            hold: Some(hold),
            overwritten: BTreeMap::new(),
            publish_again: Instant::now(),
            client,
            options,
        };
        (keeper, receiver)
    }

    /// Runs until `shutdown` ends; then gives its Lease away.
    pub async fn run(mut self, watches: WatchMetrics, shutdown: impl Future<Output = ()>) {
        let (sender, mut found) = mpsc::channel(QUEUE);
        let mut elector = Elector::new(self.client.clone(), self.options.lease.clone());
        let term = elector.term();
        let watch = self.watch(&KindMetrics::new(watches), &sender);
        drop(sender);
        tokio::pin!(shutdown);
        tokio::select! {
            () = &mut shutdown => {}
            () = watch => {}
            () = elect(&mut elector) => {}
            () = self.keep(&mut found, &term) => {}
        }
        self.metrics.leads(false);
        elector.release().await;
    }

    fn watch(
        &self,
        metrics: &KindMetrics,
        sender: &mpsc::Sender<Found>,
    ) -> impl Future<Output = ()> + use<> {
        let named = |name: &str| Watched { name: Some(name.to_owned()), page_size: 1 };
        let (secrets, webhooks) = (self.secrets(), self.webhooks());
        let secret = follow(
            secrets,
            named(&self.options.secret),
            metrics.clone(),
            sender.clone(),
            Found::Secret,
        );
        let configurations = self.options.configurations.iter().map(|name| {
            let of = name.clone();
            let change = move |update| Found::Webhooks(of.clone(), update);
            follow(webhooks.clone(), named(name), metrics.clone(), sender.clone(), change)
        });
        let configurations: Vec<_> = configurations.collect();
        async move {
            let all = futures_util::future::join_all(configurations);
            futures_util::future::join(secret, all).await;
        }
    }

    async fn keep(&mut self, found: &mut mpsc::Receiver<Found>, term: &Term) {
        let mut led = false;
        loop {
            let leads = term.is_current();
            if leads != led {
                led = leads;
                self.metrics.leads(leads);
                info!("{} the certificates", if leads { "manages" } else { "no longer manages" });
            }
            let mut wake = Instant::now() + MAX_WAIT;
            if self.view.is_complete() {
                if let Some(at) = self.serve() {
                    wake = wake.min(at);
                }
                if leads {
                    match self.act(term).await {
                        Ok(true) => continue,
                        Ok(false) => wake = wake.min(self.due()),
                        Err(()) => wake = wake.min(Instant::now() + RETRY),
                    }
                }
            }
            if !leads {
                // The Lease may be acquired without any change.
                wake = wake.min(Instant::now() + RETRY);
            }
            tokio::select! {
                change = found.recv() => match change {
                    Some(change) => self.see(change).await,
                    None => return,
                },
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Applies a change, and remembers since when a `caBundle` is wrong.
    async fn see(&mut self, change: Found) {
        let failure = self.view.apply(change, &self.names, &self.service);
        if let Some((what, failure)) = failure {
            let error = match failure {
                WatchFailure::Unknown => "the API server does not know the kind".to_owned(),
                WatchFailure::Forbidden(text) | WatchFailure::Other(text) => text,
            };
            self.reporter.failed(&format!("read {what}"), error).await;
        }
        if let Some(Ok(state)) = self.view.secret() {
            let earlier = self.memory.take();
            self.memory = Some(state.clone().remembering(earlier, unix_now()));
        }
        if !self.view.is_complete() {
            return;
        }
        let entries = self.view.entries();
        self.trusted.update(&entries, Instant::now().into_std());
        let Some(leaf) = self.served.borrow().clone() else { return };
        let wrong = entries.iter().filter(|it| !verifies(&it.ca_bundle, &leaf, &self.names));
        let wrong: BTreeSet<_> = wrong.map(|entry| entry.configuration.clone()).collect();
        self.overwritten.retain(|name, _| wrong.contains(name));
        for name in wrong {
            self.overwritten.entry(name).or_insert_with(Instant::now);
        }
    }

    /// Serves the certificate of the Secret if it is time. Returns when to look again.
    fn serve(&mut self) -> Option<Instant> {
        let Some(Ok(state)) = self.view.secret() else { return None };
        let served = self.served.borrow().clone();
        if served.as_deref() == Some(&state.leaf) {
            return None;
        }
        let now = (unix_now(), Instant::now().into_std());
        let since = self.view.secret_since.into_std();
        match choose(served.as_deref(), state, since, &self.trusted, now) {
            Choice::Now => {
                info!(expires = state.leaf.certificate.ends(), "serves the Secret's certificate");
                self.served.send_replace(Some(Arc::new(state.leaf.clone())));
                self.hold = None;
                None
            }
            Choice::At(at) => Some(at.into()),
            Choice::No => None,
        }
    }

    /// The time of the next renewal, by the clock of the process.
    fn due(&self) -> Instant {
        let due = self.memory.as_ref().map(|state| plan::due(state, self.options.lifetimes));
        let wait = due.map_or(0, |due| due - unix_now());
        Instant::now() + Duration::from_secs(u64::try_from(wait).unwrap_or_default().max(1))
    }

    /// Writes what is due, at most one object. Returns whether it wrote.
    async fn act(&mut self, term: &Term) -> Result<bool, ()> {
        let entries = self.view.entries();
        // What the watches found may be old, and costs nothing.
        match self.next(self.view.secret(), &entries) {
            Ok(None) => return Ok(false),
            Ok(Some(_)) => {}
            Err(error) => return self.failed("make a certificate", &error).await,
        }
        if let Err(error) = self.read_webhooks().await {
            return self.failed("read the webhook configurations", &error).await;
        }
        let read = match in_time(self.secrets().get_opt(&self.options.secret)).await {
            Ok(read) => read,
            Err(error) => return self.failed("read the Secret", &error).await,
        };
        self.view.set_secret(read.as_ref().map(|secret| view::decode(secret, &self.names)));
        let step = match self.next(self.view.secret(), &self.view.entries()) {
            Ok(Some(step)) => step,
            Ok(None) => return Ok(false),
            Err(error) => return self.failed("make a certificate", &error).await,
        };
        if !term.is_current() {
            return Ok(false);
        }
        match step {
            Step::Secret(state, changes) => self.write_secret(read, *state, &changes).await,
            Step::Bundles { configuration, bundles } => {
                self.write_bundles(&configuration, &bundles).await
            }
        }
    }

    fn next(
        &self,
        secret: Option<Result<&State, &super::state::InvalidSecret>>,
        entries: &[plan::Entry],
    ) -> Result<Option<Step>, rcgen::Error> {
        let can_publish = self.view.sees_webhooks() && self.publish_again <= Instant::now();
        let memory = self.memory.as_ref();
        let observed = Observed { secret, entries, memory, can_publish };
        plan::next(&observed, &self.names, unix_now(), self.options.lifetimes)
    }

    /// Reads the configurations that can be read.
    async fn read_webhooks(&mut self) -> Result<(), WriteError> {
        if !self.view.sees_webhooks() {
            return Ok(());
        }
        for name in self.options.configurations.clone() {
            let found = in_time(self.webhooks().get_opt(&name)).await?;
            let entries = found.map(|found| view::entries(&found, &self.service));
            self.view.set_entries(&name, entries.unwrap_or_default());
        }
        Ok(())
    }

    async fn write_secret(
        &mut self,
        read: Option<Secret>,
        state: State,
        changes: &[Change],
    ) -> Result<bool, ()> {
        let is_created = read.is_none();
        let mut secret = read.unwrap_or_default();
        let mut data = view::data(&secret);
        state.encode(&mut data);
        secret.data = Some(data.into_iter().map(|(key, value)| (key, ByteString(value))).collect());
        let name = &self.options.secret;
        let written = if is_created {
            // An apply, since a role may allow to create this name only. Not forced: a Secret that
            // another replica created in the meantime stays.
            secret.metadata.name = Some(name.clone());
            let params = PatchParams::apply(FIELD_MANAGER);
            in_time(self.secrets().patch(name, &params, &Patch::Apply(&secret))).await
        } else {
            let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), dry_run: false };
            in_time(self.secrets().replace(name, &params, &secret)).await
        };
        let is_ok = written.is_ok();
        for stage in changes.iter().filter_map(|change| Stage::of(*change)) {
            self.metrics.done(stage, is_ok);
        }
        match written {
            Ok(_) => {
                self.metrics.done(Stage::WriteSecret, true);
                self.view.set_secret(Some(Ok(state.clone())));
                self.memory = Some(state);
                self.reporter.wrote_secret(changes).await;
                Ok(true)
            }
            Err(error) if error.is_conflict() => Err(()),
            Err(error) => {
                self.metrics.done(Stage::WriteSecret, false);
                self.failed(&format!("write the Secret {name}"), &error).await
            }
        }
    }

    /// Writes the `caBundle` of entries, unless the configuration has changed since it was read.
    async fn write_bundles(
        &mut self,
        configuration: &str,
        bundles: &[(usize, String)],
    ) -> Result<bool, ()> {
        let api = self.webhooks();
        let found = match in_time(api.get_opt(configuration)).await {
            Ok(Some(found)) => found,
            Ok(None) => return Err(()),
            Err(error) => return self.failed("read the webhook configurations", &error).await,
        };
        let now = view::entries(&found, &self.service);
        let before = self.view.entries();
        let before: Vec<_> =
            before.into_iter().filter(|it| it.configuration == configuration).collect();
        if now != before {
            // It has changed since the Secret was read.
            self.view.set_entries(configuration, now);
            return Err(());
        }
        let had_bundle = now.iter().any(|entry| !entry.ca_bundle.is_empty());
        let since = self.overwritten.get(configuration).copied();
        let manager = since.filter(|_| had_bundle).map(|_| last_manager(&found));
        let version = found.metadata.resource_version.clone().unwrap_or_default();
        let mut patch =
            vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
        patch.extend(bundles.iter().map(|(index, bundle)| {
            let at = format!("/webhooks/{index}/clientConfig/caBundle");
            json!({"op": "add", "path": at, "value": ByteString(bundle.clone().into_bytes())})
        }));
        let patch = serde_json::from_value(json!(patch)).unwrap_or_default();
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let patched = in_time(api.patch(configuration, &params, &Patch::Json::<()>(patch))).await;
        match patched {
            Ok(patched) => {
                self.metrics.done(Stage::WriteCaBundle, true);
                self.view.set_entries(configuration, view::entries(&patched, &self.service));
                self.trusted.update(&self.view.entries(), Instant::now().into_std());
                self.reporter.wrote_bundle(configuration, manager.as_deref()).await;
                if let Some(since) = self.overwritten.remove(configuration) {
                    self.metrics.repaired(since.elapsed());
                }
                Ok(true)
            }
            Err(error) if error.is_conflict() => Err(()),
            Err(error) => {
                self.metrics.done(Stage::WriteCaBundle, false);
                self.publish_again = Instant::now() + MAX_WAIT;
                let what = format!("write the MutatingWebhookConfiguration {configuration}");
                self.failed(&what, &error).await
            }
        }
    }

    async fn failed(
        &mut self,
        what: &str,
        error: &(dyn std::error::Error + Sync),
    ) -> Result<bool, ()> {
        self.reporter.failed(what, with_causes(error)).await;
        Err(())
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.options.namespace)
    }

    fn webhooks(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }
}

impl WriteError {
    /// Whether the object has changed since it was read.
    fn is_conflict(&self) -> bool {
        let Self::Api(kube::Error::Api(status)) = self else { return false };
        // The test of a JSON Patch failed.
        let is_test = status.code == 422 && status.message.contains("resourceVersion");
        status.code == 409 || is_test
    }
}

/// Holds the Lease whenever it can.
async fn elect(elector: &mut Elector) {
    loop {
        elector.acquire().await;
        elector.keep().await;
        warn!("lost the Lease of the certificates");
    }
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, WriteError> {
    match timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(WriteError::Timeout),
    }
}

/// Whether an API server with this `caBundle` accepts the certificate.
fn verifies(ca_bundle: &[u8], leaf: &Leaf, names: &[String]) -> bool {
    let cas = super::authority::Certificate::of_pem(ca_bundle);
    let cas: Vec<_> = cas.iter().collect();
    names.iter().all(|name| super::state::verify(&cas, leaf, name).is_ok())
}

/// Who wrote an object last.
fn last_manager(found: &MutatingWebhookConfiguration) -> String {
    let managers = found.metadata.managed_fields.iter().flatten();
    let last = managers.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    last.and_then(|entry| entry.manager.clone()).unwrap_or_else(|| "another client".to_owned())
}

fn unix_now() -> i64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("options", &self.options).finish_non_exhaustive()
    }
}
