//! The webhook door: HTTP around the injection core.
//!
//! Status codes of errors; what became of a review is counted and told once, from its outcome. Any
//! path is a review, as upstream's webhook takes any.

use std::{
    mem,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode, Version,
    body::Incoming,
    header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue},
};
use tokio::time::{timeout, timeout_at};
use tracing::{Level, debug, enabled, error, warn};

use crate::{
    injector::{Injector, ReviewError},
    linkerd::log_lines,
    log,
    metrics::Refused,
    observer::{LogStyle, Observer},
    server::{
        Answered, Answers, Caller, LONG_REVIEW_BYTES, Late, Limits, LongWork, NoRoom, Room, Share,
        Taken, TooMuch, discard, overloaded, plain,
    },
};

mod body;
mod deadline;
mod not_grpc;

use body::Body;
pub use body::MAX_BODY_BYTES;
use deadline::Deadline;
pub(crate) use deadline::{DEFAULT_TIMEOUT, MAX_TIMEOUT};
pub(crate) use not_grpc::is_grpc;

/// The service of the webhook.
#[derive(Debug, Clone)]
pub struct Webhook {
    shared: Arc<Shared>,
    /// For the bodies of this caller.
    room: Room,
    /// For the texts that this caller is sent in place of answers.
    requests: Share,
}

#[derive(Debug)]
struct Shared {
    injector: Arc<Injector>,
    body_timeout: Duration,
    long_work: LongWork,
    observer: Observer,
}

/// A request that gets no `AdmissionReview` for an answer.
#[derive(Debug)]
struct Refusal {
    why: Refused,
    text: String,
}

/// A request on its way, and what it holds until its answer is sent.
#[derive(Debug)]
struct Admitted {
    deadline: Deadline,
    begin: Instant,
    room: Room,
    slot: Taken,
}

/// The bytes of an answer, and what is given back when they are sent.
struct Answer {
    bytes: Vec<u8>,
    _slot: Taken,
    _room: Taken,
}

impl Webhook {
    /// A webhook in front of the injector.
    #[must_use]
    pub fn new(injector: Arc<Injector>, limits: &Limits, observer: Observer) -> Self {
        let body_timeout = limits.body_timeout;
        let long_work = LongWork::default();
        let shared = Arc::new(Shared { injector, body_timeout, long_work, observer });
        Self { shared, room: Room::default(), requests: Share::default() }
    }
}

impl Answers for Webhook {
    type Body = Full<Bytes>;
    type Answer = BoxFuture<'static, Answered>;

    fn answer(&self, request: Request<Incoming>, slot: Taken) -> Self::Answer {
        let Self { shared, room, requests } = self.clone();
        let answered = async move {
            let _in_flight = shared.observer.metrics.begin();
            match AssertUnwindSafe(shared.answer(request, room, slot)).catch_unwind().await {
                Ok(Ok(response)) => response,
                Ok(Err(refusal)) => {
                    shared.observer.metrics.refused(refusal.why);
                    refusal.into_response(&requests)
                }
                Err(_) => {
                    shared.observer.metrics.panicked();
                    error!("a review failed because of a bug in injectd");
                    plain(StatusCode::INTERNAL_SERVER_ERROR, "a bug in injectd: see its log\n")
                }
            }
        };
        answered.boxed()
    }

    fn of_caller(self, caller: Caller) -> Self {
        Self { room: caller.room, requests: caller.requests, ..self }
    }

    fn refuse(&self, why: TooMuch, request: &Request<Incoming>) -> Answered {
        let refusal = match why {
            TooMuch::Connections => None,
            TooMuch::Requests => Some((Refused::Requests, "too many requests at a time")),
            TooMuch::Header => Some((Refused::Header, "the header is too large")),
        };
        let mut response = match refusal {
            // The server counts these.
            None => overloaded("too many connections\n"),
            Some((why, text)) => {
                self.shared.observer.metrics.refused(why);
                Refusal::new(why, text).response()
            }
        };
        if request.version() == Version::HTTP_2 {
            *response.body_mut() = Full::default();
        }
        response
    }
}

impl Shared {
    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        room: Room,
        slot: Taken,
    ) -> Result<Answered, Refusal> {
        let begin = Instant::now();
        if request.method() != Method::POST {
            return Err(Refusal::new(Refused::Method, "reviews are sent with POST"));
        }
        if is_grpc(request.headers()) {
            discard(request.version(), request.into_body());
            return Err(Refusal::new(Refused::Grpc, "gRPC is not served here"));
        }
        let deadline = Deadline::of(request.uri().query(), begin);
        let version = request.version();
        let body_timeout = self.body_timeout.min(deadline.rest());
        let read = timeout(body_timeout, Body::read(request.into_body(), version, &room)).await;
        let body = read.map_err(|_| Refusal::slow_body(deadline))??;
        if deadline.is_over() {
            return Err(Refusal::deadline());
        }
        let admitted = Admitted { deadline, begin, room, slot };
        if body.bytes.len() <= LONG_REVIEW_BYTES {
            return self.review(body, admitted).await;
        }
        let shared = Arc::clone(self);
        let review = async move { shared.review(body, admitted).await };
        let reviewed = self.long_work.run(deadline.at(), review).await;
        reviewed.unwrap_or_else(|Late| Err(Refusal::deadline()))
    }

    async fn review(&self, body: Body, admitted: Admitted) -> Result<Answered, Refusal> {
        let Admitted { deadline, begin, room, slot } = admitted;
        let answer =
            timeout_at(deadline.at(), self.injector.review_by(Some(deadline.at()), &body.bytes))
                .await
                .map_err(|_| Refusal::deadline())?
                .map_err(|error| Refusal::of(&error))?;
        // An answer that there is no room for is asked for again, and observed then.
        let mut answer_room = Taken::default();
        room.take(&mut answer_room, answer.body.len()).map_err(|NoRoom| Refusal::no_room())?;
        self.observer.observe(&answer.outcome, begin.elapsed());
        self.tell_whole(&body.bytes, &answer.body);
        let bytes = answer.body;
        let answer = Bytes::from_owner(Answer { bytes, _slot: slot, _room: answer_room });
        let mut response = Response::new(Full::new(answer));
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

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
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
        Self::new(Refused::Deadline, "deadline exceeded")
    }

    fn no_room() -> Self {
        Self::new(Refused::Bodies, "too many large bodies at a time")
    }

    /// The text counts as a request until it is sent; a caller that has its share gets none.
    fn into_response(self, requests: &Share) -> Answered {
        let mut response = self.response();
        let text = mem::take(response.body_mut()).into_inner();
        if let (Some(text), Ok(slot)) = (text, requests.take(1)) {
            let (bytes, room) = (text.to_vec(), Taken::default());
            *response.body_mut() =
                Bytes::from_owner(Answer { bytes, _slot: slot, _room: room }).into();
        }
        response
    }

    fn response(self) -> Answered {
        match self.why {
            Refused::Grpc => not_grpc::unimplemented(),
            Refused::Method => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, self.text);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
                response
            }
            Refused::TooLarge => plain(StatusCode::PAYLOAD_TOO_LARGE, self.text),
            Refused::Header => plain(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, self.text),
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
                warn!(error = self.text.trim_end(), "cannot look up what the answer depends on");
                overloaded(&self.text)
            }
            Refused::Bodies | Refused::Deadline | Refused::Requests | Refused::Caller => {
                overloaded(&self.text)
            }
        }
    }
}
