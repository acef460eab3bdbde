//! The webhook door: HTTP around the injection core.
//!
//! Status codes of errors; what became of a review is counted and told once, from its outcome. Any
//! path is a review, as upstream's webhook takes any.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue},
    service::Service,
};
use tokio::{
    sync::Semaphore,
    time::{timeout, timeout_at},
};
use tracing::{Level, debug, enabled, error, warn};

use crate::{
    injector::{Injector, ReviewError},
    linkerd::log_lines,
    log,
    metrics::Refused,
    observer::{LogStyle, Observer},
    server::{Answered, Answers, Limits, Room, discard, overloaded, plain},
};

mod body;
mod deadline;

use body::Body;
pub use body::MAX_BODY_BYTES;
use deadline::Deadline;
pub(crate) use deadline::{DEFAULT_TIMEOUT, MAX_TIMEOUT};

/// The service behind the webhook door.
#[derive(Debug, Clone)]
pub struct Webhook(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    injector: Arc<Injector>,
    body_timeout: Duration,
    room: Room,
    requests: Semaphore,
    observer: Observer,
}

/// A request that gets no `AdmissionReview` for an answer.
#[derive(Debug)]
struct Refusal {
    why: Refused,
    text: String,
}

impl Webhook {
    /// A door to the injector.
    #[must_use]
    pub fn new(injector: Arc<Injector>, limits: &Limits, observer: Observer) -> Self {
        Self(Arc::new(Shared {
            injector,
            body_timeout: limits.body_timeout,
            room: Room::new(limits.max_body_memory),
            requests: Semaphore::new(limits.max_requests as usize),
            observer,
        }))
    }
}

impl Service<Request<Incoming>> for Webhook {
    type Response = Answered;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answered, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        let answered = async move {
            let _in_flight = shared.observer.metrics.begin();
            match AssertUnwindSafe(shared.answer(request)).catch_unwind().await {
                Ok(Ok(response)) => Ok(response),
                Ok(Err(refusal)) => {
                    shared.observer.metrics.refused(refusal.why);
                    Ok(refusal.into_response())
                }
                Err(_) => {
                    shared.observer.metrics.panicked();
                    error!("a review failed because of a bug in injectd");
                    Ok(plain(StatusCode::INTERNAL_SERVER_ERROR, "a bug in injectd: see its log\n"))
                }
            }
        };
        answered.boxed()
    }
}

impl Answers for Webhook {
    type Body = Full<Bytes>;

    fn overloaded(&self) -> Answered {
        overloaded("too many connections\n")
    }
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Result<Answered, Refusal> {
        let begin = Instant::now();
        if request.method() != Method::POST {
            return Err(Refusal::new(Refused::Method, "reviews are sent with POST"));
        }
        let Ok(_request) = self.requests.try_acquire() else {
            discard(request.into_body()).await;
            return Err(Refusal::new(Refused::Requests, "too many requests at a time"));
        };
        let deadline = Deadline::of(request.uri().query(), begin);
        let body_timeout = self.body_timeout.min(deadline.rest());
        let read = timeout(body_timeout, Body::read(request.into_body(), &self.room)).await;
        let body = read.map_err(|_| Refusal::slow_body(deadline))??;
        if deadline.is_over() {
            return Err(Refusal::deadline());
        }
        let answer =
            timeout_at(deadline.at(), self.injector.review_by(Some(deadline.at()), &body.bytes))
                .await
                .map_err(|_| Refusal::deadline())?
                .map_err(|error| Refusal::of(&error))?;
        self.observer.observe(&answer.outcome, begin.elapsed());
        self.tell_whole(&body.bytes, &answer.body);
        let mut response = Response::new(Full::new(Bytes::from(answer.body)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }

    /// Under Linkerd's flags debug shows reviews whole.
    fn tell_whole(&self, body: &[u8], answer: &[u8]) {
        if self.observer.log_style == LogStyle::Linkerd && enabled!(Level::DEBUG) {
            let [review, answer] = [body, answer].map(String::from_utf8_lossy);
            log_lines::tell_whole(&review, self.injector.snapshot().values(), &answer);
        }
    }
}

impl Refusal {
    fn new(why: Refused, text: &str) -> Self {
        Self { why, text: format!("{text}\n") }
    }

    fn slow_body(deadline: Deadline) -> Self {
        if deadline.is_over() {
            return Self::deadline();
        }
        Self::new(Refused::SlowBody, "the body took too long")
    }

    fn of(error: &ReviewError) -> Self {
        let why = match error {
            ReviewError::Decode(_) => Refused::NotAReview,
            ReviewError::Cluster(..) | ReviewError::Owner(..) => Refused::Cluster,
        };
        Self::new(why, &log::with_causes(error))
    }

    fn deadline() -> Self {
        Self::new(Refused::Deadline, "nobody waits for the answer any more")
    }

    fn into_response(self) -> Answered {
        match self.why {
            Refused::Method => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, self.text);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
                response
            }
            Refused::TooLarge => plain(StatusCode::PAYLOAD_TOO_LARGE, self.text),
            Refused::NotAReview => {
                warn!(error = self.text.trim_end(), "cannot read a review");
                plain(StatusCode::BAD_REQUEST, self.text)
            }
            Refused::Aborted => {
                debug!(error = self.text.trim_end(), "the client left");
                plain(StatusCode::BAD_REQUEST, self.text)
            }
            Refused::SlowBody => {
                let mut response = overloaded(&self.text);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
            Refused::Cluster => {
                warn!(error = self.text.trim_end(), "the API server does not tell");
                overloaded(&self.text)
            }
            Refused::Bodies | Refused::Deadline | Refused::Requests | Refused::Caller => {
                overloaded(&self.text)
            }
        }
    }
}
