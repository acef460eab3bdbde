//! `injectd.v1.Injector`: messages in, messages out, the injector between them.

use std::{
    borrow::Cow,
    future::ready,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Request, Response, Status, Streaming};
use tracing::error;

use super::{
    MAX_AGE,
    body::Bodies,
    deadline::Deadline,
    failure::Failure,
    v1::{
        self, InjectRequest, InjectResponse, InjectStreamRequest, InjectStreamResponse,
        inject_stream_response::Result as StreamResult, injector_server,
    },
};
use crate::{
    cluster::is_object_name,
    injector::{Injector, Known, ReviewError},
    linkerd::events,
    log,
    metrics::Refused,
    observer::Observer,
    outcome::{Outcome, SkipReason, Verdict, Workload},
    patch::JsonSink,
    pod::TextMap,
    review::{self, DecodeError, MAX_UID_BYTES, Subject},
    server::Taken,
};

/// Requests of a stream that are answered at the same time.
const MAX_OF_STREAM: usize = 64;

/// The service behind the gRPC door.
#[derive(Clone)]
pub(super) struct Service(Arc<Shared>);

struct Shared {
    injector: Arc<Injector>,
    observer: Arc<Observer>,
    requests: Semaphore,
    bodies: Bodies,
    ends: Ends,
}

/// Makes futures that are done when streams have to end.
pub(super) type Ends = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl Service {
    pub(super) fn new(
        injector: Arc<Injector>,
        observer: Arc<Observer>,
        requests: Semaphore,
        bodies: Bodies,
        ends: Ends,
    ) -> Self {
        Self(Arc::new(Shared { injector, observer, requests, bodies, ends }))
    }
}

#[tonic::async_trait]
impl injector_server::Injector for Service {
    async fn inject(
        &self,
        request: Request<InjectRequest>,
    ) -> Result<Response<InjectResponse>, Status> {
        let Self(shared) = self;
        let end = deadline_of(&request).at(Instant::now());
        let Ok(_permit) = shared.requests.try_acquire() else {
            shared.observer.metrics.refused(Refused::Requests);
            return Err(Failure::overloaded("too many requests at a time").into());
        };
        let _room = shared.bodies.take(request.get_ref().object.len()).inspect_err(|_| {
            shared.observer.metrics.refused(Refused::Bodies);
        })?;
        let response = shared.answer(request.get_ref(), end).await?;
        Ok(Response::new(response))
    }

    type InjectStreamStream =
        Pin<Box<dyn Stream<Item = Result<InjectStreamResponse, Status>> + Send>>;

    async fn inject_stream(
        &self,
        request: Request<Streaming<InjectStreamRequest>>,
    ) -> Result<Response<Self::InjectStreamStream>, Status> {
        let deadline = deadline_of(&request);
        let shared = Arc::clone(&self.0);
        let closed = (shared.ends)();
        let has_ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&has_ended);
        let closing = async move {
            tokio::select! {
                () = closed => {}
                () = sleep(MAX_AGE) => {}
            }
            flag.store(true, Ordering::Release);
        };
        let last = stream::once(async move { has_ended.load(Ordering::Acquire) });
        let last = last.filter(|has_ended| ready(*has_ended));
        let last =
            last.map(|_| Err(Failure::unavailable("the stream has to be opened anew").into()));
        // Read only as fast as answers are taken. Each is a task of its own: what others wait for,
        // too, must not depend on who takes this stream's answers.
        let answers = request
            .into_inner()
            .take_until(closing.boxed())
            .map(move |request| {
                let shared = Arc::clone(&shared);
                // Before it waits for anything: what there is no room for must not stay.
                let taken_up = request.map(|it| shared.take_up(it.request.unwrap_or_default()));
                async move {
                    let (request, room) = taken_up?;
                    let answer = tokio::spawn(async move {
                        Box::pin(shared.answer_in_stream(request, room, deadline)).await
                    });
                    let answer = AbortOnDropHandle::new(answer).await;
                    answer.map_err(|error| Status::internal(error.to_string()))
                }
            })
            .buffer_unordered(MAX_OF_STREAM)
            .chain(last);
        Ok(Response::new(Box::pin(answers)))
    }
}

impl Shared {
    /// A request with room until it is answered; without room only its uid is left.
    fn take_up(&self, request: InjectRequest) -> (InjectRequest, Result<Taken, Failure>) {
        let room = self.bodies.take(request.object.len());
        let request = match room {
            Ok(_) => request,
            Err(_) => InjectRequest { uid: request.uid, ..InjectRequest::default() },
        };
        (request, room)
    }

    async fn answer_in_stream(
        &self,
        request: InjectRequest,
        room: Result<Taken, Failure>,
        deadline: Deadline,
    ) -> InjectStreamResponse {
        let _permit = self.requests.acquire().await;
        let end = deadline.in_stream(Instant::now());
        let result = if let Err(failure) = room {
            self.observer.metrics.refused(Refused::Bodies);
            StreamResult::Failure(failure.into())
        } else if request.uid.is_empty() {
            let failure = Failure::field("uid", "must be set in a stream");
            self.observer.metrics.refused(Refused::NotAReview);
            StreamResult::Failure(failure.into())
        } else {
            match self.answer(&request, end).await {
                Ok(response) => StreamResult::Response(response),
                Err(failure) => StreamResult::Failure(failure.into()),
            }
        };
        InjectStreamResponse { uid: request.uid, result: Some(result) }
    }

    /// Answers a request; what goes wrong is counted.
    async fn answer(
        &self,
        request: &InjectRequest,
        end: Instant,
    ) -> Result<InjectResponse, Failure> {
        let _in_flight = self.observer.metrics.begin();
        let injected = AssertUnwindSafe(timeout_at(end, self.inject(request, end))).catch_unwind();
        let failure = match injected.await {
            Ok(Ok(Ok(response))) => return Ok(response),
            Ok(Ok(Err(failure))) => failure,
            Ok(Err(_)) => Failure::late(),
            Err(_) => {
                self.observer.metrics.panicked();
                error!("a request failed because of a bug in injectd");
                Failure::new(Code::Internal, "a bug in injectd: see its log")
            }
        };
        if let Some(why) = failure.refused() {
            self.observer.metrics.refused(why);
        }
        Err(failure)
    }

    async fn inject(
        &self,
        request: &InjectRequest,
        end: Instant,
    ) -> Result<InjectResponse, Failure> {
        let begin = Instant::now();
        if request.uid.len() > MAX_UID_BYTES {
            return Err(Failure::field(
                "uid",
                format!("must not be longer than {MAX_UID_BYTES} bytes"),
            ));
        }
        let known = known(request)?;
        if !is_object_name(&request.namespace) {
            return Err(Failure::field("namespace", "expected the name of a namespace"));
        }
        let InjectRequest { uid, namespace, kind, object, .. } = request;
        let mut reviewed = review::Request::of_object(uid, namespace, kind, object)
            .map_err(|error| unreadable(&error))?;
        reviewed.dry_run = request.dry_run;
        if let Subject::Unreadable(error) = &reviewed.subject {
            let field = format!("object.{}", error.field());
            return Err(Failure::field(field.trim_end_matches('.'), error.problem()));
        }
        if matches!(reviewed.subject, Subject::Absent) {
            return Err(Failure::field("object", "expected an object, found null"));
        }
        let mut patch = JsonSink::default();
        let answered = self.injector.answer(&reviewed, known, Some(end), &mut patch).await;
        let outcome = answered
            .map_err(|error: ReviewError| Failure::unavailable(log::with_causes(&error)))?;
        self.observer.observe(&outcome, begin.elapsed());
        match &outcome.denial {
            Some(reason) => Err(Failure::new(Code::FailedPrecondition, reason.as_ref())),
            None => Ok(response(&request.uid, &outcome, patch.json)),
        }
    }
}

fn deadline_of<T>(request: &Request<T>) -> Deadline {
    request.extensions().get().copied().unwrap_or_default()
}

/// What the caller knows better than the cluster.
fn known(request: &InjectRequest) -> Result<Known<'_>, Failure> {
    let namespace_annotations = request.namespace_annotations.as_ref().map(|namespace| {
        let all = namespace.annotations.iter();
        all.filter(|(key, _)| TextMap::matters(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    });
    let workload = match &request.workload {
        None => None,
        Some(workload) if workload.kind.is_empty() => {
            return Err(Failure::field("workload.kind", "must be set"));
        }
        Some(workload) if workload.name.is_empty() => {
            return Err(Failure::field("workload.name", "must be set"));
        }
        Some(workload) => Some(Workload {
            kind: Cow::Owned(workload.kind.to_ascii_lowercase()),
            name: Cow::Borrowed(workload.name.as_str()),
            object_uid: Cow::Borrowed(""),
        }),
    };
    Ok(Known { namespace_annotations, workload })
}

fn unreadable(error: &DecodeError) -> Failure {
    let description = match error {
        DecodeError::NotUtf8(error) => format!("expected JSON: {error}"),
        DecodeError::NotJson(error) => format!("expected JSON: {error}"),
        DecodeError::NotAReview(error) => error.to_string(),
        DecodeError::NoRequest => error.to_string(),
    };
    Failure::field("object", description)
}

fn response(uid: &str, outcome: &Outcome<'_>, patch: Vec<u8>) -> InjectResponse {
    let verdict = match outcome.verdict {
        Verdict::Injected => v1::Verdict::Injected,
        Verdict::Annotated => v1::Verdict::Annotated,
        Verdict::Skipped | Verdict::Allowed | Verdict::Denied => v1::Verdict::Skipped,
    };
    let skips = outcome.reasons.iter().map(|reason| v1::Skip {
        reason: skip_reason(reason).into(),
        message: events::words(reason).to_owned(),
    });
    let warnings = outcome.warnings.iter().map(|warning| v1::Warning {
        annotation: warning.annotation.to_owned(),
        problem: warning.problem.clone(),
    });
    InjectResponse {
        uid: uid.to_owned(),
        verdict: verdict.into(),
        patch: Bytes::from(patch),
        skips: skips.collect(),
        warnings: warnings.collect(),
        configuration_generation: outcome.generation,
    }
}

fn skip_reason(reason: SkipReason) -> v1::SkipReason {
    match reason {
        SkipReason::HostNetwork => v1::SkipReason::HostNetwork,
        SkipReason::SidecarExists => v1::SkipReason::SidecarExists,
        SkipReason::UnsupportedResource => v1::SkipReason::UnsupportedResource,
        SkipReason::InvalidNamespaceAnnotation => v1::SkipReason::InvalidNamespaceAnnotation,
        SkipReason::InvalidPodAnnotation => v1::SkipReason::InvalidPodAnnotation,
        SkipReason::DisabledByPod => v1::SkipReason::DisabledByPod,
        SkipReason::NotEnabled => v1::SkipReason::NotEnabled,
        SkipReason::NoServiceAccountToken => v1::SkipReason::NoServiceAccountToken,
    }
}
