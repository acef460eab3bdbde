//! The webhook door: HTTP around the injection core.
//!
//! Bytes in, at most 10 MiB; status codes of errors; one log line per review. Any path is a review,
//! as upstream's webhook takes any.

use std::{
    convert::Infallible, error::Error as _, panic::AssertUnwindSafe, sync::Arc, time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt as _, future::BoxFuture};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body as _, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    service::Service,
};
use tokio::time::timeout;
use tracing::{debug, error, info, warn};

use crate::{
    injector::Injector,
    outcome::{Outcome, Verdict},
};

/// Largest body, as upstream's.
pub const MAX_BODY_BYTES: usize = 10 << 20;
/// Room for a body whose length is not known to be honest.
const FIRST_BODY_BYTES: usize = 64 << 10;
/// What is read and thrown away of a body that is too large, so that the answer is heard.
const MAX_DISCARDED_BYTES: usize = 2 * MAX_BODY_BYTES;
/// How long that may take.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// The service behind the webhook door.
#[derive(Debug, Clone)]
pub struct Webhook {
    injector: Arc<Injector>,
}

/// A request that gets no `AdmissionReview` for an answer.
#[derive(Debug)]
enum Refusal {
    Method,
    TooLarge,
    Unreadable(String),
}

type Answered = Response<Full<Bytes>>;

impl Webhook {
    /// A door to the injector.
    #[must_use]
    pub fn new(injector: Arc<Injector>) -> Self {
        Self { injector }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Answered, Refusal> {
        if request.method() != Method::POST {
            return Err(Refusal::Method);
        }
        let body = read_body(request.into_body()).await?;
        let answer = self.injector.review(&body).await.map_err(|error| {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            Refusal::Unreadable(format!("{error}{cause}"))
        })?;
        log(&answer.outcome);
        let mut response = Response::new(Full::new(Bytes::from(answer.body)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

impl Service<Request<Incoming>> for Webhook {
    type Response = Answered;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answered, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let webhook = self.clone();
        let answered = async move {
            match AssertUnwindSafe(webhook.answer(request)).catch_unwind().await {
                Ok(Ok(response)) => Ok(response),
                Ok(Err(refusal)) => Ok(refusal.into_response()),
                Err(_) => {
                    error!("a review failed because of a bug in injectd");
                    let text = "a bug in injectd: see its log".to_owned();
                    Ok(plain(StatusCode::INTERNAL_SERVER_ERROR, text))
                }
            }
        };
        answered.boxed()
    }
}

impl Refusal {
    fn into_response(self) -> Answered {
        match self {
            Self::Method => {
                let text = "reviews are sent with POST".to_owned();
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, text);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
                response
            }
            Self::TooLarge => {
                let text = format!("the body is larger than {MAX_BODY_BYTES} bytes");
                plain(StatusCode::PAYLOAD_TOO_LARGE, text)
            }
            Self::Unreadable(text) => {
                warn!(error = text, "cannot read a review");
                plain(StatusCode::BAD_REQUEST, text)
            }
        }
    }
}

/// An answer of one line of text.
fn plain(status: StatusCode, mut text: String) -> Answered {
    text.push('\n');
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let text_plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text_plain);
    response
}

/// The whole body; not copied if it came in one piece.
async fn read_body(mut body: Incoming) -> Result<Bytes, Refusal> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut whole = Bytes::new();
    let mut pieces = BytesMut::new();
    while let Some(data) = next_data(&mut body).await? {
        if announced.max(pieces.len() + data.len()) > MAX_BODY_BYTES {
            discard(body).await;
            return Err(Refusal::TooLarge);
        }
        if data.len() == announced {
            whole = data;
        } else {
            pieces.reserve((announced.min(FIRST_BODY_BYTES)).saturating_sub(pieces.len()));
            pieces.extend_from_slice(&data);
        }
    }
    Ok(if pieces.is_empty() { whole } else { pieces.freeze() })
}

/// Reads on for a while: a client that is still sending would not see the answer.
async fn discard(mut body: Incoming) {
    let rest = async {
        let mut discarded = 0;
        while let Ok(Some(data)) = next_data(&mut body).await {
            discarded += data.len();
            if discarded > MAX_DISCARDED_BYTES {
                break;
            }
        }
    };
    if timeout(DISCARD_TIMEOUT, rest).await.is_err() {
        debug!("gave up on a body that is too large");
    }
}

async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, Refusal> {
    while let Some(frame) = body.frame().await {
        let broken = |error| Refusal::Unreadable(format!("the body broke off: {error}"));
        if let Ok(data) = frame.map_err(broken)?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// One line per review.
fn log(outcome: &Outcome<'_>) {
    let Outcome { kind, namespace, name, verdict, .. } = outcome;
    let (kind, verdict, namespace, name) = (kind.as_str(), verdict.as_str(), &**namespace, &**name);
    let reasons = outcome.reasons.iter().map(crate::outcome::SkipReason::as_str);
    let reasons = reasons.collect::<Vec<_>>().join(",");
    for warning in &outcome.warnings {
        warn!(name, namespace, %warning, "ignored");
    }
    match &outcome.denial {
        Some(reason) => warn!(kind, name, namespace, reason = &**reason, verdict, "reviewed"),
        None if outcome.verdict == Verdict::Injected => {
            info!(kind, name, namespace, verdict, "reviewed");
        }
        None => info!(kind, name, namespace, reasons, verdict, "reviewed"),
    }
}
