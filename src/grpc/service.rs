//! `injectd.v1.Injector`: messages in, messages out, the injector between them.

use std::{
    future::ready,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream};
use injectd_cluster::{causes::with_causes, sources::Sources};
use injectd_profiles::{Profile, Profiles, for_mesh};
use injectd_telemetry::metrics::RejectReason;
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
    explain,
    failure::Failure,
    messages,
    v1::{
        ExplainRequest, ExplainResponse, InjectRequest, InjectResponse, InjectStreamRequest,
        InjectStreamResponse, inject_stream_response::Result as StreamResult, injector_server,
    },
};
use crate::{
    injector::{Injector, ReviewError},
    lookups::{CallerFacts, Patience as _},
    mesh::Mesh,
    observer::Observer,
    patch::PatchBuffer,
    review::MAX_UID_BYTES,
    server::{
        CallerPatience, EvaluationTurns, LONG_REVIEW_BYTES, Late, Permit, Threads, TurnCaller,
    },
};

/// Maximum concurrent requests of a stream.
const MAX_OF_STREAM: usize = 64;

/// The service behind the gRPC server.
#[derive(Clone)]
pub(super) struct Service(Arc<Shared>);

struct Shared {
    profiles: Profiles,
    observer: Arc<Observer>,
    /// Limits the messages of all streams that are answered concurrently.
    messages: Semaphore,
    turns: EvaluationTurns,
    ends: Ends,
}

/// The context of a call.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) deadline: Deadline,
    pub(super) begin: Instant,
    pub(super) bodies: Bodies,
}

/// A message that is being answered.
struct Message {
    request: InjectRequest,
    permit: Permit,
    bodies: Bodies,
    begin: Instant,
}

impl Call {
    /// Without a context, the default deadline and an unlimited budget apply.
    fn of<T>(request: &Request<T>) -> Self {
        let call = request.extensions().get().cloned();
        call.unwrap_or_else(|| Self {
            deadline: Deadline::default(),
            begin: Instant::now(),
            bodies: Bodies::default(),
        })
    }
}

/// Creates futures that complete when streams must end.
pub(super) type Ends = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl Service {
    pub(super) fn new(
        profiles: Profiles,
        observer: Arc<Observer>,
        messages: Semaphore,
        turns: EvaluationTurns,
        ends: Ends,
    ) -> Self {
        Self(Arc::new(Shared { profiles, observer, messages, turns, ends }))
    }
}

#[tonic::async_trait]
impl injector_server::Injector for Service {
    async fn inject(
        &self,
        request: Request<InjectRequest>,
    ) -> Result<Response<InjectResponse>, Status> {
        let Self(shared) = self;
        let Call { deadline, begin, bodies } = Call::of(&request);
        let request = request.into_inner();
        let permit = bodies.take(messages::bytes_of(&request))?;
        let message = Message { request, permit, bodies, begin };
        let response = shared.answer(message, deadline.at(begin)).await?;
        Ok(Response::new(response))
    }

    async fn explain(
        &self,
        request: Request<ExplainRequest>,
    ) -> Result<Response<ExplainResponse>, Status> {
        let Self(shared) = self;
        let Call { deadline, begin, bodies } = Call::of(&request);
        let request = request.into_inner().request;
        let request = request.ok_or_else(|| Failure::field("request", "must be set"))?;
        let permit = bodies.take(messages::bytes_of(&request))?;
        let message = Message { request, permit, bodies, begin };
        let response = shared.explain(message, deadline.at(begin)).await?;
        Ok(Response::new(response))
    }

    type InjectStreamStream =
        Pin<Box<dyn Stream<Item = Result<InjectStreamResponse, Status>> + Send>>;

    async fn inject_stream(
        &self,
        request: Request<Streaming<InjectStreamRequest>>,
    ) -> Result<Response<Self::InjectStreamStream>, Status> {
        let Call { deadline, bodies, .. } = Call::of(&request);
        let shared = Arc::clone(&self.0);
        let closed = (shared.ends)();
        let has_ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&has_ended);
        let closing = async move {
            tokio::select! {
                () = closed => {}
                // The access of a caller is checked when a stream opens: it must open another one
                // now and then.
                () = sleep(MAX_AGE) => {}
            }
            flag.store(true, Ordering::Release);
        };
        let last = stream::once(async move { has_ended.load(Ordering::Acquire) });
        let last = last.filter(|has_ended| ready(*has_ended));
        let last =
            last.map(|_| Err(Failure::unavailable("the stream has ended: open a new one").into()));
        // Requests are read only as fast as the client reads responses. Each request is its own
        // task: other streams may wait for the same lookup, which must not depend on this client.
        let answers = request
            .into_inner()
            .take_until(closing.boxed())
            .map(move |request| {
                let shared = Arc::clone(&shared);
                // Before any await: a message over the budget must not stay in memory.
                let received =
                    request.map(|message| receive(message.request.unwrap_or_default(), &bodies));
                async move {
                    let (uid, message) = received?;
                    let answer = tokio::spawn(async move {
                        Box::pin(shared.answer_in_stream(uid, message, deadline)).await
                    });
                    // A client that closes its stream must not leave work behind.
                    let answer = AbortOnDropHandle::new(answer).await;
                    answer.map_err(|error| Status::internal(error.to_string()))
                }
            })
            .buffer_unordered(MAX_OF_STREAM)
            .chain(last);
        Ok(Response::new(Box::pin(answers)))
    }
}

/// Takes memory for a message until it is answered. Returns its uid, and the message unless it is
/// over the budget.
fn receive(request: InjectRequest, bodies: &Bodies) -> (String, Result<Message, Failure>) {
    let begin = Instant::now();
    let permit = bodies.take(messages::bytes_of(&request));
    // A longer uid is rejected; the response echoes its beginning.
    let uid = request.uid[..request.uid.floor_char_boundary(MAX_UID_BYTES)].to_owned();
    let bodies = bodies.clone();
    (uid, permit.map(|permit| Message { request, permit, bodies, begin }))
}

impl Shared {
    async fn answer_in_stream(
        self: Arc<Self>,
        uid: String,
        message: Result<Message, Failure>,
        deadline: Deadline,
    ) -> InjectStreamResponse {
        // One stream may send 64 messages at a time: without a common limit, many streams could
        // hold all threads.
        let _permit = self.messages.acquire().await;
        let end = deadline.in_stream(Instant::now());
        let answered = match message {
            Err(failure) => Err(failure),
            Ok(_) if uid.is_empty() => {
                self.observer.metrics.rejected(RejectReason::NotAReview);
                Err(Failure::field("uid", "must be set in a stream"))
            }
            Ok(message) => self.answer(message, end).await,
        };
        let result = match answered {
            Ok(response) => StreamResult::Response(response),
            Err(failure) => StreamResult::Failure(failure.into()),
        };
        InjectStreamResponse { uid, result: Some(result) }
    }

    /// Answers a request and counts a failure.
    async fn answer(
        self: &Arc<Self>,
        message: Message,
        end: Instant,
    ) -> Result<InjectResponse, Failure> {
        let patience = CallerPatience::until(end);
        let bytes = messages::bytes_of(&message.request);
        let injected = async {
            if bytes <= LONG_REVIEW_BYTES {
                let caller = TurnCaller { patience: &patience, threads: Threads::Workers };
                return self.inject(message, caller).await;
            }
            let (shared, own) = (Arc::clone(self), patience.clone());
            let injected = async move {
                let caller = TurnCaller { patience: &own, threads: Threads::Separate };
                shared.inject(message, caller).await
            };
            let injected = Box::pin(self.turns.long_work().run(&patience, bytes, injected)).await;
            injected.unwrap_or_else(|Late| Err(Failure::late()))
        };
        self.guarded(end, injected).await
    }

    /// Explains a request. That is never hot, so it waits for other work.
    async fn explain(
        self: &Arc<Self>,
        message: Message,
        end: Instant,
    ) -> Result<ExplainResponse, Failure> {
        let (shared, patience) = (Arc::clone(self), CallerPatience::until(end));
        let (own, bytes) = (patience.clone(), messages::bytes_of(&message.request));
        let explained = async move {
            let Message { request, permit: _permit, bodies, .. } = message;
            // An explanation takes many times as long as an injection, whatever its size: never on
            // the worker threads.
            let turns = shared.turns.of_caller(bodies.budget(), &own, Threads::Separate);
            let failure = |error: &_| shared.failure(error);
            let explained =
                explain::response(&shared.profiles, &request, end, &turns, failure).await;
            // An evaluation that has given up explains nothing.
            if own.is_over() { Err(Failure::late()) } else { explained }
        };
        let explained = async {
            let explained = Box::pin(self.turns.long_work().run(&patience, bytes, explained)).await;
            explained.unwrap_or_else(|Late| Err(Failure::late()))
        };
        self.guarded(end, explained).await
    }

    /// Answers in time, also after a panic, and counts a failure.
    async fn guarded<R>(
        &self,
        end: Instant,
        answered: impl Future<Output = Result<R, Failure>>,
    ) -> Result<R, Failure> {
        let _in_flight = self.observer.metrics.begin();
        let answered = AssertUnwindSafe(timeout_at(end, answered)).catch_unwind();
        let failure = match answered.await {
            Ok(Ok(Ok(response))) => return Ok(response),
            Ok(Ok(Err(failure))) => failure,
            Ok(Err(_)) => Failure::late(),
            Err(_) => {
                self.observer.metrics.panicked();
                error!("a request failed because of a bug in injectd");
                Failure::new(Code::Internal, "a bug in injectd: see its log")
            }
        };
        if let Some(why) = failure.rejected() {
            self.observer.metrics.rejected(why);
        }
        Err(failure)
    }

    /// Chooses the injector that the request names.
    async fn inject(
        &self,
        message: Message,
        caller: TurnCaller<'_>,
    ) -> Result<InjectResponse, Failure> {
        let profile = messages::named(&self.profiles, &message.request)?;
        for_mesh!(&profile, injector => self.inject_by(injector, &profile, message, caller).await)
    }

    fn failure(&self, error: &ReviewError) -> Failure {
        match error {
            ReviewError::NoTurn(busy) => {
                self.observer.metrics.rejected(RejectReason::Evaluations);
                Failure::overloaded(&busy.to_string())
            }
            error => Failure::unavailable(with_causes(error)),
        }
    }

    async fn inject_by<M: Mesh>(
        &self,
        injector: &Injector<M, Sources>,
        profile: &Profile,
        message: Message,
        TurnCaller { patience, threads }: TurnCaller<'_>,
    ) -> Result<InjectResponse, Failure> {
        let Message { request, mut permit, bodies, begin } = message;
        let turns = self.turns.of_caller(bodies.budget(), patience, threads);
        let reviewed = messages::review_of(&request)?;
        let end = patience.end().into_std();
        let facts =
            messages::facts(&request, reviewed.kind, end, injector.mesh().namespace_reads())?;
        let mut patch = PatchBuffer::json();
        let facts = CallerFacts { turns: Some(&turns), ..facts };
        let answered = injector.answer(&reviewed, facts, &mut patch).await;
        let outcome = answered.map_err(|error| self.failure(&error))?;
        // An evaluation that has given up has no answer.
        if patience.is_over() {
            return Err(Failure::late());
        }
        // An answer without memory for it is not observed: the client retries the request.
        let patch = patch.into_bytes();
        bodies.resize(&mut permit, patch.len())?;
        self.observer.observe(profile, &outcome, begin.elapsed());
        match &outcome.denial {
            Some(reason) => Err(Failure::new(Code::FailedPrecondition, reason.as_ref())),
            None => Ok(messages::response(&request.uid, &outcome, patch, permit)),
        }
    }
}
