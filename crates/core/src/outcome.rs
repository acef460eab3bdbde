//! The outcome of a review: the only source of metrics, the log line and the event.
//!
//! Not for decisions: these are results, borrowed from the reviewed body.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    marker::PhantomData,
    sync::Arc,
};

use injectd_k8s::names::{MAX_LABEL_BYTES, MAX_SUBDOMAIN_BYTES};

use crate::{
    object::{Kind, OwnerReference, owner_kind},
    request::{Request, Subject, View},
    view::Text,
};

mod bounded;
mod warnings;

pub use bounded::{bounded, bounded_denial, bounded_name};
pub use warnings::{MAX_WARNINGS, Warning, Warnings};

/// Maximum length of a denial's reason, which may quote the caller's input.
pub const MAX_DENIAL_BYTES: usize = 1 << 10;
/// Maximum length of the uid of an owner that gets events: Kubernetes' uids are UUIDs of 36 bytes.
pub const MAX_OWNER_UID_BYTES: usize = 128;

/// The decision on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The pod got a sidecar.
    Injected,
    /// Only the opaque-ports annotation was added.
    Annotated,
    /// A pod was left unchanged.
    Skipped,
    /// Another object was left unchanged.
    Allowed,
    /// The object was denied.
    Denied,
}

/// A mesh's reason for not injecting a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkipReason {
    /// Its code, in metric labels, audit annotations and the gRPC API.
    pub code: &'static str,
    /// Its text, in events and the log.
    pub text: &'static str,
}

/// Whether the cache had what a pod's answer is made from: for Linkerd the compiled template, for Istio
/// the answer for pods that read the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateLookup {
    /// The cache had it.
    Hit,
    /// It was made.
    Miss,
}

/// A set of a mesh's skip reasons.
#[derive(Debug, Clone, Copy, Default)]
pub struct SkipReasons {
    all: &'static [SkipReason],
    set: u16,
}

/// A configuration, in answers and logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Counted from 1.
    pub generation: u64,
    /// The mesh's release that it is for.
    pub release: String,
}

/// The workload behind a pod: events are about it, and labels name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload<'a> {
    /// Kind in lower case.
    pub kind: Cow<'a, str>,
    /// Name.
    pub name: Cow<'a, str>,
    /// uid of the object, looked up or claimed; may be empty.
    pub object_uid: Cow<'a, str>,
}

/// The subject of an event.
#[derive(Debug, Clone)]
pub enum Regarding<'a> {
    /// The root owner, already resolved.
    Workload(Workload<'a>),
    /// The pod's direct owner, as written; the sender of the event resolves it.
    Owner {
        /// The reference.
        owner: OwnerReference<'a>,
        /// The pod's label `pod-template-hash`.
        pod_template_hash: Option<Text<'static>>,
    },
}

/// An event to send to the owner of a pod.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// The namespace of the owner.
    pub namespace: Text<'a>,
    /// The subject of the event.
    pub regarding: Regarding<'a>,
    /// Why the pod was not injected; empty if it was.
    pub reasons: SkipReasons,
}

/// The involved object of an event, in the event's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InvolvedObject<'a> {
    /// API version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Name.
    pub name: Cow<'a, str>,
    /// uid, looked up or claimed; may be empty.
    pub object_uid: Cow<'a, str>,
}

/// What became of one of several templates for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateDecision {
    /// The name of the template, behind its namespace if it has one.
    pub template: String,
    /// What became of it.
    pub result: TemplateResult,
    /// The result in words.
    pub text: String,
    /// The field of an expression that failed: the pod was denied for it, or the template is left out.
    pub failed_at: Option<String>,
}

/// What became of a template for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateResult {
    /// The pod gets what it adds.
    Injected,
    /// The pod has what it adds already.
    Present,
    /// It is left out, or has nothing to add.
    Skipped,
    /// It denies the pod.
    Denied,
    /// It is not for the pod.
    Unmatched,
}

/// The outcome of one review.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The admission request's uid.
    pub uid: Text<'a>,
    /// Kind of the object.
    pub kind: Kind,
    /// Namespace of the request.
    pub namespace: Text<'a>,
    /// Name of the object, or the prefix of the name that the API server will generate.
    pub name: Text<'a>,
    /// Kind of the root owner as far as it was resolved, `pod` for bare pods, empty for other
    /// kinds; a closed set.
    pub owner_kind: &'static str,
    /// The object with the inject annotation that applied: `workload`, `namespace` or empty.
    pub annotation_at: &'static str,
    /// The decision.
    pub verdict: Verdict,
    /// Why a pod was not injected.
    pub reasons: SkipReasons,
    /// Why the object was denied.
    pub denial: Option<Cow<'static, str>>,
    /// Annotations that were ignored.
    pub warnings: Warnings,
    /// The kinds of the pod's tainted values, a bit for each name that the mesh has for them. Such a value
    /// changes more of what the templates write than its own place.
    pub tainted: u32,
    /// The template's source; `None` if no template was needed.
    pub template: Option<TemplateLookup>,
    /// What became of each template that may have been for the pod, if a mesh has several.
    pub decisions: Option<Arc<Vec<TemplateDecision>>>,
    /// The event to send.
    pub event: Option<Event<'a>>,
    /// The configuration in use.
    pub configuration: Arc<Configuration>,
}

// === impl Verdict ===

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 5] =
        [Self::Injected, Self::Annotated, Self::Skipped, Self::Allowed, Self::Denied];

    /// The value of the metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Annotated => "annotated",
            Self::Skipped => "skipped",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
        }
    }
}

// === impl TemplateResult ===

impl TemplateResult {
    /// The results that are counted.
    pub const COUNTED: [Self; 4] = [Self::Injected, Self::Present, Self::Skipped, Self::Denied];

    /// The value of the metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Present => "present",
            Self::Skipped => "skipped",
            Self::Denied => "denied",
            Self::Unmatched => "unmatched",
        }
    }
}

// === impl SkipReasons ===

impl SkipReasons {
    /// An empty set of a mesh's reasons.
    ///
    /// # Panics
    /// The mesh has more than 16 reasons.
    #[must_use]
    pub const fn empty(all: &'static [SkipReason]) -> Self {
        assert!(all.len() <= u16::BITS as usize, "the set has 16 bits");
        Self { all, set: 0 }
    }

    /// Adds the reason at an index of the mesh's reasons.
    pub fn insert(&mut self, index: usize) {
        debug_assert!(index < self.all.len(), "the mesh has no reason {index}");
        self.set |= 1 << index;
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.set == 0
    }

    /// The codes of the reasons, as in metric labels, audit annotations and the log.
    #[must_use]
    pub fn joined(self) -> String {
        self.iter().map(|(_, reason)| reason.code).collect::<Vec<_>>().join(",")
    }

    /// The reasons and their indexes, in the mesh's order.
    pub fn iter(self) -> impl Iterator<Item = (usize, &'static SkipReason)> {
        let has = move |index: usize| self.set & (1 << index) != 0;
        self.all.iter().enumerate().filter(move |(index, _)| has(*index))
    }
}

impl PartialEq for SkipReasons {
    fn eq(&self, other: &Self) -> bool {
        // Sets of two meshes are never equal, whatever their bits.
        self.set == other.set && std::ptr::eq(self.all, other.all)
    }
}

impl Eq for SkipReasons {}

impl Hash for SkipReasons {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal sets are of one mesh, so its list adds nothing.
        self.set.hash(state);
    }
}

// === impl Regarding ===

impl<'a> Regarding<'a> {
    /// The direct owner of a pod with the label `pod-template-hash` of value `hash`; a hash that is
    /// too long for a label is ignored.
    #[must_use]
    pub fn owner(owner: OwnerReference<'a>, hash: Option<&str>) -> Self {
        // It waits in a queue with the event.
        let hash = hash.filter(|hash| hash.len() <= MAX_LABEL_BYTES);
        Self::Owner { owner, pod_template_hash: hash.map(Text::owned) }
    }
}

// === impl Event ===

impl Event<'_> {
    /// Whether every part is within Kubernetes' limits. Events wait in a queue, and an owner that
    /// exceeds the limits cannot exist.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        let (kind, name, object_uid): (&str, &str, &str) = match &self.regarding {
            Regarding::Workload(Workload { kind, name, object_uid }) => (kind, name, object_uid),
            Regarding::Owner { owner, .. } => (&owner.kind, &owner.name, &owner.owner_uid),
        };
        self.namespace.len() <= MAX_LABEL_BYTES
            && kind.len() <= MAX_LABEL_BYTES
            && name.len() <= MAX_SUBDOMAIN_BYTES
            && object_uid.len() <= MAX_OWNER_UID_BYTES
    }

    /// An owned copy, which outlives the review.
    #[must_use]
    pub fn to_static(&self) -> Event<'static> {
        let text = |text: &Text<'_>| Text::owned(text);
        let cow = |text: &str| Cow::Owned(text.to_owned());
        let regarding = match &self.regarding {
            Regarding::Workload(Workload { kind, name, object_uid }) => {
                let (kind, name, object_uid) = (cow(kind), cow(name), cow(object_uid));
                Regarding::Workload(Workload { kind, name, object_uid })
            }
            Regarding::Owner { owner, pod_template_hash } => Regarding::Owner {
                owner: OwnerReference {
                    kind: text(&owner.kind),
                    name: text(&owner.name),
                    owner_uid: text(&owner.owner_uid),
                    borrowed: PhantomData,
                },
                pod_template_hash: pod_template_hash.clone(),
            },
        };
        Event { namespace: text(&self.namespace), regarding, reasons: self.reasons }
    }
}

// === impl Outcome ===

impl<'a> Outcome<'a> {
    /// The outcome of a request of which nothing is decided yet.
    #[must_use]
    pub fn of<O: View<'a>>(
        request: &Request<'a, O>,
        reasons: SkipReasons,
        configuration: Arc<Configuration>,
    ) -> Self {
        let object = match &request.subject {
            Subject::Object(object) => Some(object),
            Subject::Absent | Subject::Unreadable(_) => None,
        };
        let name = object.map(|object| bounded_name(object.name())).unwrap_or_default();
        let pod = object.filter(|_| request.kind == Kind::Pod);
        Self {
            uid: request.uid.clone(),
            kind: request.kind,
            namespace: bounded_name(&request.namespace),
            name,
            owner_kind: pod.map_or("", |pod| owner_kind(pod.owner_kind())),
            annotation_at: "",
            verdict: Verdict::Allowed,
            reasons,
            denial: None,
            warnings: Warnings::default(),
            tainted: 0,
            template: None,
            decisions: None,
            event: None,
            configuration,
        }
    }

    /// Denies the object; the reason is cut to [`MAX_DENIAL_BYTES`].
    pub fn deny(&mut self, reason: Cow<'static, str>) {
        self.verdict = Verdict::Denied;
        self.denial = Some(bounded_denial(reason));
    }
}

// === impl InvolvedObject ===

impl InvolvedObject<'_> {
    /// An owned copy.
    #[must_use]
    pub fn to_static(&self) -> InvolvedObject<'static> {
        InvolvedObject {
            api_version: self.api_version,
            kind: self.kind,
            name: Cow::Owned(self.name.to_string()),
            object_uid: Cow::Owned(self.object_uid.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_bounded_by_what_kubernetes_allows() {
        let is_bounded = |namespace: usize, kind: usize, name: usize, uid: usize| {
            let text = |length| "a".repeat(length);
            let owner = OwnerReference {
                kind: Text(text(kind).into()),
                name: Text(text(name).into()),
                owner_uid: Text(text(uid).into()),
                borrowed: PhantomData,
            };
            let workload = Workload {
                kind: text(kind).into(),
                name: text(name).into(),
                object_uid: text(uid).into(),
            };
            [Regarding::Owner { owner, pod_template_hash: None }, Regarding::Workload(workload)]
                .map(|regarding| {
                    let namespace = Text(text(namespace).into());
                    Event { namespace, regarding, reasons: SkipReasons::default() }.is_bounded()
                })
        };
        assert_eq!(is_bounded(63, 63, 253, 128), [true; 2]);
        assert_eq!(is_bounded(64, 1, 1, 1), [false; 2]);
        assert_eq!(is_bounded(1, 64, 1, 1), [false; 2]);
        assert_eq!(is_bounded(1, 1, 254, 1), [false; 2]);
        assert_eq!(is_bounded(1, 1, 1, 129), [false; 2]);
    }

    #[test]
    fn a_hash_too_long_for_a_label_is_ignored() {
        let hash_of =
            |length| match Regarding::owner(OwnerReference::default(), Some(&"a".repeat(length))) {
                Regarding::Owner { pod_template_hash, .. } => {
                    pod_template_hash.map(|hash| hash.len())
                }
                Regarding::Workload(_) => None,
            };
        assert_eq!((hash_of(63), hash_of(64)), (Some(63), None));
    }
}
