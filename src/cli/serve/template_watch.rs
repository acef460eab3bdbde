//! Sidecar templates of a cluster: watched, read, and put to use.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use injectd_cluster::{
    causes::with_causes,
    sources::Sources,
    watch::{KindMetrics, Update, Watched, follow},
};
use injectd_profiles::{
    TemplatesInjector,
    template_plane::{
        Definition, KIND_LABEL, Kind, KnownTemplates, TemplateChange, TemplateNote, TemplatePlane,
    },
};
use injectd_telemetry::{
    metrics::{ReloadMetrics, WatchMetrics},
    readiness::Hold,
};
use injectd_templates::{object::Identity, schema};
use injectd_templates_mesh::Templates;
use k8s_openapi::{
    api::apps::v1::ControllerRevision,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use tokio::{
    sync::{mpsc, watch},
    task::spawn_blocking,
    time::{sleep_until, timeout_at},
};
use tracing::{error, info, warn};

use super::{
    process::Process,
    reporter::Reporter,
    templates::{MAX_REPORTED, REJECTED},
};
use crate::{injector::Injector, mesh::Mesh as _};

/// Time from the first news of the cluster until they are put to use, together with those that come
/// in the meantime: several templates that are applied together are read once.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// News that wait until the previous ones are in use; then the watches wait.
// A bound is needed: the watches must not read on without end while news are put to use.
const MAX_CHANGES: usize = 256;
/// Objects in a page of a list: a template has up to 64 KiB.
const PAGE: u32 = 50;
/// Time until a definition is read again that could not be read, or that is being deleted; then after twice
/// as long each, up to [`LONGEST_RETRY`].
// A watch would not do in place of these reads. What counts is whether the definition was there after its
// templates were deleted: a read that begins later shows that, and a watch may be behind that of the
// templates. They are few: without a deletion nothing is read.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(10);

impl Process {
    /// Sidecar templates of a cluster. The process becomes ready once they are listed.
    pub(super) fn cluster_templates(
        &self,
        client: &Client,
        sources: Sources,
    ) -> (Arc<TemplatesInjector>, watch::Receiver<Arc<KnownTemplates>>) {
        let flags = &self.args.templates;
        let own_namespace = flags.namespace();
        let none: [Arc<_>; 0] = [];
        let mesh = Templates::new(none, own_namespace.clone(), 1);
        let injector = Arc::new(Injector::new(mesh, sources));
        let (sender, changes) = mpsc::channel(MAX_CHANGES);
        let watches = Watches {
            client: client.clone(),
            sender,
            metrics: ["cluster_sidecar_templates", "sidecar_templates", "controller_revisions"]
                .map(|kind| KindMetrics::new(WatchMetrics::register(self.registry(), kind))),
        };
        watches.start(own_namespace.as_deref().unwrap_or_default());
        let (publish, known) = watch::channel(Arc::default());
        let follower = Follower {
            client: client.clone(),
            own_namespace,
            injector: Arc::clone(&injector),
            reporter: self.reporter.clone(),
            reloads: ReloadMetrics::register(self.registry(), "templates"),
            unready: Some(self.readiness.hold()),
            waits_for: None,
            served: None,
            unread: BTreeSet::new(),
            rejected: BTreeMap::new(),
            publish,
        };
        info!("waiting for sidecar templates");
        tokio::spawn(follower.run(TemplatePlane::new(flags.ceiling()), changes));
        (injector, known)
    }
}

/// Starts watches, which end when no one receives what they find.
struct Watches {
    client: Client,
    sender: mpsc::Sender<TemplateChange>,
    /// Of templates of both kinds, and of revisions.
    metrics: [KindMetrics; 3],
}

impl Watches {
    fn start(&self, own_namespace: &str) {
        let [cluster, namespaced, revisions] = self.metrics.clone();
        for (kind, metrics) in [(Kind::Cluster, cluster), (Kind::Namespaced, namespaced)] {
            let api = Api::all_with(self.client.clone(), &resource(kind));
            let watched = Watched { page_size: PAGE, ..Watched::default() };
            let change =
                move |update: Update<DynamicObject>| TemplateChange::Templates(kind, update);
            tokio::spawn(follow(api, watched, metrics, self.sender.clone(), change));
        }
        let api: Api<ControllerRevision> = Api::namespaced(self.client.clone(), own_namespace);
        let labels = Some(KIND_LABEL.to_owned());
        let watched = Watched { labels, page_size: PAGE, ..Watched::default() };
        let sender = self.sender.clone();
        tokio::spawn(follow(api, watched, revisions, sender, TemplateChange::Revisions));
    }
}

fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Cluster => schema::CLUSTER_PLURAL,
        Kind::Namespaced => schema::NAMESPACED_PLURAL,
    }
}

fn resource(kind: Kind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(schema::GROUP, schema::VERSION, kind.as_str());
    ApiResource::from_gvk_with_plural(&gvk, plural(kind))
}

/// Reads what has changed on a thread of its own: reviews must not wait for it. A panic is a bug, and must
/// not end the watches.
async fn settle(mut plane: TemplatePlane) -> TemplatePlane {
    let settled = spawn_blocking(move || {
        if catch_unwind(AssertUnwindSafe(|| plane.settle(Instant::now()))).is_err() {
            error!("sidecar templates were not updated because of a bug in injectd");
        }
        plane
    });
    settled.await.expect("panics must be caught")
}

/// Puts the news of a cluster to use, and reports them.
struct Follower {
    client: Client,
    own_namespace: Option<String>,
    injector: Arc<TemplatesInjector>,
    reporter: Reporter,
    reloads: ReloadMetrics,
    /// Until the templates are listed.
    unready: Option<Hold>,
    /// Why they are not.
    waits_for: Option<String>,
    /// The digest of what is served.
    served: Option<String>,
    /// Kinds whose definition could not be read last time.
    unread: BTreeSet<Kind>,
    /// Templates that were rejected since the start, and whether they still are.
    rejected: BTreeMap<Identity, bool>,
    publish: watch::Sender<Arc<KnownTemplates>>,
}

impl Follower {
    /// Runs until the process ends.
    async fn run(mut self, mut plane: TemplatePlane, mut changes: mpsc::Receiver<TemplateChange>) {
        for kind in Kind::ALL {
            self.define(&mut plane, kind).await;
        }
        self.report(&mut plane);
        let mut pause = RETRY;
        loop {
            if !next(&mut plane, &mut changes, pause).await {
                return;
            }
            for kind in plane.asks_definitions() {
                self.define(&mut plane, kind).await;
            }
            let is_answered = plane.asks_definitions().is_empty();
            pause = if is_answered { RETRY } else { (2 * pause).min(LONGEST_RETRY) };
            plane = settle(plane).await;
            self.put_to_use(&plane.known());
            self.report(&mut plane);
        }
    }

    /// Looks at the definition of a kind. If it cannot be read, it is looked at again.
    async fn define(&mut self, plane: &mut TemplatePlane, kind: Kind) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = format!("{}.{}", plural(kind), schema::GROUP);
        let definition = match api.get_metadata_opt(&name).await {
            // A definition that is being deleted takes its templates with it: those that go
            // meanwhile are not deletions of their own.
            Ok(Some(found)) if found.metadata.deletion_timestamp.is_none() => {
                Definition::There(found.metadata.uid.unwrap_or_default())
            }
            Ok(_) => Definition::Gone,
            // Then each deletion is taken for that of a template.
            Err(kube::Error::Api(status)) if status.code == 403 => Definition::There(String::new()),
            Err(error) => {
                if self.unread.insert(kind) {
                    let error = with_causes(&error);
                    warn!(error, "the definition {name} cannot be read; it is tried again");
                }
                return;
            }
        };
        self.unread.remove(&kind);
        plane.define(kind, &definition, Instant::now());
    }

    /// Serves what is known.
    fn put_to_use(&mut self, known: &Arc<KnownTemplates>) {
        if !known.is_listed {
            return;
        }
        let digest = known.digest();
        if self.served.as_ref() != Some(&digest) {
            // The first templates are generation 1, as the templates of files are.
            let is_first = self.served.is_none();
            let generation = self.injector.mesh().configuration().generation + u64::from(!is_first);
            let served = known.served().cloned();
            let mesh = Templates::new(served, self.own_namespace.clone(), generation);
            self.injector.replace_mesh(mesh);
            self.reporter.report_templates(&self.injector.mesh());
            self.reloads.applied.increment(u64::from(!is_first));
            self.served = Some(digest);
        }
        // Last: the Lease says that this replica serves it, and `Programmed` follows from that.
        self.publish.send_replace(Arc::clone(known));
    }

    fn report(&mut self, plane: &mut TemplatePlane) {
        for note in plane.take_notes() {
            report_note(&note);
        }
        self.report_rejected(&plane.known());
        if self.unready.is_none() {
            return;
        }
        let waits_for = plane.waits_for();
        if waits_for.is_some() && waits_for == self.waits_for {
            return;
        }
        self.waits_for.clone_from(&waits_for);
        self.reporter.report_waiting(waits_for.as_deref());
        if waits_for.is_none() {
            info!("sidecar templates are loaded");
            self.unready = None;
        }
    }

    /// Sets the metrics of templates that are not in order.
    fn report_rejected(&mut self, known: &KnownTemplates) {
        for is_rejected in self.rejected.values_mut() {
            *is_rejected = false;
        }
        let rejected = known.templates.iter().filter(|(_, template)| template.read.is_err());
        for (identity, _) in rejected {
            if self.rejected.len() < MAX_REPORTED || self.rejected.contains_key(identity) {
                self.rejected.insert(identity.clone(), true);
            }
        }
        self.reloads.is_rejected.set(u8::from(self.rejected.values().any(|is_now| *is_now)));
        for (identity, is_rejected) in &self.rejected {
            let labels = [("template", identity.to_string())];
            self.reporter.registry.set(REJECTED, &labels, f64::from(u8::from(*is_rejected)));
        }
    }
}

/// Takes in the next news, with those that follow soon; false if none will come. A definition that is asked
/// for is read again after `pause`.
async fn next(
    plane: &mut TemplatePlane,
    changes: &mut mpsc::Receiver<TemplateChange>,
    pause: Duration,
) -> bool {
    let asks_definition = !plane.asks_definitions().is_empty();
    let wakes = plane.wakes_at().filter(|_| !asks_definition);
    let wakes = wakes.or_else(|| asks_definition.then(|| Instant::now() + pause));
    let change = match wakes {
        None => changes.recv().await,
        Some(at) => tokio::select! {
            change = changes.recv() => change,
            () = sleep_until(at.into()) => return true,
        },
    };
    let Some(change) = change else { return false };
    plane.apply(change);
    // From the first of the news, so that news that never pause are put to use as well.
    let until = tokio::time::Instant::now() + DEBOUNCE;
    while let Ok(Some(change)) = timeout_at(until, changes.recv()).await {
        plane.apply(change);
    }
    true
}

fn report_note(note: &TemplateNote) {
    match note {
        TemplateNote::Applied { identity, hash } => {
            let template = identity.to_string();
            info!(template, hash, "a revision of a sidecar template is served");
        }
        TemplateNote::Rejected { identity, problems, served } => {
            let template = identity.to_string();
            let message = if served.is_some() {
                "a sidecar template is rejected; its last good revision stays in use"
            } else {
                "a sidecar template is rejected; it has no earlier revision, and is not served"
            };
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            warn!(message, template, error = problems.join("; "));
        }
        TemplateNote::Removed(identity) => {
            let template = identity.to_string();
            info!(template, "a sidecar template is not served any more: it was deleted");
        }
        TemplateNote::Orphaned(identity) => {
            let template = identity.to_string();
            warn!(
                template,
                "a sidecar template was deleted with its CustomResourceDefinition, and stays served"
            );
        }
        TemplateNote::Warning(text) => warn!("{text}"),
    }
}
