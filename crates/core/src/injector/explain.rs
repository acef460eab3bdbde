//! Explains the answer to a request, beside the answer itself.

use super::{Injector, ReviewError};
use crate::{
    explain::{Explain, Explanation, Findings, Trees},
    lookups::{CallerFacts, Lookups},
    mesh::Reviewed,
    patch::PatchBuffer,
    request::{Request, Subject},
};

impl<M: Explain, L: Lookups> Injector<M, L> {
    /// Explains the answer to a request for an object. `trees` has the object with all its fields.
    /// The patch is that of the answer.
    ///
    /// # Errors
    /// As [`Injector::answer`].
    pub async fn explain<'a>(
        &'a self,
        request: &Request<'a, M::Object<'a>>,
        trees: impl Into<Trees<'_>>,
        mut facts: CallerFacts<'a>,
        patch: &mut PatchBuffer,
    ) -> Result<Explanation, ReviewError> {
        let trees = trees.into();
        let mesh = self.mesh();
        let request_path = facts.path;
        let mut of_caller =
            CallerFacts { namespace: facts.namespace.clone(), ..CallerFacts::default() };
        let outcome = self.answer_with(&mesh, request, &mut facts, patch).await?;
        let mut findings = Findings::default();
        if let Subject::Object(object) = &request.subject
            && let namespace = self.namespace(request, &mut of_caller, mesh.namespace_reads())
            && let Some(namespace) = namespace.await?
        {
            let reviewed = Reviewed { request, object: &**object, path: request_path };
            findings = mesh.explain(reviewed, trees, &namespace, &outcome);
        }
        Ok(Explanation::new(M::NAME, &outcome, findings))
    }
}
