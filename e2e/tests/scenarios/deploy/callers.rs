//! Callers beside the API server, which keeps its connections and verifies few certificates. They
//! connect anew to each replica, and verify its certificate by the `caBundle` as it is, and as an API
//! server knows it that is some seconds late.

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_harness::{
    api::{Api, WEBHOOK_CONFIGURATIONS},
    expect::{Outcome, failed},
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::TLS13,
};
use tokio::{
    net::TcpStream,
    task::JoinHandle,
    time::{Instant, interval, timeout},
};
use tokio_rustls::TlsConnector;

use super::release::Release;

/// How late the callers are; injectd waits 5 s for API servers.
// An API server may use a bundle that was replaced: it learns of the change by a watch.
const LATE: [Duration; 2] = [Duration::ZERO, Duration::from_secs(4)];
/// Time between two rounds of calls.
const PAUSE: Duration = Duration::from_millis(200);
/// Time for a connection, on a machine that is busy.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Replicas that are called.
#[derive(Clone, Debug, Default)]
pub(super) struct Endpoints(Arc<Mutex<Vec<SocketAddr>>>);

impl Endpoints {
    pub(super) fn set(&self, replicas: Vec<SocketAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = replicas;
    }

    fn get(&self) -> Vec<SocketAddr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Callers that run until they are stopped or dropped.
pub(super) struct Callers {
    is_stopped: Arc<AtomicBool>,
    task: JoinHandle<Outcome<usize>>,
}

impl Callers {
    pub(super) fn start(api: &Api, release: &Release, endpoints: &Endpoints) -> Self {
        let is_stopped = Arc::<AtomicBool>::default();
        let calls = call(api.clone(), release.clone(), endpoints.clone(), Arc::clone(&is_stopped));
        Self { is_stopped, task: tokio::spawn(calls) }
    }

    /// Stops them, and returns how many connections there were.
    ///
    /// # Errors
    ///
    /// Names the first replica whose certificate a caller rejected.
    pub(super) async fn stop(mut self) -> Outcome<usize> {
        self.is_stopped.store(true, Ordering::Relaxed);
        (&mut self.task).await?
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn call(
    api: Api,
    release: Release,
    endpoints: Endpoints,
    is_stopped: Arc<AtomicBool>,
) -> Outcome<usize> {
    let mut known = VecDeque::new();
    let mut ticks = interval(PAUSE);
    let mut calls = 0;
    while !is_stopped.load(Ordering::Relaxed) {
        ticks.tick().await;
        known.push_back((Instant::now(), bundles(&api, &release).await?));
        for late in LATE {
            let at = Instant::now().checked_sub(late);
            let Some(bundles) = at.and_then(|at| as_of(&known, at)) else { continue };
            for replica in endpoints.get() {
                for bundle in bundles {
                    calls += 1;
                    let handshake = Box::pin(handshake(&release, replica, bundle));
                    let outcome = timeout(CONNECT_TIMEOUT, handshake).await;
                    let outcome = outcome.unwrap_or_else(|_| Err(failed("no answer in time")));
                    outcome.map_err(|why| {
                        failed(format!("{replica}, {} s late: {why}", late.as_secs()))
                    })?;
                }
            }
        }
        // What even the latest caller has seen replaced.
        while known.get(1).is_some_and(|(since, _)| since.elapsed() > LATE[1]) {
            known.pop_front();
        }
    }
    Ok(calls)
}

/// The bundles as they were at a time.
fn as_of(known: &VecDeque<(Instant, BTreeSet<String>)>, at: Instant) -> Option<&BTreeSet<String>> {
    known.iter().rev().find(|(since, _)| *since <= at).map(|(_, bundles)| bundles)
}

/// The different bundles of the release's webhooks, as PEM.
async fn bundles(api: &Api, release: &Release) -> Outcome<BTreeSet<String>> {
    let mut bundles = BTreeSet::new();
    for name in release.configurations() {
        let found = api.get(&format!("{WEBHOOK_CONFIGURATIONS}/{name}")).await?.ok()?;
        for webhook in found["webhooks"].as_array().into_iter().flatten() {
            let bundle = webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default();
            bundles.insert(String::from_utf8(BASE64_STANDARD.decode(bundle)?)?);
        }
    }
    Ok(bundles)
}

/// Verifies the certificate that a replica serves.
async fn handshake(release: &Release, replica: SocketAddr, bundle: &str) -> Outcome {
    let mut roots = RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(ca?)?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(format!("{0}.{0}.svc", release.0))?;
    let stream = TcpStream::connect(replica).await?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    Ok(())
}
