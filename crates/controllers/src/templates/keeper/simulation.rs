//! Keepers at a simulated API server: replicas of which one leads, while a user changes templates, and requests
//! fail.
//!
//! The model (`model.rs`) checks the rules in every interleaving. This checks that keepers follow them.

use std::{
    collections::BTreeSet,
    future::ready,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use injectd_cluster::lease::Term;
use injectd_profiles::template_plane::HASH_LABEL;
use injectd_telemetry::metrics::Registry;
use injectd_templates::object::Identity;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use proptest::prelude::*;
use tokio::{
    runtime,
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::*;
use crate::templates::{
    model::{
        plane::Plane,
        store::{Refusal, Store, identity, is_whole},
    },
    pods::PodCounts,
    rim::{Answer, RequestError},
    write::Write,
};

const NAMESPACE: &str = "injectd";
const REPLICAS: usize = 2;
/// By then keepers have done what is due.
const DONE: Duration = Duration::from_mins(1);
/// By then they have done it after requests failed, too, and revisions of templates that are gone are removed.
const REPAIRED: Duration = Duration::from_mins(12);

mod leaders;
mod many;

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Nothing is done, and there is no answer.
    Unreachable,
    /// What was asked is done, and the answer is lost.
    Lost,
    /// Someone else wrote before.
    Conflict,
    /// The API server has no permission for it.
    Forbidden,
}

/// What others do.
#[derive(Debug, Clone, Copy)]
enum Event {
    Edit(usize, Option<u8>),
    Delete(usize),
    Lose(usize),
    /// The next request fails in this way.
    Fault(Fault),
}

#[derive(Default)]
struct State {
    store: Store,
    planes: [Plane; REPLICAS],
    faults: Vec<Fault>,
    is_away: bool,
    /// Whether the watches are late: a write is not seen at once.
    is_late: bool,
    /// A replica that hangs, and in which of its next writes.
    halt: Option<leaders::Halt>,
    /// The objects that were written, without the Leases of replicas.
    written: Vec<String>,
    /// All requests.
    requests: usize,
    leases: usize,
    counts: usize,
}

/// An API server, and what the replicas know of it.
#[derive(Clone)]
struct Server {
    /// The replica that asks.
    replica: usize,
    state: Arc<Mutex<State>>,
    known: Arc<[watch::Sender<Arc<KnownTemplates>>; REPLICAS]>,
}

fn error(code: u16) -> RequestError {
    let status = kube::core::Status { code, ..kube::core::Status::default() };
    RequestError::Api(kube::Error::Api(status.into()))
}

impl Server {
    fn new() -> Self {
        let sender = |_| watch::Sender::new(Arc::default());
        let known = Arc::new(std::array::from_fn(sender));
        let server = Self { replica: 0, state: Arc::default(), known };
        server.show();
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a state")
    }

    /// All replicas see what is there.
    fn show(&self) {
        let now = Instant::now().into_std();
        let mut state = self.state();
        let State { store, planes, .. } = &mut *state;
        for (plane, sender) in planes.iter_mut().zip(&*self.known) {
            plane.see_templates(store, now);
            plane.see_revisions(store, now);
            sender.send_replace(Arc::new(plane.known().clone()));
        }
    }

    /// An answer, unless the request is to fail.
    fn answer<'a, T: Send + 'a>(
        &self,
        act: impl FnOnce(&mut State) -> Result<T, RequestError>,
    ) -> Answer<'a, T> {
        let mut state = self.state();
        state.requests += 1;
        let fault = if state.is_away { Some(Fault::Unreachable) } else { state.faults.pop() };
        let answer = match fault {
            Some(Fault::Unreachable) => Err(RequestError::Timeout),
            Some(Fault::Conflict) => Err(error(409)),
            Some(Fault::Forbidden) => Err(error(403)),
            Some(Fault::Lost) => act(&mut state).and(Err(RequestError::Timeout)),
            None => act(&mut state),
        };
        drop(state);
        Box::pin(ready(answer))
    }

    fn happens(&self, event: Event) {
        let mut state = self.state();
        match event {
            Event::Edit(index, spec) => state.store.edit(&identity(index), spec),
            Event::Delete(index) => state.store.delete(&identity(index)),
            Event::Lose(index) => state.store.lose(index),
            Event::Fault(fault) => state.faults.push(fault),
        }
        drop(state);
        self.show();
    }

    /// The objects that were written since the last call.
    fn written(&self) -> Vec<String> {
        std::mem::take(&mut self.state().written)
    }

    /// How often Leases of replicas were written, and pods were counted.
    fn counted(&self) -> [usize; 2] {
        let state = self.state();
        [state.leases, state.counts]
    }

    fn known(&self) -> Arc<KnownTemplates> {
        Arc::clone(&self.known[0].borrow())
    }
}

impl Rim for Server {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn write<'a>(&'a self, write: &'a Write) -> Answer<'a, ()> {
        let halt = leaders::halt(self);
        if halt.is_some() {
            return Box::pin(leaders::hang(self, write, halt));
        }
        let answer = self.answer(|state| {
            state.written.push(write.object());
            state.store.write(write).map_err(|refusal| match refusal {
                Refusal::Conflict => error(409),
                Refusal::Gone => error(404),
            })
        });
        if !self.state().is_late {
            self.show();
        }
        answer
    }

    fn leases(&self) -> Answer<'_, Vec<Lease>> {
        self.answer(|state| Ok(state.store.leases()))
    }

    fn write_lease<'a>(&'a self, lease: &'a Lease) -> Answer<'a, ()> {
        self.answer(|state| {
            state.leases += 1;
            state.store.write_lease(lease);
            Ok(())
        })
    }

    fn remove_lease<'a>(&'a self, _: &'a str) -> Answer<'a, ()> {
        self.answer(|_| Ok(()))
    }

    fn count_pods(&self, _: BTreeSet<Identity>) -> Answer<'static, PodCounts> {
        self.answer(|state| {
            state.counts += 1;
            Ok(PodCounts::default())
        })
    }

    fn kinds(&self) -> Answer<'_, BTreeSet<String>> {
        let kinds = ["SidecarTemplate", "ClusterSidecarTemplate"].map(str::to_owned);
        self.answer(|_| Ok(kinds.into()))
    }
}

fn client() -> Client {
    let uri = "http://127.0.0.1:1".parse().expect("a URI");
    Client::try_from(kube::Config::new(uri)).expect("a client")
}

/// A term that does not begin.
fn no_term() -> Term {
    Elector::new(client(), LeaseOptions::new(NAMESPACE, "l", "i")).term()
}

/// Starts the tasks of a replica.
fn start(server: &Server, replica: usize, mut term: Term) -> JoinHandle<()> {
    let known = server.known[replica].subscribe();
    let metrics = KeeperMetrics::new(Arc::new(Registry::new()));
    let rim: Arc<dyn Rim> = Arc::new(Server { replica, ..server.clone() });
    let mut reported = Reported {
        rim: Arc::clone(&rim),
        namespace: NAMESPACE.into(),
        replica: format!("replica-{replica}"),
        pod_uid: None,
        known: known.clone(),
        errors: Arc::default(),
        metrics: metrics.clone(),
    };
    let mut writer = Writer::new(rim, NAMESPACE.into(), known, metrics);
    tokio::spawn(async move {
        tokio::select! {
            () = reported.keep() => {}
            () = writer.keep(&mut term) => {}
        }
    })
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(test)
}

/// Asserts that what is served is kept, and that status says so.
fn must_be_done(server: &Server) {
    let known = server.known();
    for (identity, template) in &known.templates {
        let status = &template.object.data["status"];
        let of = |name: &str| {
            let conditions = status["conditions"].as_array().map(Vec::as_slice);
            let mut conditions = conditions.unwrap_or_default().iter();
            let found = conditions.find(|condition| condition["type"] == name);
            found.and_then(|found| found["status"].as_str()).unwrap_or_default().to_owned()
        };
        let is_good = if template.read.is_ok() { "True" } else { "False" };
        assert_eq!(of("Accepted"), is_good, "{identity}: {status}");
        assert_eq!(of("Programmed"), is_good, "{identity}: {status}");
        assert_eq!([of("Conflicting"), of("Degraded")], ["False", "False"], "{identity}");
        assert_eq!(status["observedGeneration"].as_i64(), template.object.metadata.generation);
        let Some(revision) = &template.served else { continue };
        assert_eq!(status["currentRevision"], revision.hash.as_str(), "{identity}");
        let uid = template.object.metadata.uid.as_deref().unwrap_or_default();
        let state = server.state();
        let is_kept = state.store.kept(uid).iter().any(|kept| {
            let labels = kept.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(HASH_LABEL)) == Some(&revision.hash)
                && is_whole(kept)
        });
        assert!(is_kept, "{identity}");
    }
}

#[test]
fn nothing_is_written_when_all_is_done() {
    run(async {
        let server = Server::new();
        server.happens(Event::Edit(0, Some(1)));
        server.happens(Event::Edit(1, None));
        let replicas = [start(&server, 0, Term::endless()), start(&server, 1, no_term())];
        sleep(DONE).await;
        must_be_done(&server);
        let written = server.written();
        assert!(written.len() <= 8, "{written:?}");
        let [leases, counts] = server.counted();
        sleep(Duration::from_hours(1)).await;
        assert_eq!(server.written(), [""; 0]);
        // Each replica renews its Lease every ten seconds, and the leader counts pods.
        let [all_leases, all_counts] = server.counted();
        let (leases, counts) = (all_leases - leases, all_counts - counts);
        assert!((600..=722).contains(&leases), "{leases}");
        assert!((11..=12).contains(&counts), "{counts}");
        replicas.iter().for_each(JoinHandle::abort);
    });
}

#[test]
fn an_api_server_that_was_away_has_everything_soon() {
    run(async {
        let server = Server::new();
        server.happens(Event::Edit(0, Some(1)));
        let _leader = start(&server, 0, Term::endless());
        let _other = start(&server, 1, no_term());
        sleep(DONE).await;
        server.state().is_away = true;
        server.happens(Event::Edit(0, Some(2)));
        sleep(Duration::from_mins(30)).await;
        assert!(server.known().templates[&identity(0)].served.is_some());
        server.state().is_away = false;
        sleep(REPAIRED).await;
        must_be_done(&server);
    });
}

#[test]
fn a_replica_keeps_what_it_serves_if_there_is_no_leader() {
    run(async {
        let server = Server::new();
        let replica = start(&server, 0, no_term());
        server.happens(Event::Edit(0, Some(1)));
        sleep(Duration::from_secs(10)).await;
        assert_eq!(server.state().store.revisions().len(), 0, "a leader may be on its way");
        sleep(Duration::from_secs(10)).await;
        assert_eq!(server.state().store.revisions().len(), 1);
        sleep(DONE).await;
        let written = server.written();
        assert_eq!(written.len(), 1, "{written:?}");
        replica.abort();
    });
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![
        Just(Fault::Unreachable),
        Just(Fault::Lost),
        Just(Fault::Conflict),
        Just(Fault::Forbidden),
    ];
    let spec = prop_oneof![2 => (0..4_u8).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        4 => (0..2_usize, spec).prop_map(|(index, spec)| Event::Edit(index, spec)),
        1 => (0..2_usize).prop_map(Event::Delete),
        1 => (0..4_usize).prop_map(Event::Lose),
        3 => fault.prop_map(Event::Fault),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn all_is_done_whatever_fails(
        events in proptest::collection::vec((event(), 0..20_000_u64), 1..20),
    ) {
        run(async {
            let server = Server::new();
            let _leader = start(&server, 0, Term::endless());
            let _other = start(&server, 1, no_term());
            for (event, milliseconds) in events {
                server.happens(event);
                sleep(Duration::from_millis(milliseconds)).await;
            }
            server.state().faults.clear();
            sleep(REPAIRED).await;
            must_be_done(&server);
            server.written();
            sleep(REPAIRED).await;
            assert_eq!(server.written(), [""; 0], "nothing is left to do");
        });
    }
}
