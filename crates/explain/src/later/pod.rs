//! A pod as checks see it. A null is as good as absent.

use serde_json::Value;

use super::{containers, items, present, text};

/// The tree of a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pod<'p>(pub(super) &'p Value);

/// The tree of a container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container<'p>(pub(super) &'p Value);

impl<'p> Pod<'p> {
    /// A field of the spec: its path, such as `securityContext/sysctls`.
    pub(super) fn spec(self, path: &str) -> Option<&'p Value> {
        present(self.0, &format!("/spec/{path}"))
    }

    pub(super) fn is_true(self, path: &str) -> bool {
        self.spec(path) == Some(&Value::Bool(true))
    }

    pub(super) fn os(self) -> Option<&'p str> {
        text(self.0, "/spec/os/name")
    }

    /// Whether the pod has users of its own: `hostUsers: false`.
    pub(super) fn has_user_namespace(self) -> bool {
        self.spec("hostUsers") == Some(&Value::Bool(false))
    }

    /// Every container, init containers first.
    pub(super) fn containers(self) -> impl Iterator<Item = Container<'p>> {
        containers(self.0).map(Container)
    }

    /// The security contexts, each with whose it is: that of the pod, and those of the containers.
    pub(super) fn contexts(self) -> impl Iterator<Item = (String, &'p Value)> {
        let of_pod = self.spec("securityContext").map(|context| ("the pod".to_owned(), context));
        let of_containers = self.containers().filter_map(|container| {
            let context = present(container.0, "/securityContext")?;
            Some((format!("container {}", container.name()), context))
        });
        of_pod.into_iter().chain(of_containers)
    }

    pub(super) fn annotations(self) -> impl Iterator<Item = (&'p str, &'p str)> {
        let all = present(self.0, "/metadata/annotations").and_then(Value::as_object);
        all.into_iter().flatten().filter_map(|(key, value)| Some((&**key, value.as_str()?)))
    }
}

impl<'p> Container<'p> {
    pub(super) fn name(self) -> &'p str {
        text(self.0, "/name").unwrap_or_default()
    }

    /// A field of the security context: its path, such as `capabilities/add`.
    pub(super) fn context(self, path: &str) -> Option<&'p Value> {
        present(self.0, &format!("/securityContext/{path}"))
    }

    /// The texts of a list in the security context.
    pub(super) fn strings(self, path: &str) -> impl Iterator<Item = &'p str> {
        items(self.context(path)).iter().filter_map(Value::as_str)
    }
}
