//! Reads, plans and writes: as the leader everything, otherwise only revisions that this process serves and
//! that no leader keeps.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use injectd_cluster::{causes::with_causes, lease::Term};
use injectd_profiles::template_plane::KnownTemplates;
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};
use tracing::info;

use super::{
    super::{
        findings::Findings,
        metrics::{KeeperMetrics, Stage},
        pauses::Pauses,
        plan,
        pods::counted,
        replicas::{digest_of, served},
        report::{Reporter, what},
        revisions::unkept,
        rim::{RequestError, Rim},
        status::Facts,
        write::Write,
    },
    leader::{Counting, Leader, of_kinds},
};

/// Maximum number of writes of a round.
// After a round the plan is made anew, from newer facts: the rest may not be due any more.
const MAX_WRITES: usize = 25;
/// Time between two rounds: as long as a round took, within these bounds.
const PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// Time after which requests are tried again that had no answer.
// As often as the Lease is renewed.
const RETRY: Duration = Duration::from_secs(2);
/// The longest time between two rounds.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// What fails when the API server does not answer.
const UNREACHABLE: &str = "write revisions and status of templates";
/// How long a replica that does not lead waits for a leader to keep what it serves.
// The Lease of a leader that died takes as long to expire.
const GRACE: Duration = Duration::from_secs(15);

/// The writer of one replica.
pub(super) struct Writer {
    rim: Arc<dyn Rim>,
    namespace: String,
    known: watch::Receiver<Arc<KnownTemplates>>,
    metrics: KeeperMetrics,
    reporter: Reporter,
    pauses: Pauses,
    leader: Leader,
    /// Since when what is served is not kept, by object.
    unkept_since: BTreeMap<String, Instant>,
}

impl Writer {
    pub(super) fn new(
        rim: Arc<dyn Rim>,
        namespace: String,
        known: watch::Receiver<Arc<KnownTemplates>>,
        metrics: KeeperMetrics,
    ) -> Self {
        Self {
            rim,
            namespace,
            known,
            metrics,
            reporter: Reporter::default(),
            pauses: Pauses::default(),
            leader: Leader::default(),
            unkept_since: BTreeMap::new(),
        }
    }

    pub(super) async fn keep(&mut self, term: &mut Term) {
        let mut led = false;
        loop {
            let leads = term.is_current();
            if leads != led {
                led = leads;
                self.leader = Leader::default();
                self.unkept_since.clear();
                self.metrics.leads(leads);
                info!(
                    "{} revisions and status of templates",
                    if leads { "keeps" } else { "no longer keeps" }
                );
            }
            let known = Arc::clone(&self.known.borrow_and_update());
            let begin = Instant::now();
            let wake = match (known.is_listed, leads) {
                (false, _) => Instant::now() + MAX_WAIT,
                (true, true) => self.lead(&known, term).await,
                (true, false) => self.follow(&known).await,
            };
            // With many templates a round takes long: others need the time, too.
            sleep(begin.elapsed().clamp(PAUSE, MAX_PAUSE)).await;
            self.wait(term, led, wake.min(Instant::now() + MAX_WAIT)).await;
        }
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, term: &mut Term, led: bool, wake: Instant) {
        let counting = async {
            match &mut self.leader.counting {
                Some(Counting(task)) => task.await,
                None => std::future::pending().await,
            }
        };
        let changed = async {
            if self.known.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let counted = tokio::select! {
            counted = counting => counted,
            () = changed => return,
            () = term.changed(led) => return,
            () = sleep_until(wake) => return,
        };
        self.leader.counting = None;
        match counted {
            Ok(Ok(counts)) => {
                self.metrics.done(Stage::CountPods, true);
                self.reporter.worked("count pods");
                self.leader.counts = Some(Arc::new(counts));
            }
            Ok(Err(error)) => self.failed(Stage::CountPods, "count pods", &error),
            // A panic is in the log.
            Err(_) => self.metrics.done(Stage::CountPods, false),
        }
    }

    /// Reads and writes what is due. Returns when to look again.
    async fn lead(&mut self, known: &Arc<KnownTemplates>, term: &Term) -> Instant {
        self.leader.note(known, Instant::now());
        self.read_leases().await;
        self.count_pods(known);
        let gone = self.gone(known).await;
        let findings = self.findings(known).await;
        let now = Instant::now();
        let replicas = self.leader.replicas.live(now);
        let is_read = self.leader.replicas.is_read();
        let (counts, time) = (self.leader.counts.clone(), self.rim.now());
        let known = Arc::clone(known);
        let writes = planned(move || {
            let (replicas, findings, counts) = (&*replicas, &*findings, counts.as_deref());
            let facts = Facts { replicas, findings, counts, now: time };
            plan::writes(&known, is_read.then_some(facts), &gone)
        });
        let mut writes = writes.await;
        writes.extend(self.leader.replicas.removals(now));
        let next = self.write(&writes, Some(term)).await;
        next.min(self.leader.due(now))
    }

    /// Keeps what this process serves, if no leader does. Returns when to look again.
    async fn follow(&mut self, known: &Arc<KnownTemplates>) -> Instant {
        let known = Arc::clone(known);
        let writes = planned(move || unkept(&known)).await;
        let now = Instant::now();
        let objects: BTreeSet<_> = writes.iter().map(Write::object).collect();
        self.unkept_since.retain(|object, _| objects.contains(object));
        for object in objects {
            self.unkept_since.entry(object).or_insert(now);
        }
        let since = &self.unkept_since;
        let is_due =
            |write: &Write| since.get(&write.object()).is_some_and(|since| now >= *since + GRACE);
        let (due, later): (Vec<_>, Vec<_>) = writes.into_iter().partition(is_due);
        let next = if later.is_empty() { now + MAX_WAIT } else { now + GRACE };
        self.write(&due, None).await.min(next)
    }

    async fn read_leases(&mut self) {
        if !self.leader.reads_leases(Instant::now()) {
            return;
        }
        let leases = self.rim.leases().await;
        let now = Instant::now();
        match leases {
            Ok(leases) => {
                self.metrics.done(Stage::ReadLeases, true);
                self.reporter.worked("read the Leases of the replicas");
                self.leader.replicas.see(&leases, now);
            }
            Err(error) => {
                self.failed(Stage::ReadLeases, "read the Leases of the replicas", &error);
                self.leader.replicas.lose();
            }
        }
        self.leader.has_read_leases(now);
    }

    /// Begins to count pods, if it is time.
    fn count_pods(&mut self, known: &KnownTemplates) {
        let now = Instant::now();
        if self.leader.counts_pods(now) {
            let count = self.rim.count_pods(counted(known));
            self.leader.begin_count(Counting(tokio::spawn(count)), now);
        }
    }

    /// The templates that are gone for good, by uid.
    async fn gone(&mut self, known: &KnownTemplates) -> BTreeSet<String> {
        let gone = self.leader.long_gone(Instant::now());
        if gone.is_empty() {
            return gone;
        }
        match self.rim.kinds().await {
            Ok(kinds) => of_kinds(known, gone, &kinds),
            Err(error) => {
                self.failed(Stage::ReadKinds, "read the kinds of templates", &error);
                BTreeSet::new()
            }
        }
    }

    async fn findings(&mut self, known: &Arc<KnownTemplates>) -> Arc<Findings> {
        let digest = digest_of(&served(known));
        if let Some(found) = self.leader.found(&digest) {
            return found;
        }
        let (known, namespace) = (Arc::clone(known), self.namespace.clone());
        // Many templates take some time.
        let found = spawn_blocking(move || Findings::of(&known, &namespace)).await;
        // A panic is in the log.
        let found = Arc::new(found.unwrap_or_default());
        self.leader.keep_findings(digest, Arc::clone(&found));
        found
    }

    /// Does the writes that need not wait, up to the most of a round. Returns when there is more to do.
    async fn write(&mut self, writes: &[Write], term: Option<&Term>) -> Instant {
        let begin = Instant::now();
        let may = |write: &&Write| self.pauses.may(write, begin);
        let due: Vec<_> = writes.iter().filter(may).collect();
        for write in due.iter().take(MAX_WRITES) {
            if term.is_some_and(|term| !term.is_current()) {
                return Instant::now() + RETRY;
            }
            let written = self.rim.write(write).await;
            let now = Instant::now();
            match written {
                Ok(()) => {
                    self.metrics.done(Stage::of(write), true);
                    self.reporter.wrote(write);
                    self.reporter.worked(UNREACHABLE);
                    self.pauses.wrote(write, now);
                }
                Err(error) if error.is_conflict() => self.pauses.wrote(write, now),
                Err(error) => {
                    self.pauses.failed(write, now);
                    if !error.is_answer() {
                        self.failed(Stage::of(write), UNREACHABLE, &error);
                        return now + RETRY;
                    }
                    if !error.is_gone() {
                        self.failed(Stage::of(write), &what(write), &error);
                    }
                }
            }
        }
        let now = Instant::now();
        if due.len() > MAX_WRITES {
            return now;
        }
        self.pauses.next(writes, now).unwrap_or(now + MAX_WAIT)
    }

    fn failed(&mut self, stage: Stage, what: &str, error: &RequestError) {
        self.metrics.done(stage, false);
        self.reporter.failed(what, &with_causes(error));
    }
}

/// Plans on a thread for work that takes long.
async fn planned(plan: impl FnOnce() -> Vec<Write> + Send + 'static) -> Vec<Write> {
    // A panic is in the log.
    spawn_blocking(plan).await.unwrap_or_default()
}
