//! What became of a review: the one place that metrics, the log line and the event are made from.
//!
//! Not for deciding: these are results, borrowed from the body that was reviewed.

use std::{borrow::Cow, fmt, marker::PhantomData};

use crate::pod::{Kind, OwnerReference, Text};

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The pod got its sidecar.
    Injected,
    /// Only the opaque-ports annotation was added.
    Annotated,
    /// A pod or workload was left alone.
    Skipped,
    /// Any other object was left alone.
    Allowed,
    /// The object was refused.
    Denied,
}

/// Why a pod was not injected (`pkg/inject/report.go`), in upstream's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SkipReason {
    /// The pod uses the network of its node.
    HostNetwork,
    /// A sidecar is there already.
    SidecarExists,
    /// The kind has no pods.
    UnsupportedResource,
    /// The namespace's inject annotation holds an unknown value.
    InvalidNamespaceAnnotation,
    /// The pod's inject annotation holds an unknown value.
    InvalidPodAnnotation,
    /// The pod opted out.
    DisabledByPod,
    /// Nobody opted in.
    NotEnabled,
    /// The sidecar needs the service account's token, and there is none.
    NoServiceAccountToken,
}

/// A set of skip reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SkipReasons(u8);

/// An annotation that was ignored, or understood in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The annotation's key.
    pub annotation: &'static str,
    /// What was wrong with its value and what became of it.
    pub problem: String,
}

/// An object that an event is about, or that a label names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload<'a> {
    /// Kind in lower case.
    pub kind: Cow<'a, str>,
    /// Name.
    pub name: Cow<'a, str>,
    /// uid of the object as far as it is known, or claimed; may be empty.
    pub object_uid: Cow<'a, str>,
}

/// What an event is about.
#[derive(Debug, Clone)]
pub enum Regarding<'a> {
    /// The root owner, already resolved.
    Workload(Workload<'a>),
    /// The pod's direct owner, as written: whoever sends the event resolves it.
    Owner {
        /// The reference.
        owner: OwnerReference<'a>,
        /// The pod's label of that name.
        pod_template_hash: Option<Text<'static>>,
    },
}

/// An event to send to the owner of a pod.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// The namespace of the owner.
    pub namespace: Text<'a>,
    /// What it is about.
    pub regarding: Regarding<'a>,
    /// Why the pod was not injected; empty if it was.
    pub reasons: SkipReasons,
}

/// The object that an event is sent to, in the event's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InvolvedObject<'a> {
    /// API version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Name.
    pub name: Cow<'a, str>,
    /// uid as far as it is known, or claimed; may be empty.
    pub object_uid: Cow<'a, str>,
}

/// What became of one review.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The admission request's uid.
    pub uid: Text<'a>,
    /// Kind of the object.
    pub kind: Kind,
    /// Namespace of the request.
    pub namespace: Text<'a>,
    /// Name of the object, or the prefix it will be made from.
    pub name: Text<'a>,
    /// Kind of the root owner as far as it was looked for, `pod` for bare pods; a closed set, empty
    /// for what is outside of it.
    pub owner_kind: &'static str,
    /// Whose annotation asked for injection or against it: `workload`, `namespace` or empty.
    pub annotation_at: &'static str,
    /// What was decided.
    pub verdict: Verdict,
    /// Why a pod was not injected.
    pub reasons: SkipReasons,
    /// Why the object was refused.
    pub denial: Option<Cow<'static, str>>,
    /// Annotations that were ignored.
    pub warnings: Vec<Warning>,
    /// The event to send.
    pub event: Option<Event<'a>>,
    /// The configuration that was in force, counted from 1.
    pub generation: u64,
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

// === impl SkipReason ===

impl SkipReason {
    /// Every reason, in upstream's order.
    pub const ALL: [Self; 8] = [
        Self::HostNetwork,
        Self::SidecarExists,
        Self::UnsupportedResource,
        Self::InvalidNamespaceAnnotation,
        Self::InvalidPodAnnotation,
        Self::DisabledByPod,
        Self::NotEnabled,
        Self::NoServiceAccountToken,
    ];

    /// The value of the metric label, as upstream spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostNetwork => "host_network_enabled",
            Self::SidecarExists => "sidecar_already_exists",
            Self::UnsupportedResource => "unsupported_resource",
            Self::InvalidNamespaceAnnotation => "invalid_inject_annotation_at_ns",
            Self::InvalidPodAnnotation => "invalid_inject_annotation_at_workload",
            Self::DisabledByPod => "injection_disable_annotation_present",
            Self::NotEnabled => "injection_enable_annotation_absent",
            Self::NoServiceAccountToken => "disabled_automount_service_account_token_account",
        }
    }
}

// === impl SkipReasons ===

impl SkipReasons {
    /// Adds a reason.
    pub fn insert(&mut self, reason: SkipReason) {
        self.0 |= 1 << reason as u8;
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The reasons as metric labels, audit annotations and the log have them.
    #[must_use]
    pub fn joined(self) -> String {
        self.iter().map(SkipReason::as_str).collect::<Vec<_>>().join(",")
    }

    /// The reasons in upstream's order.
    pub fn iter(self) -> impl Iterator<Item = SkipReason> {
        SkipReason::ALL.into_iter().filter(move |&reason| self.0 & (1 << reason as u8) != 0)
    }
}

// === impl Event ===

impl Event<'_> {
    /// An event that outlives the review.
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

// === impl InvolvedObject ===

impl InvolvedObject<'_> {
    /// The same, of its own.
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

// === impl Warning ===

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.annotation, self.problem)
    }
}
