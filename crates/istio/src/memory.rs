//! Answers for pods, kept for the next pod that differs in nothing that was read.
//!
//! Evaluating templates and merging them is a function of what they read of the pod. The fixed steps
//! of an injection read the same of every pod ([`fixed`]); a [`Record`] adds what the templates read,
//! and what of the pod their patch is laid over. What a pod has there is its key: it is compared
//! whole, and never by a hash alone. A pod with the key of an earlier one has the same answer, but
//! for the name of its owner, for which answers have slots ([`slot`]).
//!
//! Pods are evaluated anew if a template uses more than it reads, such as the time, if an earlier
//! injection left its marks, or if the text of the pod needs care.
//!
//! The memory is bounded by its weight: pods that differ at random cost time and not memory.

mod reading;
mod record;
mod slot;
mod types;

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use injectd_core::json::{Node, Shape, Tape};
use moka::sync::Cache;

use crate::{
    decide::INJECT_ANNOTATION,
    fields::CONTAINER_LISTS,
    injector::Injector,
    owner::{self, Owner},
    path::NETWORK_LABEL,
    process::names,
    proto::layers::Resources,
    release::Release,
    selector::Selector,
    strip::{OVERRIDES_ANNOTATION, STATUS_ANNOTATION},
};
use reading::{MAX_KEY_BYTES, Reading, Unusual, write_text};
pub(crate) use record::{Record, Recorded};
pub(crate) use slot::{SlottedPatch, placeholder};

/// Bytes of all keys and answers.
const MAX_BYTES: u64 = 32 << 20;
/// Values and names that all templates together may read. What reads more is not kept.
const MAX_READ: usize = 2_000;
/// Bytes that an entry takes besides its key and answer.
const ENTRY_BYTES: usize = 256;

/// What the keys of annotations have in them that the injector may read: those of Istio, and those
/// of Prometheus in every spelling.
const READ_ANNOTATIONS: &[&str] = &["istio.io", "prometheus"];

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
    release: Release,
    read: ArcSwap<Version>,
    growth: Mutex<()>,
    /// `None` under a key without the owner's name: the answer depends on that name. It is under a key
    /// with the name, if it may be kept at all.
    answers: Cache<Box<[u8]>, Option<Arc<Answer>>>,
}

/// What is read of pods so far. Keys of different versions differ.
#[derive(Debug, Clone)]
struct Version {
    number: u64,
    reading: Reading,
}

impl Memory {
    /// An empty memory.
    pub(crate) fn new(injector: &Injector, resources: &Resources) -> Self {
        Self {
            release: injector.release,
            read: ArcSwap::from_pointee(Version { number: 0, reading: fixed(injector, resources) }),
            growth: Mutex::new(()),
            answers: Cache::builder().max_capacity(MAX_BYTES).weigher(weigh).build(),
        }
    }

    /// How many answers are kept.
    pub(crate) fn count(&self) -> u64 {
        self.answers.run_pending_tasks();
        self.answers.entry_count()
    }

    /// The answer for a pod.
    ///
    /// # Errors
    /// No pod with this key has been evaluated yet, or its answer may not be kept.
    pub(crate) fn find(&self, pod: &Tape<'_>, around: Around<'_>) -> Result<Found, Unknown> {
        if !types::fit(pod.root()) {
            return Err(Unknown::default());
        }
        let read = self.read.load();
        for has_slots in [true, false] {
            let Ok((key, owner)) = self.key(&read, (pod.root(), around), has_slots) else { break };
            match self.answers.get(&*key) {
                None => {
                    let owner = owner.map(Box::new);
                    let key = Some(Key { bytes: key, version: read.number });
                    return Err(Unknown { key, owner, has_types: true });
                }
                Some(None) => {}
                Some(Some(answer)) => {
                    let owner_name = owner.map(|owner| owner.name).unwrap_or_default();
                    return Ok(Found { answer, owner_name });
                }
            }
        }
        Err(Unknown { has_types: true, ..Unknown::default() })
    }

    /// Keeps the answer for a pod that was decided about.
    pub(crate) fn keep(&self, key: Key, answer: Arc<Answer>) {
        self.answers.insert(key.bytes.into(), Some(answer));
    }

    /// Keeps the answer for a pod that was evaluated, with its key and the record of that.
    /// `has_slots` says whether it was evaluated with a placeholder for the name of its owner.
    pub(crate) fn keep_evaluated(
        &self,
        pod: &Tape<'_>,
        around: Around<'_>,
        (key, recorded): (Key, &Recorded),
        (answer, has_slots): (Answer, bool),
    ) {
        let pod = (pod.root(), around);
        if recorded.is_unknown {
            return self.refuse_slots(&self.read.load(), pod);
        }
        let Some(read) = self.reading_more(&recorded.reading) else { return };
        if has_slots && read.number == key.version {
            return self.keep(key, Arc::new(answer));
        }
        if !has_slots {
            self.refuse_slots(&read, pod);
        }
        if let Ok((key, _)) = self.key(&read, pod, has_slots) {
            self.answers.insert(key.into(), Some(Arc::new(answer)));
        }
    }

    /// Keeps that the answer for a pod has no slots, so that the next such pod is evaluated once.
    fn refuse_slots(&self, read: &Version, pod: (Node<'_, '_>, Around<'_>)) {
        if let Ok((key, Some(_))) = self.key(read, pod, true) {
            self.answers.insert(key.into(), None);
        }
    }

    /// What is read from now on; `None` if that were too much.
    fn reading_more(&self, reading: &Reading) -> Option<Arc<Version>> {
        let covering = || Some(self.read.load_full()).filter(|read| read.reading.covers(reading));
        if let Some(read) = covering() {
            return Some(read);
        }
        let _growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = covering() {
            return Some(read);
        }
        let mut read = Version::clone(&self.read.load());
        read.reading.add(reading);
        if read.reading.size() > MAX_READ {
            return None;
        }
        read.number += 1;
        let read = Arc::new(read);
        self.read.store(Arc::clone(&read));
        Some(read)
    }

    /// The key of a pod, and its owner if the name of that is not in the key: there may be slots for
    /// it.
    fn key(
        &self,
        read: &Version,
        (pod, around): (Node<'_, '_>, Around<'_>),
        has_slots: bool,
    ) -> Result<(Vec<u8>, Option<Owner>), Unusual> {
        let metadata = pod.get("metadata");
        let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
        let has = |key| annotations.is_some_and(|annotations| annotations.get(key).is_some());
        if has(STATUS_ANNOTATION) || has(OVERRIDES_ANNOTATION) || has_odd_volumes(pod) {
            return Err(Unusual);
        }
        let mut key = Vec::with_capacity(MAX_KEY_BYTES / 16);
        key.extend_from_slice(&read.number.to_le_bytes());
        key.extend(around.native.map(u8::from));
        let own = metadata.and_then(|metadata| metadata.get("namespace"));
        let own = plain(own)?;
        let namespace = if own.is_empty() { around.namespace } else { own };
        let owner = owner(metadata, namespace, self.release)?;
        let has_slots = has_slots && slot::is_exchangeable(&owner.name);
        key.push(has_slots.into());
        let owner_name = if has_slots { "" } else { &owner.name };
        let texts = [around.path, namespace, &owner.kind, &owner.api_version, owner_name];
        let annotations = around.namespace_annotations.iter();
        let annotations = annotations.flat_map(|(key, value)| [key, value]).map(String::as_str);
        for text in texts.into_iter().chain(annotations) {
            write_text(&mut key, text);
        }
        read.reading.answer(pod, &mut key)?;
        if key.len() > MAX_KEY_BYTES { Err(Unusual) } else { Ok((key, has_slots.then_some(owner))) }
    }
}

#[expect(clippy::borrowed_box, clippy::ref_option, reason = "the cache weighs what it holds")]
fn weigh(key: &Box<[u8]>, answer: &Option<Arc<Answer>>) -> u32 {
    let bytes = answer.as_ref().map_or(0, |answer| answer.bytes());
    u32::try_from(key.len() + bytes + ENTRY_BYTES).unwrap_or(u32::MAX)
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
    /// `None` if no answer may be kept.
    pub(crate) key: Option<Key>,
    /// The pod's owner, if the name of that is not in the key.
    pub(crate) owner: Option<Box<Owner>>,
    /// Whether the values are known to have Kubernetes' types.
    pub(crate) has_types: bool,
}

impl Unknown {
    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.key.as_ref().map_or(0, |key| key.bytes.capacity())
    }
}

/// The key of a pod without an answer.
#[derive(Debug)]
pub(crate) struct Key {
    bytes: Vec<u8>,
    /// The number of the version that it was made for.
    version: u64,
}

impl Answer {
    fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        match self {
            Self::Injected { patch, warnings } => patch.bytes() + texts(warnings),
            Self::Skipped { warnings, .. } => texts(warnings),
        }
    }
}

/// What the steps of an injection read of every pod, besides its templates, its namespace and its
/// owner.
fn fixed(injector: &Injector, resources: &Resources) -> Reading {
    let config = &injector.config;
    let mut read = Reading::default();
    let metadata = read.member("metadata");
    let annotations = metadata.member("annotations");
    annotations.alike = READ_ANNOTATIONS;
    annotations.read_members(config.injected_annotations.keys().map(String::as_str));
    let labels = metadata.member("labels");
    labels.read_members([INJECT_ANNOTATION, NETWORK_LABEL]);
    labels.read_members(resources.selecting_labels());
    let selectors = config.never_inject.iter().chain(&config.always_inject);
    labels.read_members(selectors.flat_map(Selector::keys));
    let spec = read.member("spec");
    spec.read_members(["dnsPolicy", "hostNetwork", "nodeName"]);
    for list in CONTAINER_LISTS {
        let own = spec.member(list);
        let names = [names::PROXY, names::INIT, names::VALIDATION, names::CORE_DUMP];
        own.names = Some(names.into_iter().map(Into::into).collect());
        let container = own.item();
        container.read_members(["name", "ports", "lifecycle"]);
        container.read_members(["livenessProbe", "readinessProbe", "startupProbe"]);
        if injector.is_openshift() {
            container.member("securityContext").read_whole();
        }
    }
    if injector.is_openshift() {
        spec.member("securityContext").read_whole();
    }
    read
}

/// Whether a volume has more than a name and a source, which is worth a warning.
fn has_odd_volumes(pod: Node<'_, '_>) -> bool {
    let volumes = pod.get("spec").and_then(|spec| spec.get("volumes"));
    let mut volumes = volumes.into_iter().flat_map(Node::items);
    volumes.any(|volume| volume.members().count() > 2)
}

/// The owner as templates read it.
fn owner(
    metadata: Option<Node<'_, '_>>,
    namespace: &str,
    release: Release,
) -> Result<Owner, Unusual> {
    let member = |key| plain(metadata.and_then(|metadata| metadata.get(key)));
    let owners = metadata.and_then(|metadata| metadata.get("ownerReferences"));
    let is_controller =
        |owner: &Node<'_, '_>| owner.get("controller").is_some_and(|node| node.raw() == "true");
    let mut controller = None;
    if let Some(owner) = owners.into_iter().flat_map(Node::items).find(is_controller) {
        let text = |key| plain(owner.get(key));
        controller = Some([text("apiVersion")?, text("kind")?, text("name")?]);
    }
    let labels = metadata.and_then(|metadata| metadata.get("labels"));
    for key in owner::LABELS {
        plain(labels.and_then(|labels| labels.get(key)))?;
    }
    let label = |key: &str| plain(Some(labels?.get(key)?)).ok();
    let facts = owner::Facts {
        has_prefix: !member("generateName")?.is_empty(),
        controller,
        name: member("name")?,
        label,
    };
    Ok(Owner::guess(&facts, namespace, release))
}

/// A text without escapes; empty if there is none.
fn plain<'a>(node: Option<Node<'_, 'a>>) -> Result<&'a str, Unusual> {
    match node.map(|node| (node.shape(), node.text())) {
        None | Some((Shape::Null, _)) => Ok(""),
        Some((Shape::Text, Some(Cow::Borrowed(text)))) => Ok(text),
        _ => Err(Unusual),
    }
}
