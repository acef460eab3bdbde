//! The task of one replica: it watches configuration and templates. While it holds the Lease, it writes.

use std::{sync::Arc, time::Duration};

use injectd_cluster::{
    Events, Service,
    causes::with_causes,
    lease::{Elector, LeaseOptions, Term},
    watch::{KindMetrics, Update, WatchFailure},
};
use injectd_profiles::template_plane::KnownTemplates;
use injectd_telemetry::metrics::WatchMetrics;
use kube::{Client, ResourceExt as _};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tracing::info;

use super::{
    metrics::{ScopeMetrics, Written},
    objects::Objects,
    report::Reporter,
    rim::{Found, Rim},
    state::{Next, State, Why, Write},
};
use crate::certificates::RequestError;

/// The longest time between two looks.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// Time after which a failed request is tried again.
// As often as the Lease is renewed.
const RETRY: Duration = Duration::from_secs(2);
// A conflict means that another write has just succeeded: the next read has it.
const CONFLICT_RETRY: Duration = Duration::from_millis(50);
/// Changes that wait to be read.
const QUEUE: usize = 16;

/// What a keeper keeps.
#[derive(Debug, Clone)]
pub struct Options {
    /// The name of the webhook configuration.
    pub configuration: String,
    /// The Service that the API server calls: entries that lead to it with the path of templates are kept.
    pub service: Service,
    /// The namespace of injectd itself, whose pods no template changes.
    pub own_namespace: Option<String>,
    /// The Lease that the writer holds.
    pub lease: LeaseOptions,
}

/// The templates of the cluster, as this process serves them.
pub type Known = watch::Receiver<Arc<KnownTemplates>>;

/// Keeps the scope of the webhook of templates in step with the templates, in one of the replicas.
pub struct Keeper {
    client: Client,
    options: Options,
    rim: Box<dyn Rim>,
    state: State,
    metrics: ScopeMetrics,
    reporter: Reporter,
}

impl Keeper {
    /// A keeper, and the task that writes its events.
    pub fn new(
        client: Client,
        options: Options,
        metrics: ScopeMetrics,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let objects = Objects::new(client.clone(), &options.configuration);
        Self::of(Box::new(objects), client, options, metrics)
    }

    fn of(
        rim: Box<dyn Rim>,
        client: Client,
        options: Options,
        metrics: ScopeMetrics,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let Options { configuration, service, own_namespace, .. } = &options;
        let events = Events::new(client.clone());
        let (reporter, events) = Reporter::new(events, service, configuration);
        let state = State::new(service.clone(), own_namespace.clone());
        (Self { client, options, rim, state, metrics, reporter }, events)
    }

    /// Runs until `shutdown` ends; then gives its Lease away.
    pub async fn run(
        mut self,
        mut known: Known,
        watches: WatchMetrics,
        shutdown: impl Future<Output = ()>,
    ) {
        let (sender, mut found) = mpsc::channel(QUEUE);
        let mut elector = Elector::new(self.client.clone(), self.options.lease.clone());
        let mut term = elector.term();
        let watch = self.rim.watch(&KindMetrics::new(watches), &sender);
        drop(sender);
        tokio::pin!(shutdown);
        tokio::select! {
            () = &mut shutdown => {}
            () = watch => {}
            () = elector.hold("the webhook's scope") => {}
            () = self.keep(&mut found, &mut known, &mut term) => {}
        }
        self.metrics.leads(false);
        elector.release().await;
    }

    async fn keep(
        &mut self,
        found: &mut mpsc::Receiver<Found>,
        known: &mut Known,
        term: &mut Term,
    ) {
        let (mut led, mut is_open) = (false, true);
        self.see_templates(known);
        loop {
            let leads = term.is_current();
            if leads != led {
                led = leads;
                self.metrics.leads(leads);
                info!(
                    "{} the scope of the webhook",
                    if leads { "keeps" } else { "no longer keeps" }
                );
            }
            let wake = match self.look(leads, term).await {
                Looked::Again => continue,
                Looked::Until(at) => at.min(Instant::now() + MAX_WAIT),
            };
            tokio::select! {
                change = found.recv() => match change {
                    Some(change) => self.see(change),
                    None => return,
                },
                changed = known.changed(), if is_open => {
                    // Without news, the last templates stay.
                    is_open = changed.is_ok();
                    self.see_templates(known);
                }
                () = term.changed(led) => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    fn see_templates(&mut self, known: &mut Known) {
        let known = Arc::clone(&known.borrow_and_update());
        self.state.see_templates(&known, Instant::now().into_std());
    }

    /// Applies a change.
    fn see(&mut self, change: Found) {
        let name = &*self.options.configuration;
        let now = Instant::now().into_std();
        match change {
            Update::Listed(list) => {
                let found = list.iter().find(|found| found.name_any() == name);
                self.state.see(found, now);
            }
            Update::Applied(found) => self.state.see(Some(&found), now),
            Update::Deleted(_) => self.state.see(None, now),
            Update::Failed(failure) => {
                let error = match &failure {
                    WatchFailure::Unknown => "the API server does not know the kind",
                    WatchFailure::Forbidden(text) | WatchFailure::Other(text) => text,
                };
                self.reporter.failed("watch", error);
            }
        }
    }

    /// Writes what is due, if this replica leads.
    async fn look(&mut self, leads: bool, term: &Term) -> Looked {
        let now = Instant::now();
        self.state.leads(leads, now.into_std());
        self.state.pass(now.into_std());
        let looked = if leads {
            match self.state.next(now.into_std()) {
                Next::Wait(at) => Looked::Until(at.map_or(now + MAX_WAIT, Instant::from_std)),
                Next::Write(_) if !term.is_current() => Looked::Until(now + RETRY),
                Next::Write(write) => self.write(&write).await,
            }
        } else {
            Looked::Until(now + MAX_WAIT)
        };
        let standing = self.state.standing();
        self.metrics.stands(standing, self.state.wanted().as_ref());
        self.reporter.stands(standing);
        looked
    }

    async fn write(&mut self, write: &Write) -> Looked {
        let written = self.rim.write(&write.version, &write.edits).await;
        let now = Instant::now();
        match written {
            Ok(found) => {
                let wanted = self.state.wanted().unwrap_or_default();
                let outcome = self.state.wrote(write, &found, now.into_std());
                self.metrics.wrote(Written::Ok);
                if matches!(write.why, Why::Repaired(_)) {
                    self.metrics.repaired();
                }
                self.reporter.wrote(&write.why, &wanted);
                self.reporter.came_out(outcome);
                Looked::Again
            }
            Err(error) if error.is_conflict() => {
                self.metrics.wrote(Written::Conflict);
                self.refresh().await;
                Looked::Until(now + CONFLICT_RETRY)
            }
            Err(error) => {
                self.metrics.wrote(Written::Failed);
                self.not_written(write, &error, now).await
            }
        }
    }

    async fn not_written(&mut self, write: &Write, error: &RequestError, now: Instant) -> Looked {
        let text = with_causes(error);
        // A permission that is missing is not there two seconds later, either.
        let wait = if error.is_forbidden() { MAX_WAIT } else { RETRY };
        if error.is_invalid() {
            let is_tried = self.state.rejected(write, (now + wait).into_std(), now.into_std());
            if is_tried {
                self.reporter.without_conditions(&text);
                return Looked::Again;
            }
        }
        self.state.failed((now + wait).into_std());
        self.reporter.failed("write", &text);
        // What was asked may be done, and the answer is lost.
        self.refresh().await;
        Looked::Until(now + wait)
    }

    /// Reads the configuration, which others may have changed; the watch may be later.
    async fn refresh(&mut self) {
        match self.rim.read().await {
            Ok(found) => self.state.see(found.as_ref(), Instant::now().into_std()),
            Err(error) => self.reporter.failed("read", &with_causes(&error)),
        }
    }
}

/// What a look led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    /// It wrote, and more may be due.
    Again,
    /// Nothing more is due before this time.
    Until(Instant),
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod simulation;
