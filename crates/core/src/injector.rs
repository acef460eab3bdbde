//! The steps of a review, in order. Read this file first.
//!
//! Decode, namespace, decide, inject, encode. A review waits only for the lookups of its namespace, its
//! owner and its service account and, before an evaluation, for its turn; everything else is synchronous
//! and pure. The [`Mesh`] decides and injects.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::{
    lookups::{CallerFacts, LookupError, Lookups, Metadata, NoTurn, ObjectError},
    mesh::{Caller, InjectError, Mesh, Output, Reviewed},
    namespace::{MissingNamespace, NamespaceReads},
    outcome::{Outcome, SkipReasons},
    patch::PatchBuffer,
    request::{Request, Subject},
    review::{self, DecodeError},
};

mod explain;

/// Start of the denial of an object with a wrong type in a field that injection reads.
pub const UNREADABLE_OBJECT: &str = "the object cannot be understood";

/// The injection core, which every server calls.
#[derive(Debug)]
pub struct Injector<M, L> {
    mesh: ArcSwap<M>,
    lookups: L,
}

/// Why a review failed.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The body is not a review with a uid, so no response can be addressed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The lookup of the namespace failed.
    #[error("cannot look up the annotations of namespace {0:?}")]
    Namespace(String, #[source] LookupError),
    /// The lookup of another object failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The evaluation did not get its turn before the deadline.
    #[error(transparent)]
    NoTurn(#[from] NoTurn),
}

/// The answer to a review, and its outcome.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The `AdmissionReview` to send back, as JSON.
    pub body: Vec<u8>,
    /// For metrics, the log line and the event.
    pub outcome: Outcome<'a>,
}

impl From<InjectError> for ReviewError {
    fn from(error: InjectError) -> Self {
        match error {
            InjectError::Lookup(error) => Self::Object(error),
            InjectError::NoTurn(error) => Self::NoTurn(error),
        }
    }
}

impl<M: Mesh, L: Lookups> Injector<M, L> {
    /// An injector for a mesh. The lookups learn what it reads of namespaces.
    #[must_use]
    pub fn new(mesh: M, lookups: L) -> Self {
        lookups.will_read(mesh.namespace_reads());
        Self { mesh: ArcSwap::from_pointee(mesh), lookups }
    }

    /// The source of lookups.
    #[must_use]
    pub fn lookups(&self) -> &L {
        &self.lookups
    }

    /// The mesh with the configuration in use.
    #[must_use]
    pub fn mesh(&self) -> Arc<M> {
        self.mesh.load_full()
    }

    /// Replaces the mesh by one with another configuration; reviews in flight keep theirs.
    pub fn replace_mesh(&self, mesh: M) {
        // The cache learns first: a review with the new mesh would find no namespace with all that
        // it reads.
        self.lookups.will_read(mesh.namespace_reads());
        self.mesh.store(Arc::new(mesh));
    }

    /// Answers a review.
    ///
    /// # Errors
    /// When the body is not a review: no response can be addressed. When a lookup fails, or a turn
    /// does not come in time: a retry may succeed.
    pub async fn review<'a>(&'a self, body: &'a [u8]) -> Result<Answer<'a>, ReviewError> {
        self.review_with(CallerFacts::default(), body).await
    }

    /// Answers a review with facts of the caller.
    ///
    /// # Errors
    /// As [`Injector::review`].
    pub async fn review_with<'a>(
        &'a self,
        facts: CallerFacts<'a>,
        body: &'a [u8],
    ) -> Result<Answer<'a>, ReviewError> {
        self.answer_review(&review::decode(body)?, facts).await
    }

    /// Answers a decoded review.
    ///
    /// # Errors
    /// When a lookup fails, or a turn does not come in time.
    pub async fn answer_review<'a>(
        &'a self,
        request: &Request<'a, M::Object<'a>>,
        facts: CallerFacts<'a>,
    ) -> Result<Answer<'a>, ReviewError> {
        let mut patch = review::patch_buffer();
        let outcome = self.answer(request, facts, &mut patch).await?;
        Ok(Answer { body: review::encode(request, &outcome, patch), outcome })
    }

    /// Decides about a request and writes its patch, for a server with its own wire format.
    ///
    /// # Errors
    /// When a lookup fails, or a turn does not come in time.
    pub async fn answer<'a>(
        &'a self,
        request: &Request<'a, M::Object<'a>>,
        mut facts: CallerFacts<'a>,
        patch: &mut PatchBuffer,
    ) -> Result<Outcome<'a>, ReviewError> {
        // Held to the end: a configuration that changes meanwhile is for the next review.
        let mesh = self.mesh.load_full();
        self.answer_with(&mesh, request, &mut facts, patch).await
    }

    /// As [`Injector::answer`], with this configuration of the mesh. The facts are used up; by reference,
    /// since each future on the way would have their size.
    async fn answer_with<'a>(
        &'a self,
        mesh: &M,
        request: &Request<'a, M::Object<'a>>,
        facts: &mut CallerFacts<'a>,
        patch: &mut PatchBuffer,
    ) -> Result<Outcome<'a>, ReviewError> {
        let reasons = SkipReasons::empty(M::SKIP_REASONS);
        let mut outcome = Outcome::of(request, reasons, Arc::clone(mesh.configuration()));
        let object = match &request.subject {
            Subject::Object(object) => object,
            // Nothing will be stored, so no lookup may delay or fail such a request.
            Subject::Absent => return Ok(outcome),
            Subject::Unreadable(error) => {
                outcome.deny(format!("{UNREADABLE_OBJECT}: {error}").into());
                return Ok(outcome);
            }
        };
        let request_path = facts.path;
        let Some(namespace) = self.namespace(request, facts, mesh.namespace_reads()).await? else {
            // The API server's text.
            let reason = format!("namespaces \"{}\" not found", &*request.namespace);
            outcome.deny(reason.into());
            return Ok(outcome);
        };
        let reviewed = Reviewed { request, object, path: request_path };
        let decided = mesh.decide(reviewed, &namespace, facts.turns, &mut outcome);
        let mut plan = match decided.await {
            // No retry can succeed.
            Err(NoTurn::TooLarge(reason)) => {
                outcome.deny(reason.into());
                return Ok(outcome);
            }
            decided => decided?,
        };
        let (workload, lookups) = (facts.workload.take(), &self.lookups);
        let caller = Caller { workload, deadline: facts.deadline, turns: facts.turns, lookups };
        let output = Output { patch, outcome: &mut outcome };
        match mesh.inject(reviewed, &mut plan, caller, output).await {
            Err(InjectError::NoTurn(NoTurn::TooLarge(reason))) => outcome.deny(reason.into()),
            injected => injected?,
        }
        Ok(outcome)
    }

    /// Labels and annotations of the request's namespace; `None` if it must exist and does not.
    async fn namespace<O>(
        &self,
        request: &Request<'_, O>,
        facts: &mut CallerFacts<'_>,
        reads: &NamespaceReads,
    ) -> Result<Option<Arc<Metadata>>, ReviewError> {
        // A caller of gRPC may know the namespace; nothing is asked then.
        if let Some(namespace) = facts.namespace.take() {
            return Ok(Some(namespace));
        }
        // No lookup may fail, or wait, for what nothing reads.
        if reads.is_nothing() {
            return Ok(Some(Metadata::none()));
        }
        match self.lookups.namespace(&request.namespace, reads).await {
            Ok(None) if reads.missing == MissingNamespace::Empty => Ok(Some(Metadata::none())),
            Ok(found) => Ok(found),
            Err(error) => Err(ReviewError::Namespace(request.namespace.to_string(), error)),
        }
    }
}
