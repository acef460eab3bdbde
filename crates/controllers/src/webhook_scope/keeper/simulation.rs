//! Keepers at a simulated API server: two replicas, of which one leads, while templates change, others write the
//! configuration, and requests fail.
//!
//! The model (`model.rs`) checks the rules in every interleaving. This checks that keepers follow them.

use std::{
    future::ready,
    sync::{Mutex, MutexGuard},
};

use futures_util::future::BoxFuture;
use injectd_telemetry::metrics::Registry;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::core::Status;
use proptest::prelude::*;
use tokio::{runtime, time::sleep};

use super::*;
use crate::{
    certificates::Answer,
    webhook_scope::{
        KEPT,
        edits::Edit,
        memory::tests::{known, template},
        model::{Edit as Others, Refused, Server, service},
    },
};

/// By then a keeper has written what is due: requests are repeated.
const REPAIRED: Duration = Duration::from_secs(10);

/// What happens.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The template has another label.
    Template(usize),
    /// There is no template.
    NoTemplate,
    Others(Others),
    /// The next request fails in this way.
    Fault(Fault),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing is done, and there is no answer.
    Unreachable,
    /// What was asked is done, and the answer is lost.
    Lost,
    /// Someone else wrote before.
    Conflict,
}

/// An API server.
#[derive(Clone)]
struct Api {
    store: Arc<Mutex<Store>>,
    /// Changes wake the watches.
    changes: Arc<watch::Sender<()>>,
}

struct Store {
    server: Server,
    fault: Option<Fault>,
    writes: usize,
}

impl Api {
    fn new() -> Self {
        let store = Store { server: Server::new(), fault: None, writes: 0 };
        Self { store: Arc::new(Mutex::new(store)), changes: Arc::new(watch::Sender::new(())) }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect("a store")
    }

    fn answer<'a, T: Send + 'a>(
        &self,
        act: impl FnOnce(&mut Store) -> Result<T, RequestError>,
    ) -> Answer<'a, T> {
        let mut store = self.store();
        let answer = match store.fault.take() {
            Some(Fault::Unreachable) => Err(RequestError::Timeout),
            Some(Fault::Conflict) => Err(refused(409)),
            Some(Fault::Lost) => act(&mut store).and(Err(RequestError::Timeout)),
            None => act(&mut store),
        };
        drop(store);
        Box::pin(ready(answer))
    }
}

fn refused(code: u16) -> RequestError {
    RequestError::Api(kube::Error::Api(Status { code, ..Status::default() }.into()))
}

impl Rim for Api {
    fn watch(&self, _: &KindMetrics, sender: &mpsc::Sender<Found>) -> BoxFuture<'static, ()> {
        let (api, sender, mut changes) = (self.clone(), sender.clone(), self.changes.subscribe());
        Box::pin(async move {
            loop {
                changes.borrow_and_update();
                let found = api.store().server.read();
                let is_gone =
                    sender.send(Found::Listed(found.into_iter().collect())).await.is_err();
                if is_gone || changes.changed().await.is_err() {
                    return;
                }
            }
        })
    }

    fn read(&self) -> Answer<'_, Option<MutatingWebhookConfiguration>> {
        self.answer(|store| Ok(store.server.read()))
    }

    fn write(&self, version: &str, edits: &[Edit]) -> Answer<'_, MutatingWebhookConfiguration> {
        let written = self.answer(|store| {
            store.writes += 1;
            store.server.write(version, edits).map_err(|refusal| match refusal {
                Refused::Conflict => refused(409),
                Refused::Conditions => refused(422),
            })
        });
        self.changes.send_replace(());
        written
    }
}

/// Starts a keeper.
fn start(api: &Api, known: &Known, mut term: Term) {
    let uri = "http://127.0.0.1:1".parse().expect("a URI");
    // For the events, which a simulation does not write.
    let client = Client::try_from(kube::Config::new(uri)).expect("a client");
    let options = Options {
        configuration: "injectd-templates".into(),
        service: service(),
        own_namespace: None,
        lease: LeaseOptions::new("mesh", "l", "i"),
    };
    let metrics = ScopeMetrics::new(Arc::new(Registry::new()));
    let (mut keeper, _) = Keeper::of(Box::new(api.clone()), client, options, metrics);
    let mut known = known.clone();
    tokio::spawn(async move {
        let (sender, mut found) = mpsc::channel(QUEUE);
        let watch = keeper.rim.watch(&KindMetrics::default(), &sender);
        drop(sender);
        tokio::select! {
            () = watch => {}
            () = keeper.keep(&mut found, &mut known, &mut term) => {}
        }
    });
}

/// Which labels are asked for, of pods that are called for.
fn asked(api: &Api) -> Option<Vec<String>> {
    let entries = api.store().server.entries()?;
    let label = |at: &usize| format!("{entries:?}").contains(&format!("\"w{at}\""));
    Some((0..3).filter(label).map(|at| format!("w{at}")).collect())
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![Just(Fault::Unreachable), Just(Fault::Lost), Just(Fault::Conflict)];
    prop_oneof![
        3 => (0..3_usize).prop_map(Event::Template),
        1 => Just(Event::NoTemplate),
        3 => proptest::sample::select(&Others::ALL).prop_map(Event::Others),
        3 => fault.prop_map(Event::Fault),
    ]
}

async fn run(events: Vec<Event>) {
    let api = Api::new();
    let (sender, receiver) = watch::channel(Arc::new(KnownTemplates::default()));
    let uri = "http://127.0.0.1:1".parse().expect("a URI");
    let client = Client::try_from(kube::Config::new(uri)).expect("a client");
    let follower = Elector::new(client, LeaseOptions::new("mesh", "l", "i")).term();
    start(&api, &receiver, Term::endless());
    start(&api, &receiver, follower);
    sleep(REPAIRED).await;
    assert_eq!(api.store().writes, 0, "nothing is known of templates");
    let mut label = None;
    sender.send_replace(Arc::new(known([])));
    for event in events {
        match event {
            Event::Template(at) => {
                label = Some(at);
                sender.send_replace(Arc::new(known([&template("a", &format!("w{at}"))])));
            }
            Event::NoTemplate => {
                label = None;
                sender.send_replace(Arc::new(known([])));
            }
            Event::Others(edit) => api.store().server.edit(edit),
            Event::Fault(fault) => api.store().fault = Some(fault),
        }
        api.changes.send_replace(());
        sleep(REPAIRED).await;
        let expected = label.map(|at| format!("w{at}"));
        if let (Some(asked), Some(expected)) = (asked(&api), &expected) {
            let is_wide = asked.is_empty();
            assert!(is_wide || asked.contains(expected), "{asked:?} lacks {expected}");
        }
    }
    sleep(2 * KEPT + REPAIRED).await;
    let expected: Vec<_> = label.map(|at| format!("w{at}")).into_iter().collect();
    if let Some(asked) = asked(&api) {
        assert_eq!(asked, expected);
    }
    let writes = api.store().writes;
    sleep(Duration::from_hours(2)).await;
    assert_eq!(api.store().writes, writes, "nothing is due");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_keeper_follows_the_templates(events in proptest::collection::vec(event(), 1..10)) {
        let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(run(events));
    }
}
