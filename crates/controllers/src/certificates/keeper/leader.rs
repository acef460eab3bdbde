//! What a keeper writes while it holds the Lease.

use std::time::Duration;

use futures_util::future::join_all;
use injectd_cluster::{causes::with_causes, lease::Term};
use k8s_openapi::api::core::v1::Secret;
use tokio::time::Instant;

use super::{
    super::{
        culprit::Culprit,
        metrics::Stage,
        plan::{self, Bundles, Change, Observed, Step},
        rim::{Bundle, RequestError},
        state::{InvalidSecret, State},
        view,
    },
    Keeper, MAX_WAIT,
};

/// Time after which a failed request is tried again, and one that lost a race.
// As often as the Lease is renewed.
const RETRY: Duration = Duration::from_secs(2);
// A conflict means that another write has just succeeded: the next read has it.
const CONFLICT_RETRY: Duration = Duration::from_millis(50);

/// What a look of the leader led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acted {
    /// It wrote, and more may be due.
    Wrote,
    /// Nothing more is due before this time.
    Until(Instant),
}

impl Keeper {
    /// Writes what is due: the Secret, or the `caBundle` of some configurations.
    pub(super) async fn act(&mut self, term: &Term) -> Acted {
        // What the watches found may be old, and costs nothing.
        match self.next(self.view.secret()) {
            Ok(None) => return Acted::Until(self.due()),
            Ok(Some(_)) => {}
            Err(error) => return self.cannot_make(&error),
        }
        let read = match self.rim.read_secret().await {
            Ok(read) => read,
            Err(error) => return self.failed(Stage::ReadSecret, "read the Secret", &error),
        };
        self.view.set_secret(read.as_ref().map(|secret| view::decode(secret, &self.terms)));
        self.note_secret();
        let step = match self.next(self.view.secret()) {
            Ok(Some(step)) => step,
            Ok(None) => return Acted::Until(self.due()),
            Err(error) => return self.cannot_make(&error),
        };
        if !term.is_current() {
            return Acted::Until(Instant::now() + RETRY);
        }
        match step {
            Step::Secret(state, changes) => self.write_secret(read, *state, &changes).await,
            Step::Bundles(bundles) => self.write_bundles(&bundles).await,
        }
    }

    fn next(
        &self,
        secret: Option<Result<&State, &InvalidSecret>>,
    ) -> Result<Option<Step>, rcgen::Error> {
        let now = Instant::now().into_std();
        let published = self.view.published(|name| self.repairs.may_write(name, now));
        let (memory, is_all_read) = (self.memory.as_ref(), self.view.is_all_read());
        let is_unsettled = Instant::now() < self.unsettled_until;
        let observed =
            Observed { secret, published: &published, is_all_read, memory, is_unsettled };
        plan::next(&observed, &self.terms.names, self.rim.now(), self.options.lifetimes)
    }

    /// When something is due next, by the clock of the process.
    fn due(&self) -> Instant {
        let due = self.memory.as_ref().map(|state| plan::due(state, self.options.lifetimes));
        let wait = due.map_or(0, |due| due - self.rim.now());
        let now = Instant::now();
        let due =
            now + Duration::from_secs(u64::try_from(wait).unwrap_or_default().max(1)).min(MAX_WAIT);
        let repair = self.repairs.next(now.into_std()).map(Instant::from_std);
        let settled = Some(self.unsettled_until).filter(|settled| *settled > now);
        repair.into_iter().chain(settled).fold(due, Instant::min)
    }

    async fn write_secret(
        &mut self,
        read: Option<Secret>,
        state: State,
        changes: &[Change],
    ) -> Acted {
        let data = view::data_with(read.as_ref(), &state);
        let written = match data {
            Ok(data) => self.rim.write_secret(read, data).await,
            Err(error) => Err(error.into()),
        };
        match written {
            Ok(written) => {
                self.metrics.done(Stage::WriteSecret, true);
                for stage in changes.iter().filter_map(|change| Stage::of(*change)) {
                    self.metrics.done(stage, true);
                }
                self.view.set_secret(Some(view::decode(&written, &self.terms)));
                self.memory = Some(state);
                self.reporter.wrote_secret(changes);
                Acted::Wrote
            }
            Err(error) if error.is_conflict() => conflict(),
            Err(error) => {
                let what = format!("write the Secret {}", self.options.secret);
                self.failed(Stage::WriteSecret, &what, &error)
            }
        }
    }

    /// Writes the `caBundle` of all entries that are wrong, at the same time.
    async fn write_bundles(&mut self, bundles: &Bundles) -> Acted {
        let writes = bundles.wrong.iter().filter_map(|(name, indices)| {
            let read = self.view.configuration(name)?;
            let (version, pem) = (&*read.version, &*bundles.pem);
            let write = self.rim.write_bundle(Bundle { name, version, indices, pem });
            Some(async move { (name, write.await) })
        });
        let written = join_all(writes).await;
        let mut acted = Acted::Wrote;
        for (name, written) in written {
            let conflicts = match written {
                Ok(found) => {
                    self.wrote_bundle(name);
                    self.view.set_configuration(name, Some(&found), &self.service);
                    false
                }
                Err(error) => {
                    self.bundle_failed(name, &error);
                    error.is_conflict()
                }
            };
            if conflicts {
                self.refresh(name).await;
                acted = conflict();
            }
        }
        self.note_webhooks();
        acted
    }

    /// Records that a `caBundle` is right again.
    fn wrote_bundle(&mut self, name: &str) {
        self.metrics.done(Stage::WriteCaBundle, true);
        match self.repairs.wrote(name, Instant::now().into_std()) {
            None => self.reporter.wrote_bundle(name),
            Some(window) => {
                self.metrics.repaired(window);
                let culprit = self
                    .view
                    .configuration(name)
                    .and_then(|configuration| configuration.culprit.clone());
                self.reporter.repaired_bundle(name, &culprit.unwrap_or(Culprit::Unknown));
            }
        }
    }

    fn bundle_failed(&mut self, name: &str, error: &RequestError) {
        if error.is_conflict() {
            return;
        }
        // A person grants a permission, in minutes at best: until then each attempt is a line in an
        // audit log.
        let wait = if error.is_forbidden() { MAX_WAIT } else { RETRY };
        self.repairs.failed(name, Instant::now().into_std(), wait);
        let what = format!("write the MutatingWebhookConfiguration {name}");
        self.failed(Stage::WriteCaBundle, &what, error);
    }

    /// Reads a configuration that others have changed; the watch may be later.
    async fn refresh(&mut self, name: &str) {
        match self.rim.read_webhooks(name).await {
            Ok(found) => self.view.set_configuration(name, found.as_ref(), &self.service),
            Err(error) => {
                self.failed(Stage::ReadWebhooks, "read the webhook configurations", &error);
            }
        }
    }

    fn failed(&mut self, stage: Stage, what: &str, error: &RequestError) -> Acted {
        self.metrics.done(stage, false);
        self.reporter.failed(what, &with_causes(error));
        Acted::Until(Instant::now() + RETRY)
    }

    fn cannot_make(&mut self, error: &rcgen::Error) -> Acted {
        self.metrics.done(Stage::CreateLeaf, false);
        self.reporter.failed("make a certificate", &error.to_string());
        Acted::Until(Instant::now() + RETRY)
    }
}

fn conflict() -> Acted {
    Acted::Until(Instant::now() + CONFLICT_RETRY)
}
