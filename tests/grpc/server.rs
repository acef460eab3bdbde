//! A gRPC server in memory, and its client; `access` tests servers that authenticate callers.

use std::{
    io,
    sync::{Arc, Mutex},
};

use hyper_util::rt::{TokioExecutor, TokioIo};
use injectd::{
    grpc::{Access, Callers, Grpc, Life, v1::injector_client::InjectorClient},
    observer::Observer,
    server::{EvaluationTurns, Gate, Limits, Share, Shutdown},
};
use injectd_profiles::{Injector, Profile, Profiles};
use injectd_telemetry::readiness::Readiness;
use tonic::transport::{Channel, Endpoint};

/// The services of a server without access control.
pub(crate) fn services(injector: Arc<Injector>, readiness: Readiness, limits: &Limits) -> Grpc {
    services_of(Profile::Linkerd(injector), readiness, limits)
}

/// The same for any mesh.
pub(crate) fn services_of(
    profile: impl Into<Profiles>,
    readiness: Readiness,
    limits: &Limits,
) -> Grpc {
    let access = Arc::new(Access::new(Callers::Anyone, None));
    let shutdown = Shutdown::after(std::future::pending());
    let turns = EvaluationTurns::of_runtime(limits);
    Grpc::new(profile, limits, observer(), access, Life { readiness, shutdown, turns })
}

pub(crate) fn observer() -> Observer {
    Observer::default()
}

/// A channel to services in the same process.
pub(crate) async fn channel(services: Grpc) -> Channel {
    let (client, server) = tokio::io::duplex(64 << 10);
    let gate = Gate::new(services, Some(Share::default()), Arc::default());
    tokio::spawn(async move {
        let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        drop(http.serve_connection(TokioIo::new(server), gate).await);
    });
    let client = Mutex::new(Some(client));
    let connector = tower::service_fn(move |_| {
        let taken = client.lock().expect("no test must panic with the lock").take();
        async move { taken.map(TokioIo::new).ok_or(io::Error::from(io::ErrorKind::NotConnected)) }
    });
    let endpoint = Endpoint::from_static("http://localhost");
    endpoint.connect_with_connector(connector).await.expect("the server must be open")
}

/// A client of an injector.
pub(crate) async fn client(injector: Arc<Injector>) -> InjectorClient<Channel> {
    let services = services(injector, Readiness::default(), &Limits::default());
    InjectorClient::new(channel(services).await)
}
