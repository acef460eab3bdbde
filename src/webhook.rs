//! The webhook server: HTTP around the injection core.
//!
//! Maps errors to status codes. The observer counts and logs the outcome of each review. The mesh
//! says which paths are its webhook.

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
    header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, LOCATION},
    http::uri::PathAndQuery,
};
use injectd_cluster::causes::with_causes;
use injectd_profiles::{NoWebhook, Profile, Profiles};
use injectd_telemetry::metrics::RejectReason;
use tokio::time::{timeout, timeout_at};
use tracing::{debug, error, warn};

use crate::{
    injector::ReviewError,
    lookups::{CallerFacts, Patience as _},
    observer::Observer,
    server::{
        BodyBudget, BudgetExceeded, Caller, CallerPatience, EvaluationTurns, HttpResponse,
        HttpService, LONG_REVIEW_BYTES, Late, Limits, Overload, Permit, Share, Threads, TurnCaller,
        discard, is_grpc, overloaded, plain,
    },
};

mod body;
mod deadline;
mod not_grpc;

use body::Body;
use deadline::Deadline;

/// The service of the webhook.
#[derive(Debug, Clone)]
pub struct Webhook {
    shared: Arc<Shared>,
    /// Memory for the bodies of this caller.
    budget: BodyBudget,
    /// Share of the requests, which also limits the error texts that this caller has not read.
    requests: Share,
}

#[derive(Debug)]
struct Shared {
    profiles: Profiles,
    body_timeout: Duration,
    turns: EvaluationTurns,
    observer: Observer,
}

/// The rejection of a request, without an `AdmissionReview`.
#[derive(Debug)]
struct Rejection {
    why: RejectReason,
    text: String,
    /// Why there is no webhook at the path of the request.
    no_webhook: Option<NoWebhook>,
}

/// A request that is being answered, and the permits it holds until its response is sent.
#[derive(Debug)]
struct Admitted {
    profile: Profile,
    /// The decoded path of the URL.
    path: String,
    deadline: Deadline,
    begin: Instant,
    budget: BodyBudget,
    slot: Permit,
}

/// The bytes of a response, and the permits that are returned once they are sent.
struct Answer {
    bytes: Vec<u8>,
    _slot: Permit,
    _memory: Permit,
}

impl Webhook {
    /// A webhook for the profiles of a process, whose servers share the turns of evaluations.
    #[must_use]
    pub fn new(
        profiles: impl Into<Profiles>,
        limits: &Limits,
        turns: EvaluationTurns,
        observer: Observer,
    ) -> Self {
        let profiles = profiles.into();
        let body_timeout = limits.body_timeout;
        let shared = Arc::new(Shared { profiles, body_timeout, turns, observer });
        Self { shared, budget: BodyBudget::default(), requests: Share::default() }
    }
}

impl HttpService for Webhook {
    type Body = Full<Bytes>;
    type Future = BoxFuture<'static, HttpResponse>;

    fn answer(&self, request: Request<Incoming>, slot: Permit) -> Self::Future {
        let Self { shared, budget, requests } = self.clone();
        // The time in which the request waits for a thread counts.
        let begin = Instant::now();
        let answered = async move {
            let _in_flight = shared.observer.metrics.begin();
            match AssertUnwindSafe(shared.answer(request, budget, slot, begin)).catch_unwind().await
            {
                Ok(Ok(response)) => response,
                Ok(Err(rejection)) => {
                    shared.observer.metrics.rejected(rejection.why);
                    rejection.into_response(&requests)
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
        Self { budget: caller.budget, requests: caller.requests, ..self }
    }

    fn reject(&self, why: Overload, request: &Request<Incoming>) -> HttpResponse {
        let rejection = match why {
            Overload::Connections => None,
            Overload::Requests => Some((RejectReason::Requests, "too many concurrent requests")),
            Overload::Header => Some((RejectReason::Header, "the header is too large")),
        };
        let mut response = match rejection {
            // The server has counted the connection.
            None => overloaded("too many connections\n"),
            Some((why, text)) => {
                self.shared.observer.metrics.rejected(why);
                Rejection::new(why, text).response()
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
        budget: BodyBudget,
        slot: Permit,
        begin: Instant,
    ) -> Result<HttpResponse, Rejection> {
        if request.method() != Method::POST {
            return Err(Rejection::new(RejectReason::Method, "send reviews with POST"));
        }
        // A gRPC client reads trailers, not statuses of HTTP: it would report an unknown error.
        if is_grpc(request.headers()) {
            discard(request.version(), request.into_body());
            return Err(Rejection::new(RejectReason::Grpc, "gRPC is not served here"));
        }
        let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let (profile, path) = match self.profiles.at(target) {
            Ok(found) => found,
            Err(no_webhook) => {
                discard(request.version(), request.into_body());
                return Err(Rejection::no_webhook(no_webhook));
            }
        };
        let deadline = Deadline::of(request.uri().query(), begin);
        let admitted = Admitted { profile: profile.clone(), path, deadline, begin, budget, slot };
        let answered = self.answer_admitted(request, admitted).await;
        if let Err(rejection) = &answered {
            self.observer.observe_rejection(&profile, rejection.why, begin.elapsed());
        }
        answered
    }

    async fn answer_admitted(
        self: &Arc<Self>,
        request: Request<Incoming>,
        admitted: Admitted,
    ) -> Result<HttpResponse, Rejection> {
        let (deadline, version) = (admitted.deadline, request.version());
        // After the deadline the caller does not read the answer.
        let body_timeout = self.body_timeout.min(deadline.rest());
        let read = Body::read(request.into_body(), version, &admitted.budget);
        let body = timeout(body_timeout, read).await;
        // Of two ends that come together the deadline is the cause: the client gave the body too
        // little time.
        let body = body.map_err(|_| Rejection::slow_body(deadline))??;
        if deadline.is_over() {
            return Err(Rejection::deadline());
        }
        let patience = CallerPatience::until(deadline.at());
        if body.bytes.len() <= LONG_REVIEW_BYTES {
            let caller = TurnCaller { patience: &patience, threads: Threads::Workers };
            return self.review(body, admitted, caller).await;
        }
        let (shared, own, bytes) = (Arc::clone(self), patience.clone(), body.bytes.len());
        let review = async move {
            let caller = TurnCaller { patience: &own, threads: Threads::Separate };
            shared.review(body, admitted, caller).await
        };
        let reviewed = self.turns.long_work().run(&patience, bytes, review).await;
        reviewed.unwrap_or_else(|Late| Err(Rejection::deadline()))
    }

    async fn review(
        &self,
        body: Body,
        admitted: Admitted,
        TurnCaller { patience, threads }: TurnCaller<'_>,
    ) -> Result<HttpResponse, Rejection> {
        let Admitted { profile, path, deadline, begin, budget, slot } = admitted;
        let turns = self.turns.of_caller(&budget, patience, threads);
        let facts = CallerFacts {
            deadline: Some(deadline.at().into_std()),
            path: &path,
            turns: Some(&turns),
            ..CallerFacts::default()
        };
        let answer = timeout_at(deadline.at(), profile.review_with(facts, &body.bytes))
            .await
            .map_err(|_| Rejection::deadline())?
            .map_err(|error| Rejection::of(&error))?;
        // An evaluation that has given up has no answer.
        if patience.is_over() {
            return Err(Rejection::deadline());
        }
        // Without memory for the answer the client gets none and retries, so nothing is observed.
        let mut permit = Permit::default();
        budget
            .take(&mut permit, answer.body.len())
            .map_err(|BudgetExceeded| Rejection::budget_exceeded())?;
        self.observer.observe(&profile, &answer.outcome, begin.elapsed());
        self.observer.log_exchange(&profile, &body.bytes, &answer.body);
        let bytes = answer.body;
        // hyper drops the bytes when they are sent. Until then the response takes memory and counts
        // as a request.
        let answer = Bytes::from_owner(Answer { bytes, _slot: slot, _memory: permit });
        let mut response = Response::new(Full::new(answer));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Rejection {
    fn new(why: RejectReason, text: &str) -> Self {
        Self { why, text: format!("{text}\n"), no_webhook: None }
    }

    fn no_webhook(no_webhook: NoWebhook) -> Self {
        // The API server retries where it gets 503, and no other status.
        let why = match no_webhook {
            NoWebhook::NotLoaded => RejectReason::Cluster,
            _ => RejectReason::Path,
        };
        let rejection = Self::new(why, &no_webhook.to_string());
        Self { no_webhook: Some(no_webhook), ..rejection }
    }

    fn slow_body(deadline: Deadline) -> Self {
        if deadline.is_over() {
            return Self::deadline();
        }
        Self::new(RejectReason::SlowBody, "timed out while reading the body")
    }

    fn of(error: &ReviewError) -> Self {
        let why = match error {
            ReviewError::Decode(_) => RejectReason::NotAReview,
            ReviewError::Namespace(..) | ReviewError::Object(_) => RejectReason::Cluster,
            ReviewError::NoTurn(_) => RejectReason::Evaluations,
        };
        Self::new(why, &with_causes(error))
    }

    fn deadline() -> Self {
        Self::new(RejectReason::Deadline, "deadline exceeded")
    }

    fn budget_exceeded() -> Self {
        Self::new(RejectReason::Bodies, "too many large bodies in memory")
    }

    /// The text counts as a request until it is sent; a caller at its limit gets no text.
    fn into_response(self, requests: &Share) -> HttpResponse {
        let mut response = self.response();
        let text = mem::take(response.body_mut()).into_inner();
        // A client that never reads could otherwise fill the memory with texts of errors.
        if let (Some(text), Ok(slot)) = (text, requests.take(1)) {
            let (bytes, memory) = (text.to_vec(), Permit::default());
            *response.body_mut() =
                Bytes::from_owner(Answer { bytes, _slot: slot, _memory: memory }).into();
        }
        response
    }

    fn response(self) -> HttpResponse {
        match self.why {
            RejectReason::Grpc => not_grpc::unimplemented(),
            RejectReason::Method => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, self.text);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
                response
            }
            RejectReason::Path => {
                let no_webhook = self.no_webhook.as_ref();
                let status = no_webhook
                    .and_then(|no_webhook| StatusCode::from_u16(no_webhook.status()).ok());
                let mut response = plain(status.unwrap_or(StatusCode::NOT_FOUND), self.text);
                let location = no_webhook.and_then(NoWebhook::location);
                if let Some(Ok(location)) = location.map(HeaderValue::from_str) {
                    response.headers_mut().insert(LOCATION, location);
                }
                response
            }
            RejectReason::TooLarge => plain(StatusCode::PAYLOAD_TOO_LARGE, self.text),
            RejectReason::Header => plain(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, self.text),
            RejectReason::NotAReview => {
                // The caller is an API server, or a client that pretends to be one: an operator needs to
                // know of either.
                warn!(error = self.text.trim_end(), "cannot read a review");
                plain(StatusCode::BAD_REQUEST, self.text)
            }
            RejectReason::Aborted => {
                // Clients give up all the time; that is no event of this server.
                debug!(error = self.text.trim_end(), "cannot read a request");
                plain(StatusCode::BAD_REQUEST, self.text)
            }
            RejectReason::SlowBody => {
                let mut response = overloaded(&self.text);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
            RejectReason::Cluster => {
                warn!(
                    error = self.text.trim_end(),
                    "the API server has not answered what a review needs"
                );
                overloaded(&self.text)
            }
            RejectReason::Bodies
            | RejectReason::Deadline
            | RejectReason::Evaluations
            | RejectReason::Requests
            | RejectReason::Caller => overloaded(&self.text),
        }
    }
}
