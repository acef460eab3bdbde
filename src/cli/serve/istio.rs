//! Istio's revisions: from files, or from the `ConfigMap`s of a cluster.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use injectd_cluster::{
    sources::Sources,
    watch::{KindMetrics, Watched, follow},
};
use injectd_command::{CommandError, config::Purpose};
use injectd_profiles::{
    DEFAULT_REVISION, Revisions,
    control_plane::{Change, ControlPlane, Note},
};
use injectd_telemetry::{
    metrics::{ReloadMetrics, WatchMetrics},
    readiness::Hold,
};
use kube::{Api, Client};
use tokio::{
    sync::{mpsc, watch},
    task::spawn_blocking,
    time::{Instant, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use super::{process::Process, reporter::Reporter};
use crate::{mesh::Mesh as _, reload::Files};

/// Time from the first news of the cluster until they are put to use, together with those that come
/// in the meantime. Upstream's.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// News that wait until the previous ones are in use; then the watches wait.
// The watches read on while milliseconds of work are done for the news before. A bound is needed:
// the changes of thousands of nodes must not fill the memory.
const MAX_CHANGES: usize = 256;
/// Objects in a page of a list. A `ConfigMap` has up to 1 MiB, a Node some 20 KiB.
// A page of each kind stays within some MiB, which the memory of a small pod can spare while it
// lists.
const CONFIG_MAPS_PAGE: u32 = 10;
const NODES_PAGE: u32 = 100;
const PROXY_CONFIGS_PAGE: u32 = 100;

/// The revisions of Istio, and whether they were loaded once.
pub(super) struct Served {
    pub(super) revisions: Arc<Revisions>,
    /// Becomes true.
    pub(super) is_loaded: watch::Receiver<bool>,
}

impl Process {
    /// Istio without a cluster: one revision, which reloads when its files change.
    pub(super) fn standalone_istio(&self) -> Result<Served, CommandError> {
        let config = &self.args.config;
        let files = Files::new(config.istio_files());
        let revision = named(config.revision()?);
        let injector = Arc::new(config.istio_injector(Purpose::Serve)?);
        self.reporter.report_istio(&revision, &injector.mesh());
        let revisions = Revisions::new([(revision.clone(), Arc::clone(&injector))]);
        let (args, reporter) = (Arc::clone(&self.args), self.reporter.clone());
        self.follow_config(self.istio_files_name(), files, move || {
            let generation = injector.mesh().configuration().generation + 1;
            injector.replace_mesh(args.config.istio(generation, Purpose::Serve)?);
            reporter.report_istio(&revision, &injector.mesh());
            Ok(())
        })?;
        let (_, is_loaded) = watch::channel(true);
        Ok(Served { revisions: Arc::new(revisions), is_loaded })
    }

    /// The value of the label `what` for Istio's files; Linkerd's are `config`.
    fn istio_files_name(&self) -> &'static str {
        if self.args.config.is_linkerd() { "istio" } else { "config" }
    }

    /// Istio in a cluster. The process becomes ready once its revisions are loaded.
    pub(super) fn cluster_istio(
        &self,
        client: &Client,
        sources: Sources,
    ) -> Result<Served, CommandError> {
        let config = &self.args.config;
        let mut settings = config.istio_settings(self.args.istio_namespace())?;
        let (sender, changes) = mpsc::channel(MAX_CHANGES);
        let has_files = config.has_istio_files()?;
        if has_files {
            let revision = named(config.revision()?);
            settings.named = Some([revision.clone()].into());
            self.follow_istio_files(revision, sender.clone())?;
        }
        let revisions = Arc::new(Revisions::default());
        let watched = self.watches(client, &settings.namespace, sender);
        let (loaded, is_loaded) = watch::channel(false);
        let mut state = ControlPlane::new(settings, sources, Arc::clone(&revisions));
        if has_files {
            state.watch_no_maps();
        }
        let follower = Follower {
            reporter: self.reporter.clone(),
            reloads: (!has_files).then(BTreeMap::new),
            watches: watched,
            nodes: None,
            unready: Some(self.readiness.hold()),
            waits_for: None,
            loaded,
        };
        info!("waiting for Istio's configuration");
        tokio::spawn(follower.run(state, changes));
        Ok(Served { revisions, is_loaded })
    }

    /// Reads files that replace the `ConfigMap`s of a revision now and when they change.
    fn follow_istio_files(
        &self,
        revision: String,
        sender: mpsc::Sender<Change>,
    ) -> Result<(), CommandError> {
        let files = Files::new(self.args.config.istio_files());
        let read = self.args.config.read_istio(Purpose::Serve)?;
        // The channel is new.
        drop(sender.try_send(Change::Files(revision.clone(), Box::new(read))));
        let args = Arc::clone(&self.args);
        self.follow_config(self.istio_files_name(), files, move || {
            let read = args.config.read_istio(Purpose::Serve)?;
            // The receiver is gone only when the process ends.
            drop(sender.blocking_send(Change::Files(revision.clone(), Box::new(read))));
            Ok(())
        })
    }

    fn watches(&self, client: &Client, namespace: &str, sender: mpsc::Sender<Change>) -> Watches {
        let metrics =
            |kind| KindMetrics::new(WatchMetrics::register(&self.reporter.registry, kind));
        Watches {
            client: client.clone(),
            namespace: namespace.to_owned(),
            sender,
            metrics: ["config_maps", "nodes", "proxy_configs"].map(metrics),
        }
    }
}

/// The name of a revision in paths.
fn named(revision: String) -> String {
    if revision.is_empty() { DEFAULT_REVISION.to_owned() } else { revision }
}

/// Starts watches.
struct Watches {
    client: Client,
    namespace: String,
    sender: mpsc::Sender<Change>,
    /// Of `ConfigMap`s, Nodes and `ProxyConfig`s.
    metrics: [KindMetrics; 3],
}

type Watch = AbortOnDropHandle<()>;

impl Watches {
    fn config_maps(&self, name: Option<String>) -> Watch {
        let api = Api::namespaced(self.client.clone(), &self.namespace);
        let watched =
            Watched { name: name.clone(), page_size: CONFIG_MAPS_PAGE, ..Watched::default() };
        let change = move |update| Change::ConfigMaps(name.clone(), update);
        let [metrics, ..] = self.metrics.clone();
        spawn(follow(api, watched, metrics, self.sender.clone(), change))
    }

    fn nodes(&self) -> Watch {
        let api = Api::all(self.client.clone());
        let watched = Watched { page_size: NODES_PAGE, ..Watched::default() };
        let [_, metrics, _] = self.metrics.clone();
        spawn(follow(api, watched, metrics, self.sender.clone(), Change::Nodes))
    }

    fn proxy_configs(&self) -> Watch {
        let api = Api::all(self.client.clone());
        let watched = Watched { page_size: PROXY_CONFIGS_PAGE, ..Watched::default() };
        let [.., metrics] = self.metrics.clone();
        spawn(follow(api, watched, metrics, self.sender.clone(), Change::ProxyConfigs))
    }
}

fn spawn(watch: impl Future<Output = ()> + Send + 'static) -> Watch {
    AbortOnDropHandle::new(tokio::spawn(watch))
}

/// Puts the news to use on a thread of its own: reading a configuration takes milliseconds, for which
/// reviews must not wait. A panic is a bug, and must not end the watches.
async fn settle(mut state: ControlPlane) -> ControlPlane {
    if !state.has_news() {
        return state;
    }
    let settled = spawn_blocking(move || {
        if catch_unwind(AssertUnwindSafe(|| state.settle())).is_err() {
            error!("Istio's configuration was not updated because of a bug in injectd");
        }
        state
    });
    settled.await.expect("panics must be caught")
}

/// Puts the news of a cluster to use, and reports them.
struct Follower {
    reporter: Reporter,
    /// By revision; `None` if its configuration is in files, whose reloads are counted elsewhere.
    reloads: Option<BTreeMap<String, ReloadMetrics>>,
    watches: Watches,
    /// Runs while nodes decide about native sidecars.
    nodes: Option<Watch>,
    /// Until the revisions are loaded.
    unready: Option<Hold>,
    /// Why they are not.
    waits_for: Option<String>,
    loaded: watch::Sender<bool>,
}

impl Follower {
    /// Runs until the process ends.
    async fn run(mut self, mut state: ControlPlane, mut changes: mpsc::Receiver<Change>) {
        let maps = state.watched_maps();
        let _maps: Vec<_> = maps.into_iter().map(|name| self.watches.config_maps(name)).collect();
        let _proxy_configs = self.watches.proxy_configs();
        self.report(&mut state);
        loop {
            let Some(change) = changes.recv().await else { return };
            state.apply(change);
            // From the first of the news: counted from the last one, news that never pause would
            // never be put to use.
            let until = Instant::now() + DEBOUNCE;
            while let Ok(Some(change)) = timeout_at(until, changes.recv()).await {
                state.apply(change);
            }
            state = settle(state).await;
            self.watch_nodes(&mut state);
            self.report(&mut state);
        }
    }

    fn watch_nodes(&mut self, state: &mut ControlPlane) {
        match (state.asks_nodes(), &self.nodes) {
            (true, None) => self.nodes = Some(self.watches.nodes()),
            (false, Some(_)) => {
                // Ends the watch: the nodes of a large cluster change all the time, and nothing
                // reads them now.
                self.nodes = None;
                state.forget_nodes();
            }
            _ => {}
        }
    }

    fn report(&mut self, state: &mut ControlPlane) {
        for note in state.take_notes() {
            self.report_note(note);
        }
        for (metrics, count) in self.watches.metrics.iter().zip(state.counts()) {
            metrics.keep(count);
        }
        if self.unready.is_none() {
            return;
        }
        let waits_for = state.waits_for();
        if waits_for == self.waits_for && waits_for.is_some() {
            return;
        }
        self.waits_for.clone_from(&waits_for);
        self.reporter.report_waiting(waits_for.as_deref());
        if waits_for.is_none() {
            info!("Istio's configuration is loaded");
            self.unready = None;
            self.loaded.send_replace(true);
        }
    }

    fn report_note(&mut self, note: Note) {
        match note {
            Note::Warning(text) => warn!("{text}"),
            Note::Removed { revision } => {
                if let Some(reloads) = &mut self.reloads {
                    // Without this the alert on a rejected configuration would outlive its
                    // revision.
                    reloads.remove(&revision).inspect(|metrics| metrics.is_rejected.set(0));
                }
                self.reporter.report_removed(&revision);
            }
            Note::Applied { revision, mesh } => {
                // The first configuration is a load and not a reload.
                let is_first = mesh.configuration().generation == 1;
                if let Some(metrics) = self.reloads_of(&revision) {
                    metrics.is_rejected.set(0);
                    metrics.applied.increment(u64::from(!is_first));
                }
                self.reporter.report_istio(&revision, &mesh);
            }
            Note::Rejected { revision, is_served, problem } => {
                if let Some(metrics) = self.reloads_of(&revision) {
                    metrics.is_rejected.set(1);
                    metrics.rejected.increment(1);
                }
                let message = if is_served {
                    "the configuration is rejected; the previous one stays in use"
                } else {
                    "the revision is not served: it has no valid configuration"
                };
                warn!(message, error = problem, revision);
            }
        }
    }

    fn reloads_of(&mut self, revision: &str) -> Option<&ReloadMetrics> {
        let registry = &self.reporter.registry;
        let register = || ReloadMetrics::register(registry, &format!("istio/{revision}"));
        Some(self.reloads.as_mut()?.entry(revision.to_owned()).or_insert_with(register))
    }
}
