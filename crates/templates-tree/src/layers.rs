//! The labels and annotations that a template may read: of a pod, its namespace and its ServiceAccount.

use std::collections::BTreeMap;

use injectd_k8s::object::Labels;
use injectd_templates::object::{KeyPlace, ParameterSource};
use serde_json::Value;

/// Labels and annotations by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// Labels of the pod.
    pub pod_labels: Labels,
    /// Annotations of the pod.
    pub pod_annotations: BTreeMap<String, String>,
    /// Labels of the namespace.
    pub namespace_labels: Labels,
    /// Annotations of the namespace.
    pub namespace_annotations: BTreeMap<String, String>,
    /// Annotations of the ServiceAccount; none if it is not there.
    pub service_account_annotations: BTreeMap<String, String>,
}

impl Layers {
    /// The layers of a pod: the pod as an object, the metadata of its namespace, and the metadata of its
    /// ServiceAccount, if it is there.
    #[must_use]
    pub fn new(pod: &Value, namespace: &Value, service_account: Option<&Value>) -> Self {
        Self::of(Some(pod), namespace, service_account)
    }

    /// The same; of a pod that is not read, there is nothing.
    pub(crate) fn of(
        pod: Option<&Value>,
        namespace: &Value,
        service_account: Option<&Value>,
    ) -> Self {
        let pod = pod.and_then(|pod| pod.get("metadata"));
        Self {
            pod_labels: texts(pod, "labels"),
            pod_annotations: texts(pod, "annotations"),
            namespace_labels: texts(Some(namespace), "labels"),
            namespace_annotations: texts(Some(namespace), "annotations"),
            service_account_annotations: texts(service_account, "annotations"),
        }
    }

    /// The value of a key in one of the places where keys are looked up.
    #[must_use]
    pub fn at(&self, place: KeyPlace, key: &str) -> Option<&str> {
        let layer = match place {
            KeyPlace::PodLabel => &self.pod_labels,
            KeyPlace::PodAnnotation => &self.pod_annotations,
            KeyPlace::NamespaceLabel => &self.namespace_labels,
            KeyPlace::NamespaceAnnotation => &self.namespace_annotations,
        };
        layer.get(key).map(String::as_str)
    }

    /// The text of a source; `None` for a prefix, too.
    #[must_use]
    pub fn text(&self, source: &ParameterSource) -> Option<&str> {
        let layer = match source {
            ParameterSource::PodAnnotation(_) => &self.pod_annotations,
            ParameterSource::PodLabel(_) => &self.pod_labels,
            ParameterSource::NamespaceAnnotation(_) => &self.namespace_annotations,
            ParameterSource::NamespaceLabel(_) => &self.namespace_labels,
            ParameterSource::ServiceAccountAnnotation(_) => &self.service_account_annotations,
            ParameterSource::PodAnnotationPrefix(_)
            | ParameterSource::NamespaceAnnotationPrefix(_) => return None,
        };
        layer.get(source.key()).map(String::as_str)
    }

    /// The annotations whose keys begin with the prefix of a source, by key.
    pub fn family<'l>(
        &'l self,
        source: &'l ParameterSource,
    ) -> impl Iterator<Item = (&'l str, &'l str)> {
        let layer = match source {
            ParameterSource::PodAnnotationPrefix(_) => Some(&self.pod_annotations),
            ParameterSource::NamespaceAnnotationPrefix(_) => Some(&self.namespace_annotations),
            _ => None,
        };
        let prefix = source.key();
        let from = layer.into_iter().flat_map(move |layer| layer.range(prefix.to_owned()..));
        let texts = from.map(|(key, text)| (key.as_str(), text.as_str()));
        texts.take_while(move |(key, _)| key.starts_with(prefix))
    }
}

/// The texts of a map; other values are left out.
fn texts(metadata: Option<&Value>, map: &str) -> BTreeMap<String, String> {
    let map = metadata.and_then(|metadata| metadata.get(map)?.as_object());
    let texts = map.into_iter().flatten();
    texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn layers_are_those_of_three_objects() {
        let of = |name: &str| json!({"labels": {"a": name}, "annotations": {"b": name, "c": 1}});
        let pod = json!({"metadata": of("pod")});
        let layers = Layers::new(&pod, &of("namespace"), Some(&of("account")));
        let map = |key: &str, name: &str| BTreeMap::from([(key.to_owned(), name.to_owned())]);
        let expected = Layers {
            pod_labels: map("a", "pod"),
            pod_annotations: map("b", "pod"),
            namespace_labels: map("a", "namespace"),
            namespace_annotations: map("b", "namespace"),
            service_account_annotations: map("b", "account"),
        };
        assert_eq!(layers, expected);
        let without = Layers::new(&json!({}), &json!(null), None);
        assert_eq!(without, Layers::default());
    }

    #[test]
    fn a_family_is_what_begins_with_its_prefix() {
        let keys = ["a/b", "a/c", "a/c-", "a/c-1", "a/c-2", "a/d"];
        let pod_annotations = keys.map(|key| (key.to_owned(), String::new())).into();
        let layers = Layers { pod_annotations, ..Layers::default() };
        let source = ParameterSource::PodAnnotationPrefix("a/c-".to_owned());
        let found: Vec<_> = layers.family(&source).map(|(key, _)| key).collect();
        assert_eq!(found, ["a/c-", "a/c-1", "a/c-2"]);
        let other = ParameterSource::NamespaceAnnotationPrefix("a/c-".to_owned());
        assert_eq!(layers.family(&other).count(), 0);
        assert_eq!(layers.text(&source), None);
    }
}
