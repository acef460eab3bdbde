//! Evaluates a pod without an answer: first with a placeholder for the name of its owner, so that the
//! answer serves pods with other owners, too.

#![expect(clippy::disallowed_types, reason = "templates read any field of the pod")]

use std::{mem, sync::Arc};

use injectd_core::{
    lookups::{Annotations, Patience, Turn},
    mesh::Reviewed,
};
use serde_json::Value as Json;

use super::Istio;
use crate::{
    injection::{Injected, Injection},
    memory::{Read, Record, Recorded, SlottedPatch, placeholder},
    object::Object,
    owner::Owner,
    patch::{Operation, patch},
};

/// What an evaluation needs.
#[derive(Debug)]
pub(super) struct Evaluation {
    pub(super) pod: Arc<Json>,
    /// What the injected pod is compared with; `None` if that is the text of the request.
    pub(super) before: Option<Arc<Json>>,
    /// The annotations of its namespace.
    pub(super) namespace: Annotations,
    /// The warnings of the decision.
    pub(super) warnings: Vec<String>,
    /// Whether its answer may be kept.
    pub(super) is_kept: bool,
    /// Its owner, if the name of that is not in the key, and the pod is that of the request's text.
    pub(super) owner: Option<Box<Owner>>,
    /// Ends with the evaluation.
    pub(super) turn: Option<Turn>,
    /// How long the caller of the evaluation waits.
    pub(super) patience: Option<Arc<dyn Patience>>,
}

/// The result of an evaluation.
#[derive(Debug)]
pub(super) struct Evaluated {
    pub(super) patch: SlottedPatch,
    pub(super) warnings: Vec<String>,
    /// `None` if nothing was recorded.
    pub(super) read: Option<Read>,
    /// What the slots of the patch get; `None` if it was made for this name alone.
    pub(super) owner_name: Option<String>,
}

impl Istio {
    /// The patch of a pod.
    ///
    /// # Errors
    /// The message of the denial.
    pub(super) fn evaluate<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        evaluation: &mut Evaluation,
    ) -> Result<Evaluated, String> {
        let mut pod = mem::take(&mut evaluation.pod);
        let mut with_placeholder = None;
        if let Some(mut owner) = evaluation.owner.take() {
            let name = mem::replace(&mut owner.name, placeholder().to_owned());
            let (recorded, injected) = self.render(reviewed, evaluation, (pod, Some(*owner)));
            match slotted(reviewed, evaluation, recorded, injected) {
                Ok(evaluated) => return Ok(Evaluated { owner_name: Some(name), ..evaluated }),
                Err(recorded) => with_placeholder = recorded,
            }
            let tree = reviewed.object.tree_without_managed_fields();
            pod = Arc::new(tree.ok_or("the pod cannot be read again")?);
        }
        let (recorded, injected) = self.render(reviewed, evaluation, (pod, None));
        let injected = injected?;
        let patch = SlottedPatch::fixed(&operations(reviewed, evaluation, &injected));
        let read = recorded.map(|recorded| Read { recorded, with_placeholder });
        Ok(Evaluated { patch, warnings: injected.warnings, read, owner_name: None })
    }

    /// The pod with its sidecar, and what was read of it.
    fn render<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        evaluation: &Evaluation,
        (pod, owner): (Arc<Json>, Option<Owner>),
    ) -> (Option<Recorded>, Result<Injected, String>) {
        let namespace = &reviewed.request.namespace;
        let mut injection = Injection::new(&self.injector, pod, namespace, reviewed.path)
            .with_patience(evaluation.patience.clone());
        if let Some(owner) = owner {
            injection = injection.with_owner(owner);
        }
        let cluster = self.surroundings(&injection, &evaluation.namespace);
        let record = evaluation.is_kept.then(|| Record::new(self.injector.release()));
        let injected = injection.inject_with(cluster, record.as_ref());
        (record.map(Record::into_recorded), injected)
    }
}

/// The answer of an evaluation with a placeholder for the owner's name.
///
/// # Errors
/// The answer depends on the name. This was read.
fn slotted<'a>(
    reviewed: Reviewed<'_, 'a, Object<'a>>,
    evaluation: &Evaluation,
    recorded: Option<Recorded>,
    injected: Result<Injected, String>,
) -> Result<Evaluated, Option<Recorded>> {
    let Ok(injected) = injected else { return Err(recorded) };
    let is_copied = recorded.as_ref().is_some_and(|recorded| !recorded.reads_owner_name);
    let mut warnings = injected.warnings.iter();
    if !is_copied || warnings.any(|warning| warning.contains(placeholder())) {
        return Err(recorded);
    }
    let Some(patch) = SlottedPatch::of(&operations(reviewed, evaluation, &injected)) else {
        return Err(recorded);
    };
    let read = recorded.map(|recorded| Read { recorded, with_placeholder: None });
    Ok(Evaluated { patch, warnings: injected.warnings, read, owner_name: None })
}

/// The operations from the pod as received to the injected pod.
fn operations<'p, 'a>(
    reviewed: Reviewed<'_, 'a, Object<'a>>,
    evaluation: &Evaluation,
    injected: &'p Injected,
) -> Vec<Operation<'p>> {
    let tree = injected.without_dropped.as_ref().or(evaluation.before.as_ref());
    match (tree, reviewed.object.tape()) {
        (Some(tree), _) => patch(&**tree, &injected.pod),
        (None, tape) => {
            let tape = tape.expect("a pod without a tape must have a tree to compare with");
            patch(tape.root(), &injected.pod)
        }
    }
}
