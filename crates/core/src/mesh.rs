//! The steps of a review that differ from mesh to mesh.

use std::{sync::Arc, time::Instant};

use crate::{
    lookups::{Annotations, Lookups, NoTurn, OwnerError, Turns},
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

    /// Decides about an object in a namespace with these annotations. Writes into the outcome what is
    /// decided: reasons, warnings, a denial. An object that takes long waits for its turn, which lasts as
    /// long as the plan.
    ///
    /// # Errors
    /// The turn does not come in time. If it can never come, the caller denies the object.
    fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Self::Object<'a>>,
        namespace: &'r Annotations,
        turns: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> impl Future<Output = Result<Self::Plan<'r>, NoTurn>> + Send;

    /// Carries out a plan: writes the patch with the sidecar, if the object gets one, and completes the
    /// outcome. Called once for a plan; by reference, since a plan is too large to be moved.
    ///
    /// # Errors
    /// Too many reviews wait for the lookup of the object's owner.
    fn inject<'r, 'a>(
        &self,
        reviewed: Reviewed<'r, 'a, Self::Object<'a>>,
        plan: &mut Self::Plan<'r>,
        workload: WorkloadSource<'_, 'a, impl Lookups>,
        output: Output<'_, 'a>,
    ) -> impl Future<Output = Result<(), OwnerError>> + Send;
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

/// Where the workload of an object is found, for meshes that write it on pods.
#[derive(Debug)]
pub struct WorkloadSource<'l, 'a, L> {
    /// The workload, if the caller knows it.
    pub of_caller: Option<Workload<'a>>,
    /// The source of owners.
    pub lookups: &'l L,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
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
