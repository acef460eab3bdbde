//! The steps of a review that differ from mesh to mesh.

use std::{sync::Arc, time::Instant};

use crate::{
    lookups::{Lookups, Metadata, NoTurn, ObjectError, Turns},
    namespace::NamespaceReads,
    outcome::{Configuration, Outcome, SkipReason, Workload},
    patch::PatchBuffer,
    request::{Request, View},
};

/// A mesh with one configuration. For each object that can be read,
/// [`Injector`](crate::injector::Injector) calls [`decide`](Mesh::decide), then
/// [`inject`](Mesh::inject) with the plan.
pub trait Mesh: Send + Sync + 'static {
    /// The name of the mesh in the gRPC API.
    const NAME: &'static str;
    /// The reasons for which the mesh skips pods.
    const SKIP_REASONS: &'static [SkipReason];
    /// The mesh's view of an object under review.
    type Object<'a>: View<'a> + Send + Sync;
    /// What follows from a decision.
    type Plan<'r>: Send + Sync;

    /// Number and release of the configuration.
    fn configuration(&self) -> &Arc<Configuration>;

    /// What the configuration reads of the namespaces of objects.
    fn namespace_reads(&self) -> &NamespaceReads;

    /// Decides about an object in a namespace with these labels and annotations. Writes into the outcome what is
    /// decided: reasons, warnings, a denial. An object that takes long waits for its turn, which lasts as
    /// long as the plan.
    ///
    /// # Errors
    /// The turn does not come in time. If it can never come, the caller denies the object.
    fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Self::Object<'a>>,
        namespace: &'r Metadata,
        turns: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> impl Future<Output = Result<Self::Plan<'r>, NoTurn>> + Send;

    /// Carries out a plan: writes the patch with the sidecar, if the object gets one, and completes the
    /// outcome. Called once for a plan; by reference, since a plan is too large to be moved.
    ///
    /// # Errors
    /// The lookup of an object fails, or the turn does not come in time.
    fn inject<'r, 'a>(
        &self,
        reviewed: Reviewed<'r, 'a, Self::Object<'a>>,
        plan: &mut Self::Plan<'r>,
        caller: Caller<'_, 'a, impl Lookups>,
        output: Output<'_, 'a>,
    ) -> impl Future<Output = Result<(), InjectError>> + Send;
}

/// An object under review, and its request.
#[derive(Debug)]
pub struct Reviewed<'r, 'a, O> {
    /// The request.
    pub request: &'r Request<'a, O>,
    /// The object of the request.
    pub object: &'r O,
    /// The decoded path of the webhook's URL; empty for callers without one.
    pub path: &'r str,
}

/// What an injection gets from its caller, and where it finds the rest.
#[derive(Debug)]
pub struct Caller<'l, 'a, L> {
    /// The workload of the object, if the caller knows it.
    pub workload: Option<Workload<'a>>,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// The turns of evaluations; `None` if they need not wait.
    pub turns: Option<&'l dyn Turns>,
    /// The source of owners and service accounts.
    pub lookups: &'l L,
}

/// Why a plan cannot be carried out now. A retry may succeed.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The lookup of an object failed.
    #[error(transparent)]
    Lookup(#[from] ObjectError),
    /// The evaluation did not get its turn. If it can never get it, the caller denies the object.
    #[error(transparent)]
    NoTurn(#[from] NoTurn),
}

/// The two parts of an answer.
#[derive(Debug)]
pub struct Output<'p, 'a> {
    /// The patch.
    pub patch: &'p mut PatchBuffer,
    /// The outcome.
    pub outcome: &'p mut Outcome<'a>,
}

impl<O> Clone for Reviewed<'_, '_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Reviewed<'_, '_, O> {}
