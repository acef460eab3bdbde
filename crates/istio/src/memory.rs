//! Answers for pods, kept for the next pod that differs in nothing that was read.
//!
//! `injectd-memory` has how answers are kept and found. Here is what Istio reads: the fixed steps of an
//! injection read the same of every pod ([`key`]), a [`Record`] adds what the templates read, and what of
//! the pod their patch is laid over. A pod with the full key of an earlier one has the same answer, but for
//! the name of its owner, for which answers have slots ([`slot`]).
//!
//! The namespace of a pod is in its first key, with all annotations of Istio's. So a pod changes what
//! is read of pods of its own namespace with the same annotations, and of no others.
//!
//! Pods are evaluated anew if a template uses more than it reads, such as the time, if an earlier
//! injection left its marks, or if the text of the pod needs care.

#![deny(clippy::disallowed_types)]

mod key;
mod record;
pub(crate) mod slot;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use injectd_core::json::Tape;
use injectd_memory::{Known, Slotted, Weighed, has_kubernetes_types};

use crate::{owner::Owner, proto::layers::Resources, release::Release, revision::Revision};
use key::FirstKey;
pub(crate) use record::{Record, Recorded};

/// An answer for every pod with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The pod is injected, with this patch.
    Injected { patch: Slotted, warnings: Box<[String]>, tainted: u32 },
    /// The pod is skipped for the reason at this index of the mesh's reasons.
    Skipped { reason: usize, warnings: Box<[String]> },
}

/// What an answer depends on besides the pod and the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyInputs<'s> {
    /// The namespace of the request.
    pub(crate) namespace: &'s str,
    /// The decoded path of the URL.
    pub(crate) path: &'s str,
    /// Whether nodes are known, whether they support native sidecars, and whether there is a warning
    /// about that. It depends on the node of the pod, too.
    pub(crate) native: [bool; 3],
    /// The annotations of the namespace.
    pub(crate) namespace_annotations: &'s [(String, String)],
}

/// A pod as received, and what its answer depends on besides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedPod<'s> {
    pub(crate) tape: &'s Tape<'s>,
    pub(crate) inputs: KeyInputs<'s>,
}

/// The answers of a revision with the `ProxyConfig`s of a cluster.
#[derive(Debug)]
pub(crate) struct Memory {
    release: Release,
    answers: injectd_memory::Memory<Answer>,
}

impl Memory {
    /// An empty memory.
    pub(crate) fn new(revision: &Revision, resources: &Resources) -> Self {
        let answers = injectd_memory::Memory::new(key::fixed(revision, resources));
        Self { release: revision.release, answers }
    }

    /// How many entries are kept.
    pub(crate) fn count(&self) -> u64 {
        self.answers.count()
    }

    /// The answer for a pod.
    ///
    /// # Errors
    /// No pod with this key has been evaluated yet, or its answer may not be kept.
    pub(crate) fn find<'s>(&self, pod: KeyedPod<'s>) -> Result<Found, Unknown<'s>> {
        let tape = pod.tape;
        if !has_kubernetes_types(tape.root()) {
            return Err(Unknown::Unchecked);
        }
        // First without the name of the owner: one such answer serves all workloads that read the
        // same.
        for has_slots in [true, false] {
            let Ok(FirstKey { key, owner }) = self.first_key(pod, has_slots) else { break };
            let Ok(known) = self.answers.find(key, tape.root()) else { break };
            match known {
                Known::Answer(answer) => {
                    let owner_name = owner.map(|owner| owner.name).unwrap_or_default();
                    return Ok(Found { answer, owner_name });
                }
                Known::NeedsValue => {}
                Known::Nothing => {
                    let any_owner = |owner| Keeping::ForAnyOwner(Box::new(owner));
                    let keeping = owner.map_or(Keeping::ForOwner, any_owner);
                    return Err(Unknown::Checked { tape, keeping });
                }
            }
        }
        Err(Unknown::Checked { tape, keeping: Keeping::Never })
    }

    /// Keeps the answer for a pod that was decided about, which reads what is read of every pod.
    pub(crate) fn keep(&self, pod: KeyedPod<'_>, answer: Arc<Answer>) {
        if let Ok(FirstKey { key, .. }) = self.first_key(pod, true) {
            self.answers.keep_first(key, answer);
        }
    }

    /// Keeps the answer for a pod that was evaluated, with what that read.
    pub(crate) fn keep_evaluated(&self, pod: KeyedPod<'_>, read: &Read, answer: Answer) {
        let (recorded, has_slots) = match read {
            Read::OfAnyOwner(recorded) => (recorded, true),
            Read::OfOwner { recorded, with_placeholder } => {
                if let Some(refused) = with_placeholder {
                    // The next such pod is evaluated once.
                    self.keep_read(pod, true, refused, None);
                }
                (recorded, false)
            }
        };
        // What depends on the time or on chance is another answer each time.
        if !recorded.is_unknown {
            self.keep_read(pod, has_slots, recorded, Some(Arc::new(answer)));
        }
    }

    /// Keeps an answer for a pod under its full key; `None` if it depends on the owner's name.
    fn keep_read(
        &self,
        pod: KeyedPod<'_>,
        has_slots: bool,
        recorded: &Recorded,
        answer: Option<Arc<Answer>>,
    ) {
        if let Ok(FirstKey { key, .. }) = self.first_key(pod, has_slots) {
            self.answers.keep(key, pod.tape.root(), &recorded.reading, answer);
        }
    }
}

/// What the evaluation of a pod read.
#[derive(Debug)]
pub(crate) enum Read {
    /// The answer is that for every owner's name.
    OfAnyOwner(Recorded),
    /// The answer depends on the owner's name, or may.
    OfOwner {
        recorded: Recorded,
        /// What an evaluation with a placeholder for the name read before.
        with_placeholder: Option<Recorded>,
    },
}

/// An answer for a pod.
#[derive(Debug)]
pub struct Found {
    pub(crate) answer: Arc<Answer>,
    /// What the slots of the answer get.
    pub(crate) owner_name: String,
}

/// A pod without an answer.
#[derive(Debug)]
pub(crate) enum Unknown<'s> {
    /// The types of its values are not known to be those of Kubernetes.
    Unchecked,
    /// Its values have Kubernetes' types.
    Checked { tape: &'s Tape<'s>, keeping: Keeping },
}

/// Whether the answer for a pod is kept.
#[derive(Debug, Default)]
pub(crate) enum Keeping {
    /// It is not.
    #[default]
    Never,
    /// Under a key with the owner's name.
    ForOwner,
    /// Under a key without the owner's name, if the answer has slots for it.
    ForAnyOwner(Box<Owner>),
}

impl Weighed for Answer {
    fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        match self {
            Self::Injected { patch, warnings, .. } => patch.bytes() + texts(warnings),
            Self::Skipped { warnings, .. } => texts(warnings),
        }
    }
}
