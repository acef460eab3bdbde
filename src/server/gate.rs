//! Applies the server's limits, and a shutdown, to the requests of a connection.

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
    future::{Either, Map, Ready, ready},
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

use super::{
    body_budget::BodyBudget,
    http::MAX_HEADER_BYTES,
    share::{BudgetExceeded, Permit, Share},
};

/// Maximum number of bytes to read and discard of the body of a rejected request.
// Twice the largest body: a client with one that is a little too large reads the answer, not a
// reset.
const MAX_DISCARDED_BYTES: usize = 20 << 20;
/// Timeout for reading them.
// Less than the body of a review may take by default, since nothing reads this one.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// A response with its whole body.
pub type HttpResponse = Response<Full<Bytes>>;

/// The service behind a server: it answers every request.
pub trait HttpService: Clone + Send + Sync + 'static {
    /// Body of the responses.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;
    /// Future of a response.
    type Future: Future<Output = Response<Self::Body>> + Send + 'static;

    /// Answers a request. The request counts towards the server's limit until `slot` is dropped:
    /// hold `slot` while the request or its response takes memory.
    fn answer(&self, request: Request<Incoming>, slot: Permit) -> Self::Future;

    /// The same service, for the requests of one caller.
    #[must_use]
    fn of_caller(self, _caller: Caller) -> Self {
        self
    }

    /// The response to a request that is rejected unread. Over HTTP/2 it has no body: a client that
    /// does not read a body would keep its memory in use.
    fn reject(&self, why: Overload, request: &Request<Incoming>) -> Response<Self::Body>;
}

/// Why a request is rejected unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// The server is at its limit of connections.
    Connections,
    /// The server is at its limit of requests, and the connection has its share of them.
    Requests,
    /// The header is larger than [`MAX_HEADER_BYTES`].
    Header,
}

/// The client of a connection, and its shares of the server's limits.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The client's certificate, which the server's client CA signed.
    pub certificate: Option<CertificateDer<'static>>,
    /// Memory for the bodies of its requests and responses.
    pub budget: BodyBudget,
    /// Its share of the server's requests.
    pub requests: Share,
}

/// The service of one connection: passes requests on, or rejects those over a limit.
#[derive(Debug, Clone)]
pub struct Gate<S> {
    service: S,
    /// `None` for a connection over the limit.
    requests: Option<Share>,
    is_draining: Arc<AtomicBool>,
}

impl<S> Gate<S> {
    /// The gate of a connection, with its share of the requests.
    pub fn new(service: S, requests: Option<Share>, is_draining: Arc<AtomicBool>) -> Self {
        Self { service, requests, is_draining }
    }

    fn admit(&self, request: &Request<Incoming>) -> Result<Permit, Overload> {
        let requests = self.requests.as_ref().ok_or(Overload::Connections)?;
        // Over HTTP/1 hyper has rejected it already.
        if request.version() == Version::HTTP_2 && header_bytes(request) > MAX_HEADER_BYTES.into() {
            return Err(Overload::Header);
        }
        requests.take(1).map_err(|BudgetExceeded| Overload::Requests)
    }
}

type Finish<B> = fn(Response<B>) -> Result<Response<B>, Infallible>;

impl<S: HttpService> Service<Request<Incoming>> for Gate<S> {
    type Response = Response<S::Body>;
    type Error = Infallible;
    type Future =
        Either<Ready<Result<Response<S::Body>, Infallible>>, Map<S::Future, Finish<S::Body>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // HTTP/1 keeps a connection open unless a header says otherwise; HTTP/2 is closed by a
        // frame of its own.
        let is_last = self.requests.is_none() || self.is_draining.load(Ordering::Acquire);
        let is_closing = is_last && request.version() < Version::HTTP_2;
        let finish: Finish<S::Body> =
            if is_closing { |response| Ok(closing(response)) } else { Ok };
        match self.admit(&request) {
            Ok(slot) => Either::Right(self.service.answer(request, slot).map(finish)),
            Err(why) => {
                let rejection = self.service.reject(why, &request);
                discard(request.version(), request.into_body());
                Either::Left(ready(finish(rejection)))
            }
        }
    }
}

/// Length of a request's header as RFC 9113 counts it (6.5.2): 32 bytes for each field.
fn header_bytes(request: &Request<Incoming>) -> usize {
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + 32);
    let uri = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    fields.sum::<usize>() + uri
}

/// Asks the client to open another connection for its next request.
fn closing<B>(mut response: Response<B>) -> Response<B> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Reads and discards the rest of a body in the background: an HTTP/1 client that is still sending
/// would not read the response. An HTTP/2 client reads it, and an unread body takes no memory.
pub fn discard(version: Version, mut body: Incoming) {
    if version >= Version::HTTP_2 || body.is_end_stream() {
        return;
    }
    // In the background: the answer must not wait for the end of a body that the server ignores.
    let rest = async move {
        let mut discarded = 0;
        while let Some(Ok(frame)) = body.frame().await {
            discarded += frame.data_ref().map_or(0, Bytes::len);
            if discarded > MAX_DISCARDED_BYTES {
                break;
            }
        }
    };
    tokio::spawn(async move {
        if timeout(DISCARD_TIMEOUT, rest).await.is_err() {
            debug!("timed out while discarding the body of a rejected request");
        }
    });
}

/// 503 with `retry-after`: the API server retries within its own timeout.
#[must_use]
pub fn overloaded(why: &str) -> HttpResponse {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// A plain-text response.
#[must_use]
pub fn plain(status: StatusCode, text: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let text_plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text_plain);
    response
}
