//! Evaluates a pod without an answer: first with a placeholder for the name of its owner, so that the
//! answer serves pods with other owners, too.

#![expect(clippy::disallowed_types, reason = "templates read any field of the pod")]

use std::{mem, sync::Arc};

use injectd_core::{json::Tape, lookups::Turn, mesh::Output, outcome::Verdict};
use injectd_memory::Slotted;
use serde_json::Value as Json;

use super::{Istio, warn, write};
use crate::{
    injection::{Injected, Injection, PodCluster},
    marker::owner_name as placeholder,
    memory::{Answer, Keeping, KeyInputs, KeyedPod, Read, Record, Recorded, Unknown, slot},
    object::{Object, without_managed_fields},
    owner::Owner,
    patch::{Operation, patch},
    taint,
};

/// A pod that is injected, and what its evaluation needs.
#[derive(Debug)]
pub struct Evaluation<'r> {
    pub(super) injection: Injection<'r>,
    pub(super) original: Original<'r>,
    pub(super) cluster: PodCluster<'r>,
    pub(super) inputs: KeyInputs<'r>,
    /// The warnings of the decision.
    pub(super) warnings: Vec<String>,
    /// Ends with the evaluation.
    pub(super) turn: Option<Turn>,
}

/// What an injected pod is compared with.
#[derive(Debug)]
pub(super) enum Original<'r> {
    /// The text of the request, whose values have Kubernetes' types.
    Text {
        tape: &'r Tape<'r>,
        /// Whether the answer is kept.
        keeping: Keeping,
    },
    /// The pod as a tree, since its text needs care. Its answer is not kept.
    Tree(Arc<Json>),
}

/// The result of an evaluation.
#[derive(Debug)]
struct Evaluated {
    patch: Slotted,
    warnings: Vec<String>,
    /// What the slots of the patch get; empty if it has none.
    owner_name: String,
    /// `None` if the answer is not kept.
    read: Option<Read>,
}

impl Istio {
    /// Evaluates a pod in its turn, and keeps the answer.
    pub(super) fn evaluate(&self, mut evaluation: Evaluation<'_>, output: Output<'_, '_>) {
        let Output { patch: buffer, outcome } = output;
        let turn = evaluation.turn.take();
        if let Some(turn) = &turn {
            evaluation.injection.set_patience(turn.patience());
        }
        let mut evaluate = || evaluation.evaluate(self);
        let evaluated = match &turn {
            Some(turn) => turn.run(evaluate),
            None => evaluate(),
        };
        outcome.tainted = taint::counted(evaluation.injection.tainted());
        let Evaluated { patch, mut warnings, owner_name, read } = match evaluated {
            Ok(evaluated) => evaluated,
            Err(denial) => return outcome.deny(denial.into()),
        };
        write(buffer, &patch, &owner_name);
        warn(outcome, &warnings);
        outcome.verdict = Verdict::Injected;
        let Evaluation { original, inputs, warnings: of_decision, .. } = evaluation;
        if let (Some(memory), Original::Text { tape, .. }, Some(read)) =
            (&self.memory, original, read)
        {
            // A later pod with this answer is not decided about again: the answer has the warnings
            // of the decision, too, in the same order.
            warnings.splice(0..0, of_decision);
            let tainted = outcome.tainted;
            let answer = Answer::Injected { patch, warnings: warnings.into(), tainted };
            memory.keep_evaluated(KeyedPod { tape, inputs }, &read, answer);
        }
    }
}

impl<'r> Original<'r> {
    /// The pod as a tree, and what it is compared with after its injection.
    ///
    /// # Errors
    /// The message of the denial: the text is not JSON.
    pub(super) fn read(
        object: &'r Object<'_>,
        unknown: Unknown<'r>,
    ) -> Result<(Arc<Json>, Self), String> {
        if let Unknown::Checked { tape, keeping } = unknown
            && let Some(pod) = without_managed_fields(tape)
        {
            return Ok((Arc::new(pod), Self::Text { tape, keeping }));
        }
        let pod = Arc::new(object.tree()?);
        Ok((Arc::clone(&pod), Self::Tree(pod)))
    }

    /// The text of a pod whose answer is kept.
    pub(super) fn kept(&self) -> Option<&'r Tape<'r>> {
        match self {
            Self::Text { keeping: Keeping::Never, .. } | Self::Tree(_) => None,
            Self::Text { tape, .. } => Some(tape),
        }
    }
}

impl Evaluation<'_> {
    /// The patch of the pod.
    ///
    /// # Errors
    /// The message of the denial.
    fn evaluate(&mut self, mesh: &Istio) -> Result<Evaluated, String> {
        let keeping = match &mut self.original {
            Original::Text { keeping, .. } => mem::take(keeping),
            Original::Tree(_) => Keeping::Never,
        };
        let with_placeholder = match keeping {
            Keeping::Never => {
                let injected = self.injection.inject_with(self.cluster, None)?;
                return Ok(self.fixed(injected, None));
            }
            Keeping::ForOwner => None,
            // Most templates only copy the name: then one evaluation is enough for all owners.
            Keeping::ForAnyOwner(owner) => match self.slotted(mesh, *owner) {
                Ok(evaluated) => return evaluated,
                Err(recorded) => {
                    self.injection.must_be_awaited()?;
                    self.begin_anew()?;
                    Some(recorded)
                }
            },
        };
        let (recorded, injected) = self.record(mesh);
        Ok(self.fixed(injected?, Some(Read::OfOwner { recorded, with_placeholder })))
    }

    /// The answer for every owner's name, or the denial of a pod with tainted values.
    ///
    /// # Errors
    /// What was read, if the answer depends on the name or is another denial.
    fn slotted(
        &mut self,
        mesh: &Istio,
        owner: Owner,
    ) -> Result<Result<Evaluated, String>, Recorded> {
        let owner_name = owner.name.clone();
        self.injection.set_owner(Owner { name: placeholder().to_owned(), ..owner });
        let (recorded, injected) = self.record(mesh);
        let injected = match injected {
            Ok(injected) => injected,
            // The message has no name of an owner.
            Err(denial) if self.injection.is_denied_for_taint() && !recorded.reads_owner_name => {
                return Ok(Err(denial));
            }
            Err(_) => return Err(recorded),
        };
        let mut warnings = injected.warnings.iter();
        // A warning is a text without slots.
        if recorded.reads_owner_name || warnings.any(|warning| warning.contains(placeholder())) {
            return Err(recorded);
        }
        let Some(patch) = slot::slotted(&self.operations(&injected)) else {
            return Err(recorded);
        };
        let read = Some(Read::OfAnyOwner(recorded));
        Ok(Ok(Evaluated { patch, warnings: injected.warnings, owner_name, read }))
    }

    /// The answer for this owner's name.
    fn fixed(&self, injected: Injected, read: Option<Read>) -> Evaluated {
        let patch = slot::fixed(&self.operations(&injected));
        Evaluated { patch, warnings: injected.warnings, owner_name: String::new(), read }
    }

    /// The pod with its sidecar, and what was read of it.
    fn record(&mut self, mesh: &Istio) -> (Recorded, Result<Injected, String>) {
        let record = Record::new(mesh.revision.release());
        let injected = self.injection.inject_with(self.cluster, Some(&record));
        (record.into_recorded(), injected)
    }

    /// Reads the pod again: the first evaluation merged it.
    fn begin_anew(&mut self) -> Result<(), String> {
        let pod = match &self.original {
            Original::Text { tape, .. } => without_managed_fields(tape).map(Arc::new),
            Original::Tree(pod) => Some(Arc::clone(pod)),
        };
        self.injection.begin_anew(pod.ok_or("the pod cannot be read again")?);
        Ok(())
    }

    /// The operations from the pod as received to the injected pod.
    fn operations<'p>(&self, injected: &'p Injected) -> Vec<Operation<'p>> {
        match (&injected.without_dropped, &self.original) {
            (Some(tree), _) | (None, Original::Tree(tree)) => patch(&**tree, &injected.pod),
            (None, Original::Text { tape, .. }) => patch(tape.root(), &injected.pod),
        }
    }
}
