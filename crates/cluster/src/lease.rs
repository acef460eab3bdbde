//! Leader election by a Lease, as client-go does it.
//!
//! Whether a Lease has expired is measured by this process: from when it saw the Lease change last.
//! The times in the Lease, which other clocks wrote, are only for people. A leader stops some time
//! before the others take over.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};
use tracing::{debug, info, warn};

use crate::{causes::with_causes, client::creator, repeated::Repeated};

/// The longest time between two attempts while the API server refuses them. A permission that is granted
/// takes effect within it.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// The Lease, and how its holder renews it.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The identity of this process: a pod's name.
    pub identity: String,
    /// Time after which others may take an unchanged Lease.
    pub duration: Duration,
    /// Time after which a leader that could not renew stops; shorter than `duration`.
    pub renew_deadline: Duration,
    /// Time between two attempts.
    pub retry: Duration,
}

/// Takes part in the election.
pub struct Elector {
    api: Api<Lease>,
    options: LeaseOptions,
    /// The Lease as it was last read or written, and when it was first seen so.
    seen: Option<(Lease, Instant)>,
    /// Until when this process leads.
    until: Arc<watch::Sender<Option<Instant>>>,
    /// Attempts that fail.
    failing: Repeated,
    /// Time until the next attempt to acquire the Lease.
    pause: Duration,
}

/// The term of a leader, to check that it is not over.
#[derive(Debug, Clone)]
pub struct Term(watch::Receiver<Option<Instant>>);

impl LeaseOptions {
    /// A Lease with client-go's defaults: 15 s, 10 s and 2 s.
    #[must_use]
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

impl Term {
    /// A term without an end, for a process that has no rivals.
    #[must_use]
    pub fn endless() -> Self {
        /// Longer than any process runs.
        // tokio takes as much for a time that never comes: an `Instant` of some systems has no room
        // for a century.
        const LONG: Duration = Duration::from_hours(24 * 365 * 30);
        Self(watch::channel(Some(Instant::now() + LONG)).1)
    }

    /// A term until a time that somebody else sets, for simulations.
    #[must_use]
    pub fn given(until: watch::Receiver<Option<Instant>>) -> Self {
        Self(until)
    }

    /// Whether this process leads now.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Waits until this process no longer leads if it `led`, else until it leads.
    pub async fn changed(&mut self, led: bool) {
        while self.is_current() == led {
            if self.0.changed().await.is_err() {
                // The elector is gone: no term begins or ends any more.
                std::future::pending::<()>().await;
            }
        }
    }
}

// === impl Elector ===

impl Elector {
    /// An elector that has not taken part yet.
    #[must_use]
    pub fn new(client: Client, options: LeaseOptions) -> Self {
        let api = Api::namespaced(client, &options.namespace);
        let (until, pause) = (Arc::new(watch::Sender::new(None)), options.retry);
        Self { api, options, seen: None, until, failing: Repeated::default(), pause }
    }

    /// The terms of this process.
    #[must_use]
    pub fn term(&self) -> Term {
        Term(self.until.subscribe())
    }

    /// Waits until this process leads.
    pub async fn acquire(&mut self) {
        while !self.attempt(Instant::now() + self.options.renew_deadline).await {
            sleep(self.pause).await;
        }
    }

    /// Holds the Lease whenever it can, without an end; `of` says what the Lease is of, for the log.
    pub async fn hold(&mut self, of: &str) {
        loop {
            self.acquire().await;
            self.keep().await;
            warn!("lost the Lease of {of}");
        }
    }

    /// Renews the Lease until it is lost.
    pub async fn keep(&mut self) {
        loop {
            let until = *self.until.borrow();
            let Some(until) = until.filter(|&until| Instant::now() < until) else { break };
            tokio::select! {
                // A leader stops at the end of its term even if a renewal is due at the same
                // moment.
                biased;
                () = tokio::time::sleep_until(until) => break,
                () = sleep(self.options.retry) => {}
            }
            if !self.attempt(until).await && !self.is_held() {
                break;
            }
        }
        self.until.send_replace(None);
    }

    /// Gives the Lease away, so that others need not wait until it expires.
    pub async fn release(&mut self) {
        self.until.send_replace(None);
        let Some((lease, _)) = self.seen.take().filter(|(lease, _)| self.holds(lease)) else {
            return;
        };
        let mut released = lease;
        if let Some(spec) = &mut released.spec {
            spec.holder_identity = Some(String::new());
            // As client-go does: the next replica need not wait until the term has passed.
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(MicroTime(Timestamp::now()));
        }
        // The process is about to end, and must not wait for an API server that does not answer.
        let deadline = Instant::now() + self.options.retry;
        let params = PostParams::default();
        let write = self.api.replace(&self.options.name, &params, &released);
        if !matches!(timeout_at(deadline, write).await, Ok(Ok(_))) {
            debug!("the Lease {} was not released; it expires", self.options.name);
        }
    }

    /// Acquires or renews the Lease once; whether this process leads.
    async fn attempt(&mut self, deadline: Instant) -> bool {
        // The term is counted from before the request: others count from when they see its effect.
        let begin = Instant::now();
        let written = match timeout_at(deadline, self.write()).await {
            Ok(Ok(written)) => {
                self.worked();
                written
            }
            Ok(Err(error)) => {
                self.failed(&error);
                false
            }
            Err(_) => {
                if self.failing.is_due(Instant::now()) {
                    warn!("the API server does not answer about the Lease {}", self.options.name);
                }
                false
            }
        };
        if written {
            self.until.send_replace(Some(begin + self.options.renew_deadline));
        }
        written
    }

    fn worked(&mut self) {
        self.pause = self.options.retry;
        if self.failing.end() {
            info!("the API server answers about the Lease {} again", self.options.name);
        }
    }

    /// Logs a failure, unless it was logged not long ago. What the API server refuses, such as for lack of
    /// a permission, it refuses again: later attempts wait longer.
    fn failed(&mut self, error: &kube::Error) {
        let is_refused = matches!(error, kube::Error::Api(status) if status.code < 500);
        let longest = if is_refused { LONGEST_RETRY } else { self.options.retry };
        self.pause = (2 * self.pause).min(longest);
        if self.failing.is_due(Instant::now()) {
            let (name, error) = (&self.options.name, with_causes(error));
            warn!(error, "cannot acquire or renew the Lease {name}");
        }
    }

    /// Writes the Lease, if this process holds it or may take it.
    async fn write(&mut self) -> kube::Result<bool> {
        let Some(found) = self.api.get_opt(&self.options.name).await? else {
            // An apply, since a role may allow to create this name only. Not forced, and each process
            // is a field manager of its own: a Lease that another one created stays.
            let lease = self.next(None, Timestamp::now());
            let params = PatchParams::apply(&creator(&self.options.identity));
            let name = &self.options.name;
            let created = self.api.patch(name, &params, &Patch::Apply(&lease)).await;
            return self.written(created);
        };
        self.observe(found.clone(), Instant::now());
        if !self.may_take(&found, Instant::now()) {
            return Ok(false);
        }
        let lease = self.next(Some(&found), Timestamp::now());
        let written = self.api.replace(&self.options.name, &PostParams::default(), &lease).await;
        self.written(written)
    }

    /// Remembers a Lease that was written; false if another process was faster.
    fn written(&mut self, written: kube::Result<Lease>) -> kube::Result<bool> {
        match written {
            Ok(lease) => {
                self.observe(lease, Instant::now());
                Ok(true)
            }
            // Another candidate was faster, which is no failure to be logged.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Remembers when a Lease was first seen as it is.
    fn observe(&mut self, lease: Lease, now: Instant) {
        // Only the spec shows that a holder is alive: a change of labels must not prolong its term.
        if self.seen.as_ref().is_none_or(|(seen, _)| seen.spec != lease.spec) {
            self.seen = Some((lease, now));
        } else if let Some((seen, _)) = &mut self.seen {
            // A release replaces the object, and needs its newest version.
            *seen = lease;
        }
    }

    fn may_take(&self, lease: &Lease, now: Instant) -> bool {
        let spec = lease.spec.as_ref();
        let is_free =
            spec.and_then(|spec| spec.holder_identity.as_deref()).is_none_or(str::is_empty);
        if is_free || self.holds(lease) {
            return true;
        }
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
        // A negative number is not client-go's: the Lease counts as one of ours then.
        let duration = u64::try_from(seconds).map_or(self.options.duration, Duration::from_secs);
        self.seen.as_ref().is_some_and(|(_, since)| now > *since + duration)
    }

    fn holds(&self, lease: &Lease) -> bool {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        holder == Some(&self.options.identity)
    }

    fn is_held(&self) -> bool {
        self.seen.as_ref().is_some_and(|(lease, _)| self.holds(lease))
    }

    /// The Lease as this process writes it, at this time.
    fn next(&self, found: Option<&Lease>, now: Timestamp) -> Lease {
        let before = found.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let is_ours = found.is_some_and(|lease| self.holds(lease));
        let transitions = before.lease_transitions.unwrap_or_default();
        let seconds = self.options.duration.as_secs().try_into().unwrap_or(i32::MAX);
        let metadata = found.map_or_else(
            || ObjectMeta {
                name: Some(self.options.name.clone()),
                namespace: Some(self.options.namespace.clone()),
                ..ObjectMeta::default()
            },
            |found| found.metadata.clone(),
        );
        Lease {
            metadata,
            spec: Some(LeaseSpec {
                holder_identity: Some(self.options.identity.clone()),
                // The API server refuses a duration of zero.
                lease_duration_seconds: Some(seconds.max(1)),
                acquire_time: before.acquire_time.filter(|_| is_ours).or(Some(MicroTime(now))),
                renew_time: Some(MicroTime(now)),
                lease_transitions: Some(match found {
                    None => 0,
                    Some(_) => transitions.saturating_add(i32::from(!is_ours)),
                }),
                ..before
            }),
        }
    }
}

#[cfg(test)]
mod tests;
