//! What the limit of connections and a shutdown do to the requests of a connection.

use std::{
    convert::Infallible,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Either, Map},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response, StatusCode, Version,
    body::{Body, Incoming},
    header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
    service::Service,
};
use rustls::pki_types::CertificateDer;
use tokio::time::timeout;
use tracing::debug;

/// What is read and thrown away of a body that is not wanted.
const MAX_DISCARDED_BYTES: usize = 20 << 20;
/// How long that may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer of a door.
pub type Answered = Response<Full<Bytes>>;

type Answering<B> = Result<Response<B>, Infallible>;

/// A service that a door is opened for: it answers every request.
pub trait Answers:
    Service<
        Request<Incoming>,
        Response = Response<<Self as Answers>::Body>,
        Error = Infallible,
        Future: Send,
    > + Clone
    + Send
    + Sync
    + 'static
{
    /// Of its answers.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// The same service, for the requests of one caller.
    #[must_use]
    fn of_caller(self, _caller: Caller) -> Self {
        self
    }

    /// Tells that there are too many connections.
    fn overloaded(&self) -> Response<Self::Body>;
}

/// Who opened a connection.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The client's certificate, which the door's CA has signed.
    pub certificate: Option<CertificateDer<'static>>,
}

/// The service of one connection: the door's own, or 503 where there are too many connections.
#[derive(Debug, Clone)]
pub struct Gate<S> {
    service: S,
    is_served: bool,
    is_draining: Arc<AtomicBool>,
}

impl<S> Gate<S> {
    /// The gate of a connection.
    pub fn new(service: S, is_served: bool, is_draining: Arc<AtomicBool>) -> Self {
        Self { service, is_served, is_draining }
    }
}

impl<S: Answers> Service<Request<Incoming>> for Gate<S> {
    type Response = Response<S::Body>;
    type Error = Infallible;
    type Future = Either<
        BoxFuture<'static, Answering<S::Body>>,
        Map<S::Future, fn(Answering<S::Body>) -> Answering<S::Body>>,
    >;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let is_last = !self.is_served || self.is_draining.load(Ordering::Acquire);
        let is_closing = is_last && request.version() < Version::HTTP_2;
        let finish: fn(Answering<S::Body>) -> Answering<S::Body> =
            if is_closing { closing } else { |answered| answered };
        if self.is_served {
            return Either::Right(self.service.call(request).map(finish));
        }
        let overloaded = self.service.overloaded();
        let is_http1 = request.version() < Version::HTTP_2;
        let turn_away = async move {
            // Over HTTP/2 an answer is heard in the middle of a body.
            if is_http1 {
                discard(request.into_body()).await;
            }
            finish(Ok(overloaded))
        };
        Either::Left(turn_away.boxed())
    }
}

/// Asks the client to open another connection for its next request.
fn closing<B>(answered: Answering<B>) -> Answering<B> {
    answered.map(|mut response| {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    })
}

/// Reads on for a while: a client that is still sending would not see the answer.
pub async fn discard(mut body: Incoming) {
    let rest = async {
        let mut discarded = 0;
        while let Some(Ok(frame)) = body.frame().await {
            discarded += frame.data_ref().map_or(0, Bytes::len);
            if discarded > MAX_DISCARDED_BYTES {
                break;
            }
        }
    };
    if timeout(DISCARD_TIMEOUT, rest).await.is_err() {
        debug!("gave up on a body that nobody wants");
    }
}

/// 503, to be asked again: the API server does so inside its own timeout.
#[must_use]
pub fn overloaded(why: &str) -> Answered {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// An answer of text.
#[must_use]
pub fn plain(status: StatusCode, text: impl Into<Bytes>) -> Answered {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let text_plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text_plain);
    response
}
