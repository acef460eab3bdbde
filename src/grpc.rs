//! The gRPC server: the injection core for other components of a control plane.
//!
//! [`crate::server`] serves HTTP/2, as for the webhook; tonic implements gRPC. The API is defined
//! in `proto/injectd/v1/injectd.proto`. Not for decisions: the injector makes them.

use std::{convert::Infallible, fmt, sync::Arc, time::Duration};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Either},
};
use hyper::{Request, Response, body::Incoming};
pub use injectd_api::v1;
use injectd_api::{DESCRIPTORS, MAX_MESSAGE_BYTES, v1::injector_server::InjectorServer};
use injectd_profiles::Profiles;
use injectd_telemetry::{metrics::RejectReason, readiness::Readiness};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout_at},
};
use tonic::{
    Code, Status,
    codec::CompressionEncoding,
    server::NamedService,
    service::{Routes, RoutesBuilder},
};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    observer::Observer,
    server::{Caller, EvaluationTurns, HttpService, Limits, Overload, Permit, Shutdown, Signalled},
};

mod access;
mod body;
mod deadline;
mod explain;
mod failure;
mod holding;
mod messages;
mod service;

pub use access::{Access, Allowed, Callers};

use body::Bodies;
use deadline::Deadline;
use failure::Failure;
use holding::Holding;
use service::{Call, Ends, Service as InjectorService};

/// The name of the service, also in health checks.
const SERVICE: &str = <InjectorServer<InjectorService> as NamedService>::NAME;
/// Maximum age of a connection and of a stream, so that access is checked again.
pub const MAX_AGE: Duration = Duration::from_mins(10);
/// The streaming method: the server does not time out its calls.
const STREAM: &str = "/InjectStream";
/// Maximum size of a message to health and reflection.
// Their messages have a name of a service.
const SMALL_MESSAGE_BYTES: usize = 16 << 10;
/// Prefix of the health service's paths, which need no access.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// The services of the gRPC server.
#[derive(Clone)]
pub struct Grpc {
    injector: InjectorServer<InjectorService>,
    /// Health and reflection.
    others: Routes,
    access: Arc<Access>,
    body_timeout: Duration,
    observer: Arc<Observer>,
    caller: Arc<Caller>,
}

impl fmt::Debug for Grpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grpc").field("access", &self.access).finish_non_exhaustive()
    }
}

/// The life of the process: its readiness, and its shutdown.
#[derive(Debug, Clone)]
pub struct Life {
    /// Whether the process is ready.
    pub readiness: Readiness,
    /// When it stops.
    pub shutdown: Shutdown,
    /// The turns of evaluations, which all servers of the process share.
    pub turns: EvaluationTurns,
}

impl Grpc {
    /// The services, for callers that `access` allows.
    ///
    /// # Panics
    /// Never: the built-in descriptors are valid.
    #[must_use]
    pub fn new(
        profiles: impl Into<Profiles>,
        limits: &Limits,
        observer: Observer,
        access: Arc<Access>,
        life: Life,
    ) -> Self {
        let Life { readiness, shutdown, turns } = life;
        let (reporter, health) = tonic_health::server::health_reporter();
        tokio::spawn(follow(readiness, reporter, closing(&shutdown, limits)));
        let observer = Arc::new(observer);
        let messages = Semaphore::new(limits.max_requests as usize);
        let ends: Ends = {
            let (shutdown, limits) = (shutdown, limits.clone());
            Arc::new(move || closing(&shutdown, &limits))
        };
        let (profiles, own) = (profiles.into(), Arc::clone(&observer));
        let service = InjectorService::new(profiles, own, messages, turns, ends);
        let injector_server = InjectorServer::new(service)
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let v1_reflection = reflection().build_v1().expect("the descriptors must be whole");
        let v1alpha_reflection =
            reflection().build_v1alpha().expect("the descriptors must be whole");
        let mut others = RoutesBuilder::default();
        others
            .add_service(health.max_decoding_message_size(SMALL_MESSAGE_BYTES))
            .add_service(v1_reflection.max_decoding_message_size(SMALL_MESSAGE_BYTES))
            .add_service(v1alpha_reflection.max_decoding_message_size(SMALL_MESSAGE_BYTES));
        Self {
            injector: injector_server,
            others: others.routes().prepare(),
            access,
            body_timeout: limits.body_timeout,
            observer,
            caller: Arc::default(),
        }
    }

    /// The same services with another access policy.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        Self { access: Arc::new(access), ..self }
    }

    async fn answer(mut self, request: Request<Incoming>) -> Response<tonic::body::Body> {
        let (deadline, begin) = (Deadline::of(request.headers()), Instant::now());
        let end = deadline.at(begin);
        let path = request.uri().path();
        let service = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE));
        let method = service.filter(|method| method.starts_with('/'));
        let is_injection = method.is_some();
        let is_bounded = method.is_some_and(|method| method != STREAM);
        // A kubelet's probe has neither a certificate nor a token.
        if !path.starts_with(HEALTH) {
            let checked = self.access.check(self.caller.certificate.as_ref(), request.headers());
            let failure = match timeout_at(end, checked).await {
                Ok(Ok(())) if Instant::now() < end => None,
                Ok(Ok(())) | Err(_) => Some((Failure::late(), RejectReason::Deadline)),
                Ok(Err(failure)) => {
                    let why = failure.rejected().unwrap_or(RejectReason::Caller);
                    Some((failure, why))
                }
            };
            if let Some((failure, why)) = failure {
                self.observer.metrics.rejected(why);
                return Status::from(failure).into_http();
            }
        }
        let metrics = self.observer.metrics.clone();
        let bodies = Bodies::new(self.caller.budget.clone(), self.body_timeout, metrics);
        let mut request = request.map(|body| bodies.bounded(body));
        request.extensions_mut().insert(Call { deadline, begin, bodies });
        let answered = if is_injection {
            Either::Left(infallible(tower::Service::call(&mut self.injector, request)))
        } else {
            let request = request.map(tonic::body::Body::new);
            Either::Right(infallible(tower::Service::call(&mut self.others, request)))
        };
        if !is_bounded {
            return answered.await;
        }
        timeout_at(end, answered).await.unwrap_or_else(|_| {
            self.observer.metrics.rejected(RejectReason::Deadline);
            Status::from(Failure::late()).into_http()
        })
    }
}

/// The response of a service that cannot fail.
async fn infallible<T>(answered: impl Future<Output = Result<T, Infallible>>) -> T {
    match answered.await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Completes when streams and health checks must end.
fn closing(shutdown: &Shutdown, limits: &Limits) -> BoxFuture<'static, ()> {
    let (mut shutdown, delay) = (shutdown.clone(), limits.drain_delay);
    async move {
        // As in the servers, SIGINT skips the drain delay.
        if shutdown.begun().await == Signalled::ToTerminate {
            sleep(delay).await;
        }
    }
    .boxed()
}

/// Keeps the health status equal to the readiness until the server closes.
async fn follow(
    readiness: Readiness,
    mut reporter: HealthReporter,
    closing: BoxFuture<'static, ()>,
) {
    tokio::select! {
        never = report_readiness(&readiness, &reporter) => match never {},
        () = closing => {}
    }
    for name in ["", SERVICE] {
        reporter.clear_service_status(name).await;
    }
}

async fn report_readiness(readiness: &Readiness, reporter: &HealthReporter) -> Infallible {
    loop {
        let is_ready = readiness.is_ready();
        let status = if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        for name in ["", SERVICE] {
            reporter.set_service_status(name, status).await;
        }
        readiness.wait_until(!is_ready).await;
    }
}

impl HttpService for Grpc {
    type Body = Holding;
    type Future = BoxFuture<'static, Response<Holding>>;

    fn answer(&self, request: Request<Incoming>, slot: Permit) -> Self::Future {
        let (answer, budget) = (self.clone().answer(request), self.caller.budget.clone());
        answer.map(|response| response.map(|body| Holding::new(body, slot, budget))).boxed()
    }

    fn of_caller(self, caller: Caller) -> Self {
        Self { caller: Arc::new(caller), ..self }
    }

    fn reject(&self, why: Overload, _: &Request<Incoming>) -> Response<Holding> {
        let metrics = &self.observer.metrics;
        let failure = match why {
            Overload::Connections => Failure::overloaded("too many connections"),
            Overload::Requests => {
                metrics.rejected(RejectReason::Requests);
                Failure::overloaded("too many concurrent requests")
            }
            Overload::Header => {
                metrics.rejected(RejectReason::Header);
                Failure::new(Code::ResourceExhausted, "the metadata is too large")
            }
        };
        let (slot, budget) = Default::default();
        Status::from(failure).into_http().map(|body| Holding::new(body, slot, budget))
    }
}
