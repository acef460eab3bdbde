//! What the server's limits and a shutdown do to the requests of a connection.

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
    MAX_HEADER_BYTES,
    room::Room,
    share::{NoRoom, Share, Taken},
};

/// What is read and thrown away of a body that is not wanted.
const MAX_DISCARDED_BYTES: usize = 20 << 20;
/// How long that may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer of a server.
pub type Answered = Response<Full<Bytes>>;

/// A service that a server is opened for: it answers every request.
pub trait Answers: Clone + Send + Sync + 'static {
    /// Body of its answers.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;
    /// An answer to come.
    type Answer: Future<Output = Response<Self::Body>> + Send + 'static;

    /// Answers a request. It counts as one of the server's requests until `slot` is dropped: hold it
    /// as long as anything of the request or its answer takes memory.
    fn answer(&self, request: Request<Incoming>, slot: Taken) -> Self::Answer;

    /// The same service, for the requests of one caller.
    #[must_use]
    fn of_caller(self, _caller: Caller) -> Self {
        self
    }

    /// The answer to a request that is not looked at. It holds nothing: over HTTP/2 it has no body,
    /// which a client could leave untaken.
    fn refuse(&self, why: TooMuch, request: &Request<Incoming>) -> Response<Self::Body>;
}

/// Why a request is not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMuch {
    /// The server has as many connections as it may have.
    Connections,
    /// The server has as many requests as it may have, and the connection its share of them.
    Requests,
    /// The header is larger than [`MAX_HEADER_BYTES`].
    Header,
}

/// Who opened a connection.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The client's certificate, which the server's CA has signed.
    pub certificate: Option<CertificateDer<'static>>,
    /// Room for the bodies of its requests and answers.
    pub room: Room,
    /// Its share of the server's requests.
    pub requests: Share,
}

/// The service of one connection: the server's own, or a refusal where there is too much.
#[derive(Debug, Clone)]
pub struct Gate<S> {
    service: S,
    /// `None` for a connection beyond the limit.
    requests: Option<Share>,
    is_draining: Arc<AtomicBool>,
}

impl<S> Gate<S> {
    /// The gate of a connection and its share of the requests.
    pub fn new(service: S, requests: Option<Share>, is_draining: Arc<AtomicBool>) -> Self {
        Self { service, requests, is_draining }
    }

    fn admit(&self, request: &Request<Incoming>) -> Result<Taken, TooMuch> {
        let requests = self.requests.as_ref().ok_or(TooMuch::Connections)?;
        // Over HTTP/1 hyper has refused it already.
        if request.version() == Version::HTTP_2 && header_bytes(request) > MAX_HEADER_BYTES.into() {
            return Err(TooMuch::Header);
        }
        requests.take(1).map_err(|NoRoom| TooMuch::Requests)
    }
}

type Finish<B> = fn(Response<B>) -> Result<Response<B>, Infallible>;

impl<S: Answers> Service<Request<Incoming>> for Gate<S> {
    type Response = Response<S::Body>;
    type Error = Infallible;
    type Future =
        Either<Ready<Result<Response<S::Body>, Infallible>>, Map<S::Answer, Finish<S::Body>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let is_last = self.requests.is_none() || self.is_draining.load(Ordering::Acquire);
        let is_closing = is_last && request.version() < Version::HTTP_2;
        let finish: Finish<S::Body> =
            if is_closing { |response| Ok(closing(response)) } else { Ok };
        match self.admit(&request) {
            Ok(slot) => Either::Right(self.service.answer(request, slot).map(finish)),
            Err(why) => {
                let refusal = self.service.refuse(why, &request);
                discard(request.version(), request.into_body());
                Either::Left(ready(finish(refusal)))
            }
        }
    }
}

/// Length of a request's header as RFC 9113 counts it (6.5.2): 32 bytes for each field.
fn header_bytes(request: &Request<Incoming>) -> usize {
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + 32);
    let uri = request.uri().path_and_query().map_or(0, |it| it.as_str().len());
    fields.sum::<usize>() + uri
}

/// Asks the client to open another connection for its next request.
fn closing<B>(mut response: Response<B>) -> Response<B> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Reads on for a while, beside the answer: over HTTP/1 a client that is still sending would not see
/// it. Over HTTP/2 it does, and what is not read takes no memory.
pub fn discard(version: Version, mut body: Incoming) {
    if version >= Version::HTTP_2 || body.is_end_stream() {
        return;
    }
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
            debug!("gave up on the body of a request that was refused");
        }
    });
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
