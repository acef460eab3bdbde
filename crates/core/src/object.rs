//! The facts that every mesh reads of an object: its kind and its owner.

use std::borrow::Cow;

use crate::view::{Text, view};

/// The kinds that injection distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A pod.
    Pod,
    /// A workload with a pod template at `/spec/template`.
    Workload(&'static str),
    /// A workload whose template is at `/spec/jobTemplate/spec/template`.
    CronJob,
    /// A service.
    Service,
    /// A namespace.
    Namespace,
    /// Any other kind.
    Other,
}

view! {
    /// A reference from a pod to its owner, or from an owner to its own.
    #[derive(Clone)]
    pub struct OwnerReference {
        /// Kind of the owner, as written.
        pub kind: Text<'a> = "kind",
        /// Name of the owner.
        pub name: Text<'a> = "name",
        /// `uid` of the owner's object, not the admission request's.
        pub owner_uid: Text<'a> = "uid",
    }
}

// === impl OwnerReference ===

impl<'a> OwnerReference<'a> {
    /// A reference to an object of this kind, name and uid.
    #[must_use]
    pub fn new(kind: &'a str, name: &'a str, owner_uid: &'a str) -> Self {
        let text = |text| Text(Cow::Borrowed(text));
        let (kind, name, owner_uid) = (text(kind), text(name), text(owner_uid));
        Self { kind, name, owner_uid, ..Self::default() }
    }
}

// === impl Kind ===

impl Kind {
    /// Every kind; a closed set.
    pub const ALL: &[Self] = &[
        Self::Pod,
        Self::Workload("deployment"),
        Self::Workload("replicationcontroller"),
        Self::Workload("replicaset"),
        Self::Workload("job"),
        Self::Workload("daemonset"),
        Self::Workload("statefulset"),
        Self::CronJob,
        Self::Service,
        Self::Namespace,
        Self::Other,
    ];

    /// The kind of that name, in upper or lower case (`inject.go`).
    #[must_use]
    pub fn of(name: &str) -> Self {
        let has_name = |kind: &&Self| name.eq_ignore_ascii_case(kind.as_str());
        Self::ALL.iter().find(has_name).copied().unwrap_or(Self::Other)
    }

    /// Where the pod's metadata and spec are in the object, as a JSON pointer.
    #[must_use]
    pub fn path_prefix(self) -> &'static str {
        match self {
            Self::Workload(_) => "/spec/template",
            Self::CronJob => "/spec/jobTemplate/spec/template",
            Self::Pod | Self::Service | Self::Namespace | Self::Other => "",
        }
    }

    /// The kind in lower case; a closed set.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Workload(kind) => kind,
            Self::CronJob => "cronjob",
            Self::Service => "service",
            Self::Namespace => "namespace",
            Self::Other => "other",
        }
    }
}

/// A label of counters, from a closed set: the kind of a pod's owner in lower case, `pod` without an
/// owner, and empty for kinds that own no pods.
#[must_use]
pub fn owner_kind(kind: Option<&str>) -> &'static str {
    match kind.map(Kind::of) {
        None => Kind::Pod.as_str(),
        Some(kind @ (Kind::Workload(_) | Kind::CronJob)) => kind.as_str(),
        Some(Kind::Pod | Kind::Service | Kind::Namespace | Kind::Other) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_an_owner_is_of_a_closed_set() {
        for (kind, expected) in [
            (None, "pod"),
            (Some("ReplicaSet"), "replicaset"),
            (Some("CronJob"), "cronjob"),
            (Some("Pod"), ""),
            (Some("X"), ""),
        ] {
            assert_eq!(owner_kind(kind), expected, "{kind:?}");
        }
    }
}
