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

mod key;
mod reading;
mod record;
mod slot;
mod store;
mod types;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use injectd_core::json::{Node, Tape};

use crate::{injector::Injector, owner::Owner, proto::layers::Resources};
use key::Keys;
pub(crate) use record::{Record, Recorded};
pub(crate) use slot::{SlottedPatch, placeholder};
use store::{Entry, Store};

/// An answer for every pod with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The pod is injected, with this patch.
    Injected { patch: SlottedPatch, warnings: Box<[String]> },
    /// The pod is skipped for the reason at this index of the mesh's reasons.
    Skipped { reason: usize, warnings: Box<[String]> },
}

/// What an answer depends on besides the pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'s> {
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

/// The answers of an injector with the `ProxyConfig`s of a cluster.
#[derive(Debug)]
pub(crate) struct Memory {
    keys: Keys,
    store: Store,
}

impl Memory {
    /// An empty memory.
    pub(crate) fn new(injector: &Injector, resources: &Resources) -> Self {
        Self { keys: Keys::new(injector, resources), store: Store::new() }
    }

    /// How many entries are kept.
    pub(crate) fn count(&self) -> u64 {
        self.store.count()
    }

    /// The answer for a pod.
    ///
    /// # Errors
    /// No pod with this key has been evaluated yet, or its answer may not be kept.
    pub(crate) fn find(&self, pod: &Tape<'_>, around: Around<'_>) -> Result<Found, Unknown> {
        if !types::fit(pod.root()) {
            return Err(Unknown::default());
        }
        for has_slots in [true, false] {
            let Ok(mut key) = self.keys.first((pod.root(), around), has_slots) else { break };
            let segment = self.store.segment(&key);
            let mut entry = segment.get(&key);
            if let Some(Entry::Varies(reading)) = entry {
                entry = None;
                if let Some(varied) = segment.varied(reading) {
                    let Ok(full) = key.full(&varied, pod.root()) else { break };
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
                    let owner = key.owner.map(Box::new);
                    return Err(Unknown { is_kept: true, owner, has_types: true });
                }
            }
        }
        Err(Unknown { has_types: true, ..Unknown::default() })
    }

    /// Keeps the answer for a pod that was decided about, which reads what is read of every pod.
    pub(crate) fn keep(&self, pod: &Tape<'_>, around: Around<'_>, answer: Arc<Answer>) {
        if let Ok(key) = self.keys.first((pod.root(), around), true) {
            self.store.segment(&key).insert(key, Entry::Answer(answer));
        }
    }

    /// Keeps the answer for a pod that was evaluated, with what that read. `has_slots` says whether
    /// it was evaluated with a placeholder for the name of its owner.
    pub(crate) fn keep_evaluated(
        &self,
        (pod, around): (&Tape<'_>, Around<'_>),
        read: &Read,
        (answer, has_slots): (Answer, bool),
    ) {
        let pod = (pod.root(), around);
        if let Some(refused) = &read.with_placeholder {
            // The next such pod is evaluated once.
            self.keep_read(pod, true, refused, Entry::NeedsName);
        }
        if !read.recorded.is_unknown {
            self.keep_read(pod, has_slots, &read.recorded, Entry::Answer(Arc::new(answer)));
        }
    }

    /// Keeps an entry for a pod under its full key.
    fn keep_read(
        &self,
        pod: (Node<'_, '_>, Around<'_>),
        has_slots: bool,
        recorded: &Recorded,
        entry: Entry,
    ) {
        let Ok(first) = self.keys.first(pod, has_slots) else { return };
        let segment = self.store.segment(&first);
        let Some(varied) = segment.read_more(&first, &self.keys.fixed, &recorded.reading) else {
            return;
        };
        if let Ok(full) = first.full(&varied, pod.0) {
            segment.insert(full, entry);
        }
    }
}

/// What the evaluation of a pod read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) recorded: Recorded,
    /// What an evaluation with a placeholder for the owner's name read before, if the answer turned
    /// out to depend on that name.
    pub(crate) with_placeholder: Option<Recorded>,
}

/// An answer for a pod.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) answer: Arc<Answer>,
    /// What the slots of the answer get.
    pub(crate) owner_name: String,
}

/// A pod without an answer.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    /// Whether its answer may be kept.
    pub(crate) is_kept: bool,
    /// The pod's owner, if the name of that is not in the key.
    pub(crate) owner: Option<Box<Owner>>,
    /// Whether the values are known to have Kubernetes' types.
    pub(crate) has_types: bool,
}

impl Answer {
    /// Bytes in memory.
    fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        match self {
            Self::Injected { patch, warnings } => patch.bytes() + texts(warnings),
            Self::Skipped { warnings, .. } => texts(warnings),
        }
    }
}
