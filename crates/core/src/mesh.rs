//! The steps of a review that differ from mesh to mesh.

use std::sync::Arc;

use crate::{
    lookups::{Annotations, CallerFacts, Lookups, NoTurn, OwnerError, Turns},
    object::Kind,
    outcome::{Configuration, Outcome, SkipReason, Workload},
    patch::PatchBuffer,
    request::{Request, View},
};

/// A mesh with one configuration. [`Injector`](crate::injector::Injector) calls its methods in
/// their order.
pub trait Mesh: Send + Sync + 'static {
    /// The name of the mesh in the gRPC API.
    const NAME: &'static str;
    /// The reasons for which the mesh skips pods.
    const SKIP_REASONS: &'static [SkipReason];
    /// The mesh's view of an object under review.
    type Object<'a>: View<'a> + Send + Sync;
    /// What a decision finds out about an object.
    type Plan<'r>: Send + Sync;

    /// Whether the mesh reads annotations with this key. Caches drop all other annotations.
    fn reads(key: &str) -> bool;

    /// How the mesh uses the annotations of the object's namespace.
    fn namespace_use(&self) -> NamespaceUse;

    /// Number and release of the configuration.
    fn configuration(&self) -> &Arc<Configuration>;

    /// A label of counters, from a closed set: the kind of a pod's direct owner, `pod` without an
    /// owner, and empty for other objects.
    fn owner_kind(kind: Kind, object: &Self::Object<'_>) -> &'static str;

    /// Decides about an object in a namespace with these annotations. Records skip reasons in the
    /// outcome. An object that takes long waits for its turn, which lasts as long as the plan.
    ///
    /// # Errors
    /// The turn does not come in time, or never: then the object is denied.
    fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Self::Object<'a>>,
        namespace: &'r Annotations,
        turns: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> impl Future<Output = Result<Decision<Self::Plan<'r>>, NoTurn>> + Send;

    /// The workload of an object to inject; `None` if it has none.
    ///
    /// # Errors
    /// Too many reviews wait for the lookup.
    fn workload<'a>(
        reviewed: Reviewed<'_, 'a, Self::Object<'a>>,
        facts: CallerFacts<'a>,
        lookups: &impl Lookups,
    ) -> impl Future<Output = Result<Option<Workload<'a>>, OwnerError>> + Send;

    /// The kind of the root owner of an object without a sidecar, for the counters; a closed set.
    /// Sends no request to the API server.
    fn known_owner_kind<'a>(
        reviewed: Reviewed<'_, 'a, Self::Object<'a>>,
        facts: CallerFacts<'a>,
        lookups: &impl Lookups,
    ) -> impl Future<Output = &'static str> + Send;

    /// Writes the patch with the sidecar.
    fn inject<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Self::Object<'a>>,
        plan: Self::Plan<'_>,
        workload: Option<Workload<'a>>,
        output: Output<'_, 'a>,
    );

    /// Finishes the answer for an object without a sidecar, which may still get a patch.
    fn leave_alone<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Self::Object<'a>>,
        plan: &Self::Plan<'_>,
        output: Output<'_, 'a>,
    );
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

/// How a mesh uses the annotations of namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceUse {
    /// The namespace must exist.
    Required,
    /// A namespace that does not exist has no annotations.
    Optional,
    /// They are not looked up.
    Unused,
}

/// The two parts of an answer.
#[derive(Debug)]
pub struct Output<'p, 'a> {
    /// The patch.
    pub patch: &'p mut PatchBuffer,
    /// The outcome.
    pub outcome: &'p mut Outcome<'a>,
}

/// The decision on an object.
#[derive(Debug)]
pub struct Decision<P> {
    /// Whether the object gets a sidecar.
    pub is_injected: bool,
    /// What the decision found out about the object.
    pub plan: P,
}

impl<O> Clone for Reviewed<'_, '_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Reviewed<'_, '_, O> {}
