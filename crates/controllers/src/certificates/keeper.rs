//! The task of one replica: it watches Secret and webhooks, and chooses the certificate that is served.
//! While it holds the Lease, it also writes (`keeper/leader.rs`).

use std::{sync::Arc, time::Duration};

use injectd_cluster::{
    Events, Service,
    lease::{Elector, LeaseOptions, Term},
    watch::{KindMetrics, WatchFailure},
};
use injectd_telemetry::{metrics::WatchMetrics, readiness::Hold};
use jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tracing::info;

use super::{
    authority::{Leaf, Lifetimes, service_names},
    metrics::{CertificateMetrics, Stage},
    objects::Objects,
    plan,
    repairs::Repairs,
    report::Reporter,
    rim::Rim,
    serving::{Choice, Clock, Served, Trusted, choose},
    state::{State, Terms},
    view::{Found, View},
};

mod leader;

use leader::Acted;

/// As [`plan::HANDOVER`].
const HANDOVER: Duration = Duration::from_secs(plan::HANDOVER.unsigned_abs());
/// The longest time between two looks.
// Certificates end by the clock of the machine, which may be set. A timer does not notice that.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// Changes that wait to be read.
// While it is full the watches wait: nothing is lost.
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
    rim: Box<dyn Rim>,
    terms: Terms,
    service: Service,
    metrics: CertificateMetrics,
    reporter: Reporter,
    view: View,
    trusted: Trusted,
    repairs: Repairs,
    /// The last usable state of the Secret.
    memory: Option<State>,
    /// Until then a CA of injectd may be known to other replicas only.
    unsettled_until: Instant,
    served: Option<Served>,
    sender: watch::Sender<Option<Arc<Leaf>>>,
    /// Keeps the process unready until a certificate is served.
    hold: Option<Hold>,
}

impl Keeper {
    /// A keeper, the certificate that it serves, and the task that writes its events. It drops `hold`
    /// once there is a certificate.
    pub fn new(
        client: Client,
        options: Options,
        metrics: CertificateMetrics,
        hold: Hold,
    ) -> (Self, watch::Receiver<Option<Arc<Leaf>>>, impl Future<Output = ()> + use<>) {
        let Options { namespace, secret, lease, .. } = &options;
        let objects = Objects::new(client.clone(), namespace, secret, &lease.identity);
        Self::of(Box::new(objects), client, options, metrics, hold)
    }

    fn of(
        rim: Box<dyn Rim>,
        client: Client,
        options: Options,
        metrics: CertificateMetrics,
        hold: Hold,
    ) -> (Self, watch::Receiver<Option<Arc<Leaf>>>, impl Future<Output = ()> + use<>) {
        let (sender, receiver) = watch::channel(None);
        let Options { namespace, service, secret, configurations, .. } = &options;
        let names = service_names(service, namespace);
        let terms = Terms { names, ca_lifetime: options.lifetimes.ca };
        let service = Service { namespace: namespace.clone(), name: service.clone() };
        let events = Events::new(client.clone());
        let (reporter, events) = Reporter::new(events, &service, secret);
        let keeper = Self {
            rim,
            terms,
            reporter,
            view: View::new(configurations),
            service,
            metrics,
            trusted: Trusted::default(),
            repairs: Repairs::default(),
            memory: None,
            unsettled_until: Instant::now() + HANDOVER,
            served: None,
            sender,
            hold: Some(hold),
            client,
            options,
        };
        (keeper, receiver, events)
    }

    /// Runs until `shutdown` ends; then gives its Lease away.
    pub async fn run(mut self, watches: WatchMetrics, shutdown: impl Future<Output = ()>) {
        let (sender, mut found) = mpsc::channel(QUEUE);
        let mut elector = Elector::new(self.client.clone(), self.options.lease.clone());
        let mut term = elector.term();
        let configurations = &self.options.configurations;
        let watch = self.rim.watch(configurations, &KindMetrics::new(watches), &sender);
        drop(sender);
        tokio::pin!(shutdown);
        tokio::select! {
            () = &mut shutdown => {}
            () = watch => {}
            () = elector.hold("the certificates") => {}
            () = self.keep(&mut found, &mut term) => {}
        }
        self.metrics.leads(false);
        elector.release().await;
    }

    async fn keep(&mut self, found: &mut mpsc::Receiver<Found>, term: &mut Term) {
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
                        Acted::Wrote => continue,
                        Acted::Until(at) => wake = wake.min(at),
                    }
                }
            }
            tokio::select! {
                change = found.recv() => match change {
                    Some(change) => self.see(change),
                    None => return,
                },
                () = term.changed(led) => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Applies a change.
    fn see(&mut self, change: Found) {
        let of_secret = matches!(change, Found::Secret(_));
        let failure = self.view.apply(change, &self.terms, &self.service);
        if let Some((what, failure)) = failure {
            let error = match failure {
                WatchFailure::Unknown => "the API server does not know the kind".to_owned(),
                WatchFailure::Forbidden(text) | WatchFailure::Other(text) => text,
            };
            self.metrics
                .done(if of_secret { Stage::ReadSecret } else { Stage::ReadWebhooks }, false);
            self.reporter.failed(&format!("read {what}"), &error);
        }
        self.note_secret();
        if let Some(Ok(state)) = self.view.secret() {
            let earlier = self.memory.take();
            self.memory = Some(state.clone().remembering(earlier, self.rim.now()));
        }
        self.note_webhooks();
    }

    /// Takes note of a Secret that was lost, and of what is wrong in one that was not.
    fn note_secret(&mut self) {
        let is_lost = match self.view.secret() {
            Some(Ok(state)) => {
                if let Some(problem) = state.revoked.problem() {
                    self.reporter.failed("read the key revoked of the Secret", &problem);
                }
                let earlier = self.memory.as_ref();
                earlier.is_some_and(|earlier| !state.continues(earlier, self.rim.now()))
            }
            None | Some(Err(_)) => true,
        };
        if is_lost {
            self.unsettled_until = Instant::now() + HANDOVER;
        }
    }

    /// Remembers since when each CA is in each `caBundle`, and which `caBundle` is wrong.
    fn note_webhooks(&mut self) {
        if !self.view.is_complete() {
            return;
        }
        let now = Instant::now().into_std();
        let published = self.view.published(|_| true);
        self.trusted.update(&published, now);
        let Some(served) = &self.served else { return };
        for of in published {
            let is_right = of.entries.iter().all(|entry| entry.cas.contains(&served.ca));
            self.repairs.see(of.configuration, is_right, now);
        }
    }

    /// Serves the certificate of the Secret if it is time. Returns when to look again.
    fn serve(&mut self) -> Option<Instant> {
        let Some(Ok(state)) = self.view.secret() else { return None };
        let new = Served::of(state);
        if self.served.as_ref() == Some(&new) {
            return None;
        }
        let clock = Clock { now: self.rim.now(), instant: Instant::now().into_std() };
        let since = self.view.secret_since.into_std();
        match choose(self.served.as_ref(), state, since, &self.trusted, clock) {
            Choice::Now => {
                let expires = Timestamp::from_second(new.leaf.certificate.ends());
                let expires = expires.unwrap_or(Timestamp::MAX).to_string();
                info!(expires, "serves the Secret's certificate");
                self.metrics.done(Stage::Serve, true);
                self.sender.send_replace(Some(Arc::new(new.leaf.clone())));
                self.served = Some(new);
                self.hold = None;
                self.note_webhooks();
                None
            }
            Choice::At(at) => Some(at.into()),
            Choice::No => None,
        }
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod simulation;
