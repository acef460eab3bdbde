//! Keepers at a simulated API server: two replicas, of which one leads, while others change and remove
//! what they keep, and requests fail.
//!
//! The model (`model.rs`) checks the rules in every interleaving. This checks that keepers follow them.

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Mutex, MutexGuard},
};

use futures_util::future::BoxFuture;
use injectd_cluster::watch::Update;
use injectd_telemetry::{metrics::Registry, readiness::Readiness};
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{
            MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, WebhookClientConfig,
        },
        core::v1::Secret,
    },
};
use kube::api::ObjectMeta;
use proptest::prelude::*;
use tokio::{runtime, time::sleep};

use super::*;
use crate::certificates::{
    authority::Certificate,
    rim::{Answer, Bundle, RequestError},
    serving::PROPAGATION,
    state::{Data, verify},
};

const BEGIN: i64 = 1_800_000_000;
const NAMESPACE: &str = "x";
const SERVICE: &str = "injectd";
const CONFIGURATIONS: [&str; 2] = ["a", "b"];
const LIFETIMES: Lifetimes = Lifetimes { ca: Duration::from_mins(8), leaf: Duration::from_mins(4) };
/// By then keepers have repaired what others did: a lost Secret is waited for, and requests are repeated.
const REPAIRED: Duration = Duration::from_mins(2);
/// How late an API server may see a change; less than [`PROPAGATION`].
const DELAY: Duration = Duration::from_secs(4);
const _: () = assert!(DELAY.as_secs() < PROPAGATION.as_secs());
/// Time between two looks at what is served.
const TICK: Duration = Duration::from_secs(5);
/// Events of a run.
const EVENTS: usize = 8;

/// What others do.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// So many [`TICK`]s pass.
    Ticks(u32),
    /// The `caBundle` of a configuration is overwritten.
    Overwrite(usize),
    /// The Secret is deleted.
    LoseSecret,
    /// The Secret has other data.
    ForeignSecret,
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

/// What an API server has.
struct Store {
    secret: Option<Secret>,
    configurations: BTreeMap<String, MutatingWebhookConfiguration>,
    /// Earlier bundles that some API server may still have, and until when.
    late: Vec<(Vec<u8>, Instant)>,
    /// The last `resourceVersion`.
    version: u64,
    fault: Option<Fault>,
}

/// An API server.
#[derive(Clone)]
struct Server {
    store: Arc<Mutex<Store>>,
    begin: Instant,
    /// Changes wake the watches.
    changes: Arc<watch::Sender<()>>,
}

impl Server {
    fn new() -> Self {
        let configurations = CONFIGURATIONS.map(|name| {
            let service = ServiceReference {
                name: SERVICE.into(),
                namespace: NAMESPACE.into(),
                ..ServiceReference::default()
            };
            let client_config =
                WebhookClientConfig { service: Some(service), ..WebhookClientConfig::default() };
            let webhook =
                MutatingWebhook { name: "w".into(), client_config, ..MutatingWebhook::default() };
            let configuration = MutatingWebhookConfiguration {
                metadata: named(name),
                webhooks: Some(vec![webhook]),
            };
            (name.to_owned(), configuration)
        });
        let store = Store {
            secret: None,
            configurations: configurations.into(),
            late: Vec::new(),
            version: 0,
            fault: None,
        };
        Self {
            store: Arc::new(Mutex::new(store)),
            begin: Instant::now(),
            changes: Arc::new(watch::Sender::new(())),
        }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect("a store")
    }

    /// An answer, unless the request is to fail.
    fn answer<'a, T: Send + 'a>(
        &self,
        act: impl FnOnce(&mut Store) -> Result<T, RequestError>,
    ) -> Answer<'a, T> {
        let mut store = self.store();
        let before = store.version;
        let answer = match store.fault.take() {
            Some(Fault::Unreachable) => Err(RequestError::Timeout),
            Some(Fault::Conflict) => Err(conflict()),
            Some(Fault::Lost) => act(&mut store).and(Err(RequestError::Timeout)),
            None => act(&mut store),
        };
        let is_changed = store.version != before;
        drop(store);
        if is_changed {
            self.changes.send_replace(());
        }
        Box::pin(ready(answer))
    }

    fn happens(&self, event: Event) {
        let mut store = self.store();
        match event {
            Event::Ticks(_) => {}
            Event::Overwrite(index) => {
                drop(store.set_bundle(CONFIGURATIONS[index], b"none"));
            }
            Event::LoseSecret => store.secret = None,
            Event::ForeignSecret => {
                let data = BTreeMap::from([("other".to_owned(), b"data".to_vec())]);
                drop(store.set_secret(data));
            }
            Event::Fault(fault) => store.fault = Some(fault),
        }
        drop(store);
        self.changes.send_replace(());
    }

    /// Whether all API servers verify a certificate: by the `caBundle` of every configuration as it is, and as
    /// it was before.
    fn verifies(&self, leaf: &Leaf) -> bool {
        let store = self.store();
        let name = &service_names(SERVICE, NAMESPACE)[0];
        let late = store.late.iter().filter(|(_, until)| Instant::now() < *until);
        let late = late.map(|(bundle, _)| &**bundle);
        store.configurations.values().map(bundle).chain(late).all(|bundle| {
            let cas = Certificate::of_pem(bundle);
            verify(&cas.iter().collect::<Vec<_>>(), leaf, name).is_ok()
        })
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        resource_version: Some("0".into()),
        ..ObjectMeta::default()
    }
}

fn bundle(configuration: &MutatingWebhookConfiguration) -> &[u8] {
    let webhook = configuration.webhooks.as_ref().and_then(|webhooks| webhooks.first());
    let bundle = webhook.and_then(|webhook| webhook.client_config.ca_bundle.as_ref());
    bundle.map_or(&[], |bundle| &bundle.0)
}

fn conflict() -> RequestError {
    let status = kube::core::Status { code: 409, ..kube::core::Status::default() };
    RequestError::Api(kube::Error::Api(status.into()))
}

impl Store {
    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn set_secret(&mut self, data: Data) -> Secret {
        let data = data.into_iter().map(|(key, value)| (key, ByteString(value))).collect();
        let metadata = ObjectMeta { resource_version: Some(self.next_version()), ..named("s") };
        let secret = Secret { data: Some(data), metadata, ..Secret::default() };
        self.secret.insert(secret).clone()
    }

    fn set_bundle(&mut self, name: &str, bundle: &[u8]) -> MutatingWebhookConfiguration {
        let version = self.next_version();
        let configuration = self.configurations.get_mut(name).expect("a configuration");
        self.late.push((self::bundle(configuration).to_vec(), Instant::now() + DELAY));
        configuration.metadata.resource_version = Some(version);
        for webhook in configuration.webhooks.iter_mut().flatten() {
            webhook.client_config.ca_bundle = Some(ByteString(bundle.to_vec()));
        }
        configuration.clone()
    }
}

impl Rim for Server {
    fn now(&self) -> i64 {
        BEGIN + self.begin.elapsed().as_secs().cast_signed()
    }

    fn watch(
        &self,
        names: &[String],
        _: &KindMetrics,
        sender: &mpsc::Sender<Found>,
    ) -> BoxFuture<'static, ()> {
        let (server, names, sender) = (self.clone(), names.to_vec(), sender.clone());
        let mut changes = self.changes.subscribe();
        Box::pin(async move {
            loop {
                changes.borrow_and_update();
                let secret = server.store().secret.clone();
                let secret = Found::Secret(Update::Listed(secret.into_iter().collect()));
                let of = |name: &String| {
                    let found = server.store().configurations.get(name).cloned();
                    Found::Webhooks(name.clone(), Update::Listed(found.into_iter().collect()))
                };
                for found in [secret].into_iter().chain(names.iter().map(of)) {
                    if sender.send(found).await.is_err() {
                        return;
                    }
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        })
    }

    fn read_secret(&self) -> Answer<'_, Option<Secret>> {
        self.answer(|store| Ok(store.secret.clone()))
    }

    fn read_webhooks<'a>(
        &'a self,
        name: &'a str,
    ) -> Answer<'a, Option<MutatingWebhookConfiguration>> {
        self.answer(|store| Ok(store.configurations.get(name).cloned()))
    }

    fn write_secret(&self, read: Option<Secret>, data: Data) -> Answer<'_, Secret> {
        self.answer(|store| {
            let version = |secret: &Secret| secret.metadata.resource_version.clone();
            if read.as_ref().map(version) != store.secret.as_ref().map(version) {
                return Err(conflict());
            }
            Ok(store.set_secret(data))
        })
    }

    fn write_bundle<'a>(&'a self, bundle: Bundle<'a>) -> Answer<'a, MutatingWebhookConfiguration> {
        let Bundle { name, version, indices, pem } = bundle;
        assert_eq!(indices, [0]);
        self.answer(|store| {
            if store.configurations[name].metadata.resource_version.as_deref() != Some(version) {
                return Err(conflict());
            }
            Ok(store.set_bundle(name, pem.as_bytes()))
        })
    }
}

type Leaves = watch::Receiver<Option<Arc<Leaf>>>;

/// Starts a keeper; returns what it serves.
fn start(server: &Server, mut term: Term) -> Leaves {
    let uri = "http://127.0.0.1:1".parse().expect("a URI");
    // For the events, which a simulation does not write.
    let client = Client::try_from(kube::Config::new(uri)).expect("a client");
    let options = Options {
        namespace: NAMESPACE.into(),
        service: SERVICE.into(),
        secret: "s".into(),
        configurations: CONFIGURATIONS.map(str::to_owned).to_vec(),
        lifetimes: LIFETIMES,
        lease: LeaseOptions::new(NAMESPACE, "l", "i"),
    };
    let metrics = CertificateMetrics::new(Arc::new(Registry::new()));
    let hold = Readiness::default().hold();
    let (mut keeper, leaves, _) =
        Keeper::of(Box::new(server.clone()), client, options, metrics, hold);
    tokio::spawn(async move {
        let (sender, mut found) = mpsc::channel(QUEUE);
        let watch =
            keeper.rim.watch(&keeper.options.configurations, &KindMetrics::default(), &sender);
        drop(sender);
        tokio::select! {
            () = watch => {}
            () = keeper.keep(&mut found, &mut term) => {}
        }
    });
    leaves
}

/// Asserts that every replica serves a certificate that API servers verify, and that has not ended.
fn must_be_verified(server: &Server, replicas: &[Leaves]) {
    for (index, leaves) in replicas.iter().enumerate() {
        let leaf = leaves.borrow().clone().expect("a certificate");
        assert!(!leaf.certificate.has_ended(server.now()), "replica {index}");
        assert!(server.verifies(&leaf), "replica {index}");
    }
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![Just(Fault::Unreachable), Just(Fault::Lost), Just(Fault::Conflict)];
    prop_oneof![
        2 => (1_u32..120).prop_map(Event::Ticks),
        2 => (0..CONFIGURATIONS.len()).prop_map(Event::Overwrite),
        1 => Just(Event::LoseSecret),
        1 => Just(Event::ForeignSecret),
        3 => fault.prop_map(Event::Fault),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_replica_serves_what_api_servers_verify_again(
        events in proptest::collection::vec(event(), 1..EVENTS),
    ) {
        let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let server = Server::new();
            let lease = LeaseOptions::new(NAMESPACE, "l", "i");
            let uri = "http://127.0.0.1:1".parse().expect("a URI");
            let client = Client::try_from(kube::Config::new(uri)).expect("a client");
            let follower = Elector::new(client, lease).term();
            let replicas = [start(&server, Term::endless()), start(&server, follower)];
            sleep(REPAIRED).await;
            must_be_verified(&server, &replicas);
            for event in events {
                server.happens(event);
                match event {
                    // Certificates are renewed meanwhile, and verified all the time.
                    Event::Ticks(count) => for _ in 0..count {
                        sleep(TICK).await;
                        must_be_verified(&server, &replicas);
                    },
                    _ => sleep(REPAIRED).await,
                }
                must_be_verified(&server, &replicas);
            }
        });
    }
}
