//! Answers for pods, kept for the next pod that differs in nothing that was read.
//!
//! Evaluating templates and merging them is a function of what they read of the pod. The fixed steps
//! of an injection read the same of every pod: what a pod has there is its first key. A [`Record`]
//! adds what the templates read, and what of the pod their patch is laid over. The store keeps that
//! for each first key, as HTTP's `Vary` does for each URL: what a pod has there, too, is its full
//! key. Keys are compared whole, and never by a hash alone. A pod with the full key of an earlier one
//! has the same answer, but for the name of its owner, for which answers have slots ([`slot`]).
//!
//! The namespace of a pod is in its first key, with all annotations of Istio's. So a pod changes what
//! is read of pods of its own namespace with the same annotations, and of no others.
//!
//! Pods are evaluated anew if a template uses more than it reads, such as the time, if an earlier
//! injection left its marks, or if the text of the pod needs care.
//!
//! The memory is bounded by its weight ([`store`]): pods that differ at random cost time and not
//! memory.

#![deny(clippy::disallowed_types)]

mod key;
mod reading;
mod record;
mod slot;
mod store;
mod types;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use injectd_core::json::Tape;

use crate::{owner::Owner, proto::layers::Resources, revision::Revision};
use key::Keys;
pub(crate) use record::{Record, Recorded};
pub(crate) use slot::SlottedPatch;
use store::{Entry, Store};

/// An answer for every pod with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The pod is injected, with this patch.
    Injected { patch: SlottedPatch, warnings: Box<[String]>, tainted: u32 },
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
    keys: Keys,
    store: Store,
}

impl Memory {
    /// An empty memory.
    pub(crate) fn new(revision: &Revision, resources: &Resources) -> Self {
        Self { keys: Keys::new(revision, resources), store: Store::new() }
    }

    /// How many entries are kept.
    pub(crate) fn count(&self) -> u64 {
        self.store.count()
    }

    /// The answer for a pod.
    ///
    /// # Errors
    /// No pod with this key has been evaluated yet, or its answer may not be kept.
    pub(crate) fn find<'s>(&self, pod: KeyedPod<'s>) -> Result<Found, Unknown<'s>> {
        let tape = pod.tape;
        if !types::fit(tape.root()) {
            return Err(Unknown::Unchecked);
        }
        for has_slots in [true, false] {
            let Ok(mut key) = self.keys.first(pod, has_slots) else { break };
            let segment = self.store.segment(&key);
            let mut entry = segment.get(&key);
            if let Some(Entry::Varies(reading)) = entry {
                entry = None;
                if let Some(varied) = segment.varied(reading) {
                    let Ok(full) = key.full(&varied, tape.root()) else { break };
                    entry = segment.get(&full);
                    key = full;
                }
            }
            match entry {
                Some(Entry::Answer(answer)) => {
                    let owner_name = key.owner.map(|owner| owner.name).unwrap_or_default();
                    return Ok(Found { answer, owner_name });
                }
                Some(Entry::NeedsName) => {}
                _ => {
                    let any_owner = |owner| Keeping::ForAnyOwner(Box::new(owner));
                    let keeping = key.owner.map_or(Keeping::ForOwner, any_owner);
                    return Err(Unknown::Checked { tape, keeping });
                }
            }
        }
        Err(Unknown::Checked { tape, keeping: Keeping::Never })
    }

    /// Keeps the answer for a pod that was decided about, which reads what is read of every pod.
    pub(crate) fn keep(&self, pod: KeyedPod<'_>, answer: Arc<Answer>) {
        if let Ok(key) = self.keys.first(pod, true) {
            self.store.segment(&key).insert(key, Entry::Answer(answer));
        }
    }

    /// Keeps the answer for a pod that was evaluated, with what that read.
    pub(crate) fn keep_evaluated(&self, pod: KeyedPod<'_>, read: &Read, answer: Answer) {
        let (recorded, has_slots) = match read {
            Read::OfAnyOwner(recorded) => (recorded, true),
            Read::OfOwner { recorded, with_placeholder } => {
                if let Some(refused) = with_placeholder {
                    // The next such pod is evaluated once.
                    self.keep_read(pod, true, refused, Entry::NeedsName);
                }
                (recorded, false)
            }
        };
        if !recorded.is_unknown {
            self.keep_read(pod, has_slots, recorded, Entry::Answer(Arc::new(answer)));
        }
    }

    /// Keeps an entry for a pod under its full key.
    fn keep_read(&self, pod: KeyedPod<'_>, has_slots: bool, recorded: &Recorded, entry: Entry) {
        let Ok(first) = self.keys.first(pod, has_slots) else { return };
        let segment = self.store.segment(&first);
        let Some(varied) = segment.read_more(&first, &self.keys.fixed, &recorded.reading) else {
            return;
        };
        if let Ok(full) = first.full(&varied, pod.tape.root()) {
            segment.insert(full, entry);
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

impl Answer {
    /// Bytes in memory.
    fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        match self {
            Self::Injected { patch, warnings, .. } => patch.bytes() + texts(warnings),
            Self::Skipped { warnings, .. } => texts(warnings),
        }
    }
}
