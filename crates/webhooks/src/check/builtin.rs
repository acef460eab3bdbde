//! The resources of Kubernetes itself: `builtin/resources.txt`, from the discovery documents of
//! Kubernetes 1.34 to 1.37 (`api/discovery` of k8s.io/kubernetes). `just tables` writes it.
//!
//! Not for custom resources: the resources of a group that is not listed here are not known.

use std::sync::LazyLock;

pub(crate) mod fields;

/// The releases that the table is about.
pub(crate) const RELEASES: &str = "Kubernetes 1.34 to 1.37";

/// Each line is a resource or subresource: group (`core` for that of pods), name, kind (with its group
/// if that is another one), scope, operations (`-` if it can only be read), versions and short names
/// (`-` for none).
const RESOURCES: &str = include_str!("builtin/resources.txt");

/// A resource or subresource.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Builtin {
    pub(crate) group: &'static str,
    /// The plural; a subresource has its own name behind a slash.
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    /// The group of the kind: subresources such as `scale` have objects of others.
    pub(crate) kind_group: &'static str,
    pub(crate) is_namespaced: bool,
    /// Operations for which the API server asks webhooks.
    pub(crate) operations: Vec<&'static str>,
    pub(crate) versions: Vec<&'static str>,
    short_names: Vec<&'static str>,
}

static TABLE: LazyLock<Vec<Builtin>> =
    LazyLock::new(|| RESOURCES.lines().filter_map(Builtin::read).collect());

/// All of them, the core group first.
pub(crate) fn all() -> &'static [Builtin] {
    &TABLE
}

/// Whether a group is one of Kubernetes itself.
pub(crate) fn is_group(name: &str) -> bool {
    all().iter().any(|known| known.group == name)
}

/// A group as rules name it.
fn group_named(name: &str) -> &str {
    if name == "core" { "" } else { name }
}

impl Builtin {
    fn read(line: &'static str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut word = || words.next();
        let list = |word: &'static str| {
            let items = word.split(',').filter(|item| *item != "-");
            items.collect::<Vec<_>>()
        };
        let group = group_named(word()?);
        let name = word()?;
        let kind = word()?;
        let (kind_group, kind) =
            kind.split_once('/').map_or((group, kind), |(group, kind)| (group_named(group), kind));
        Some(Self {
            group,
            name,
            kind,
            kind_group,
            is_namespaced: word()? == "Namespaced",
            operations: list(word()?),
            versions: list(word()?),
            short_names: list(word()?),
        })
    }

    /// The name without that of the subresource.
    pub(crate) fn parent(&self) -> &'static str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The name of the subresource; empty without one.
    pub(crate) fn subresource(&self) -> &'static str {
        self.name.split_once('/').map_or("", |(_, sub)| sub)
    }

    /// Whether people also call it by this name, which is not that of the resource: the singular or a
    /// short name.
    pub(crate) fn is_also_called(&self, name: &str) -> bool {
        self.subresource().is_empty()
            && (self.kind.eq_ignore_ascii_case(name) || self.short_names.contains(&name))
    }

    /// Whether it is never stored: what the API server answers about users and permissions
    /// (`pkg/kubeapiserver/admission/exclusion`). API servers of 1.37 ask no webhook about it
    /// (`ExcludeAdmissionWebhookVirtualResources`).
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.group, "authentication.k8s.io" | "authorization.k8s.io")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        assert_eq!(all().len(), RESOURCES.lines().count());
        let pods = all().iter().find(|known| known.name == "pods").expect("pods");
        assert_eq!((pods.group, pods.kind, pods.is_namespaced), ("", "Pod", true));
        let scale = all().iter().find(|known| known.name == "deployments/scale").expect("a scale");
        assert_eq!((scale.group, scale.kind_group, scale.kind), ("apps", "autoscaling", "Scale"));
        assert_eq!(pods.operations, ["CREATE", "UPDATE", "DELETE"]);
        assert_eq!(pods.versions, ["v1"]);
        assert!(["pod", "po"].into_iter().all(|name| pods.is_also_called(name)));
        let known = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
        for it in all() {
            assert!(it.operations.iter().all(|operation| known.contains(operation)), "{it:?}");
            assert!(!it.versions.is_empty() && it.kind.starts_with(char::is_uppercase), "{it:?}");
        }
    }
}
