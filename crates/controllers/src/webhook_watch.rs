//! Notices that a webhook configuration of this process is gone, or selects other pods than before:
//! new pods get no sidecar then, and no review shows it.
//!
//! Every replica watches, logs and sets the gauges; replicas share an event. What a configuration is
//! compared with, and when a change is reported, is pure (`selection.rs`, `state.rs`).
//!
//! Not for the `caBundle`, which `certificates.rs` repairs, and not for which pods lack a sidecar, which
//! the audit finds.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use futures_util::{FutureExt as _, future::join_all};
use injectd_cluster::{
    EventQueue, Events, Service, about,
    watch::{KindMetrics, Update, WatchFailure, Watched, follow},
};
use injectd_telemetry::metrics::{Registry, WatchMetrics};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::{Api, Client, ResourceExt as _};
use tokio::{sync::mpsc, time::sleep_until};
use tracing::{info, warn};

mod selection;
mod state;

pub use selection::SELECTORS_ANNOTATION;
use state::{Configuration, Report};

/// Changes that wait to be read.
// While it is full the watches wait: nothing is lost.
const QUEUE: usize = 16;
/// Configurations in a page of a list.
// Each entry of a configuration has a CA bundle of some KiB.
const PAGE: u32 = 50;
/// Maximum number of configurations that are watched by their Service: each is a label of two gauges.
const MAX_CONFIGURATIONS: usize = 64;

/// What is watched.
#[derive(Debug, Clone)]
pub struct Options {
    /// Namespace of the Service, and of the events.
    pub namespace: String,
    /// The Service that the API server calls.
    pub service: String,
    /// Names of the configurations; `None` for all those that lead to the Service when they are seen.
    pub configurations: Option<Vec<String>>,
    /// The configuration of templates whose entries a leader of injectd writes: what they select may change.
    pub managed: Option<String>,
}

/// Watches the webhook configurations of this process.
pub struct WebhookWatch {
    client: Client,
    service: Service,
    names: Option<Vec<String>>,
    managed: Option<String>,
    configurations: BTreeMap<String, Configuration>,
    registry: Arc<Registry>,
    events: EventQueue,
    /// The last failure of a watch, to log it once.
    failure: Option<WatchFailure>,
}

/// A change that a watch found; the name of the only configuration that it watches.
struct Found(Option<String>, Update<MutatingWebhookConfiguration>);

impl WebhookWatch {
    /// A watch, and the task that writes its events.
    pub fn new(
        client: Client,
        options: Options,
        registry: Arc<Registry>,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let Options { namespace, service, configurations, managed } = options;
        let object = about("v1", "Service", &namespace, &service, None);
        let (events, written) = EventQueue::shared(Events::new(client.clone()), object);
        let service = Service { namespace, name: service };
        let known = configurations.iter().flatten();
        let known = known.map(|name| (name.clone(), Configuration::default())).collect();
        let watch = Self {
            client,
            service,
            names: configurations,
            managed,
            configurations: known,
            registry,
            events,
            failure: None,
        };
        (watch, written)
    }

    /// Runs until `shutdown` ends.
    pub async fn run(mut self, watches: WatchMetrics, shutdown: impl Future<Output = ()>) {
        let (sender, mut found) = mpsc::channel(QUEUE);
        let watch = self.watch(&KindMetrics::new(watches), &sender);
        drop(sender);
        let keep = async {
            loop {
                let due = self.configurations.values().filter_map(Configuration::due).min();
                // Without a change that waits, only the watch wakes this task.
                let due = due.map(|at| sleep_until(at.into()).left_future());
                let due = due.unwrap_or_else(|| std::future::pending().right_future());
                tokio::select! {
                    change = found.recv() => match change {
                        Some(Found(name, update)) => self.see(name, update),
                        None => return,
                    },
                    () = due => {}
                }
                self.report();
            }
        };
        tokio::select! {
            () = shutdown => {}
            () = watch => {}
            () = keep => {}
        }
    }

    fn watch(
        &self,
        metrics: &KindMetrics,
        sender: &mpsc::Sender<Found>,
    ) -> impl Future<Output = ()> + use<> {
        let one = |name: &String| Watched {
            name: Some(name.clone()),
            page_size: 1,
            ..Watched::default()
        };
        let all = || vec![Watched { page_size: PAGE, ..Watched::default() }];
        let watched = self.names.as_ref().map_or_else(all, |names| names.iter().map(one).collect());
        let follow = |of: Watched| {
            let name = of.name.clone();
            let change = move |update| Found(name.clone(), update);
            follow(Api::all(self.client.clone()), of, metrics.clone(), sender.clone(), change)
        };
        let followed = join_all(watched.into_iter().map(follow));
        async move {
            followed.await;
        }
    }

    /// Applies a change.
    fn see(&mut self, watched: Option<String>, update: Update<MutatingWebhookConfiguration>) {
        match update {
            Update::Listed(list) => {
                self.failure = None;
                let of_service = self.configurations.keys().cloned();
                let mut gone: Vec<_> = match watched {
                    Some(name) => vec![name],
                    None => of_service.collect(),
                };
                gone.retain(|name| {
                    list.iter().all(|configuration| configuration.name_any() != *name)
                });
                for name in gone {
                    self.set(&name, None);
                }
                for it in list {
                    self.set(&it.name_any(), Some(&it));
                }
            }
            Update::Applied(it) => self.set(&it.name_any(), Some(&it)),
            Update::Deleted(it) => self.set(&it.name_any(), None),
            Update::Failed(failure) => self.failed(failure),
        }
    }

    /// Takes note of a configuration as it is now; `None` if it does not exist.
    fn set(&mut self, name: &str, found: Option<&MutatingWebhookConfiguration>) {
        let is_managed = self.managed.as_deref() == Some(name);
        let found = found.map(|found| selection::of(found, &self.service, is_managed));
        if !self.configurations.contains_key(name) {
            // Of all configurations of the cluster, those count that lead to the Service.
            let leads = found.as_ref().is_some_and(|seen| !seen.webhooks.is_empty());
            if !leads || self.configurations.len() >= MAX_CONFIGURATIONS {
                return;
            }
        }
        let configuration = self.configurations.entry(name.to_owned()).or_default();
        configuration.see(found, Instant::now());
        let is_there = configuration.is_there();
        let is_changed = configuration.is_changed();
        let set = |metric, is_set: bool| {
            self.registry.set(metric, &[("name", name.to_owned())], f64::from(u8::from(is_set)));
        };
        set("injectd_webhook_configurations", is_there);
        set("injectd_webhook_selectors_changed", is_changed);
    }

    fn failed(&mut self, failure: WatchFailure) {
        if self.failure.as_ref().is_some_and(|known| known.is_like(&failure)) {
            return;
        }
        let error = match &failure {
            WatchFailure::Unknown => "the API server does not know the kind",
            WatchFailure::Forbidden(text) | WatchFailure::Other(text) => text,
        };
        warn!(error, "cannot watch the webhook configurations: a deletion would not be noticed");
        self.failure = Some(failure);
    }

    /// Logs and records what is due.
    fn report(&mut self) {
        let now = Instant::now();
        for (name, configuration) in &mut self.configurations {
            let Some(Report { is_problem, reason, text }) = configuration.report(now) else {
                continue;
            };
            let message = format!("the MutatingWebhookConfiguration {name} {text}");
            if is_problem {
                warn!("{message}");
            } else {
                info!("{message}");
            }
            self.events.add(is_problem, reason, message);
        }
    }
}

impl std::fmt::Debug for WebhookWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookWatch").field("service", &self.service).finish_non_exhaustive()
    }
}
