//! Cluster objects from a file, for running without a cluster: Namespaces, owners of pods, service accounts.
//!
//! YAML or JSON, Lists, many documents. Only metadata is read.

#![expect(clippy::disallowed_types, reason = "read once, at start")]

use std::{collections::HashMap, sync::Arc};

use injectd_k8s::object::texts;
use serde_json::Value;

use crate::{
    lookups::{FoundObject, FoundOwner, KnownObject, Metadata, OwnerObject, Reference},
    yaml,
};

/// The objects of a file.
#[derive(Debug, Default)]
pub struct Objects {
    namespaces: HashMap<String, Arc<Metadata>>,
    others: HashMap<ObjectKey, Arc<KnownObject>>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ObjectKey {
    namespace: String,
    kind: String,
    name: String,
}

/// Why objects could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// Not YAML.
    #[error("not valid YAML: {0}")]
    Syntax(String),
    /// A document that is not an object.
    #[error("document {document}: expected an object with a kind and metadata.name, found {found}")]
    NotAnObject {
        /// Counted from 1.
        document: usize,
        /// The beginning of the document.
        found: String,
    },
}

impl Objects {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// When the text is not YAML, or a document is not an object.
    pub fn parse(text: &str) -> Result<Self, ObjectsError> {
        let mut objects = Self::default();
        let documents = yaml::parse_all(text).map_err(ObjectsError::Syntax)?;
        for (index, document) in documents.iter().enumerate() {
            objects
                .add(document)
                .map_err(|found| ObjectsError::NotAnObject { document: index + 1, found })?;
        }
        Ok(objects)
    }

    /// Adds an object, or the items of a List.
    ///
    /// # Errors
    /// The beginning of a value that is not an object.
    pub fn add(&mut self, document: &Value) -> Result<(), String> {
        self.add_listed(document, "")
    }

    /// Items of a `NamespaceList` may leave out their kind: then it is `listed_kind`.
    fn add_listed(&mut self, document: &Value, listed_kind: &str) -> Result<(), String> {
        let kind = match text(document, &["kind"]) {
            "" => listed_kind,
            kind => kind,
        };
        if let Some(items) = document.get("items").and_then(Value::as_array)
            && let Some(item_kind) = kind.strip_suffix("List")
        {
            return items.iter().try_for_each(|item| self.add_listed(item, item_kind));
        }
        let name = text(document, &["metadata", "name"]);
        if kind.is_empty() || name.is_empty() {
            // Enough to find the document again, and short enough for a line of a terminal.
            return Err(document.to_string().chars().take(60).collect());
        }
        if kind == "Namespace" {
            self.namespaces.insert(name.to_owned(), Arc::new(metadata(document)));
        } else {
            let key = ObjectKey {
                namespace: text(document, &["metadata", "namespace"]).to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
            };
            let (owner, metadata) = (Arc::new(owned(document)), metadata(document));
            self.others.insert(key, Arc::new(KnownObject { owner, metadata }));
        }
        Ok(())
    }

    /// Labels and annotations of a namespace; `None` if it does not exist.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<Arc<Metadata>> {
        self.namespaces.get(name).cloned()
    }

    /// An object that owns pods.
    #[must_use]
    pub fn owner(&self, namespace: &str, kind: &str, name: &str) -> FoundOwner {
        self.object(namespace, kind, name).map(|object| Arc::clone(&object.owner))
    }

    /// An object of a namespace.
    #[must_use]
    pub fn object(&self, namespace: &str, kind: &str, name: &str) -> FoundObject {
        let key = ObjectKey {
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        self.others.get(&key).cloned()
    }
}

fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    path.iter()
        .try_fold(value, |value, key| value.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn metadata(document: &Value) -> Metadata {
    Metadata {
        labels: texts(document, "/metadata/labels").collect(),
        annotations: texts(document, "/metadata/annotations").collect(),
    }
}

fn owned(document: &Value) -> OwnerObject {
    let references = document.get("metadata").and_then(|metadata| metadata.get("ownerReferences"));
    let owners =
        references.and_then(Value::as_array).into_iter().flatten().map(|reference| Reference {
            api_version: text(reference, &["apiVersion"]).to_owned(),
            kind: text(reference, &["kind"]).to_owned(),
            name: text(reference, &["name"]).to_owned(),
            object_uid: text(reference, &["uid"]).to_owned(),
            is_controller: reference.get("controller").and_then(Value::as_bool).unwrap_or_default(),
        });
    OwnerObject {
        object_uid: text(document, &["metadata", "uid"]).to_owned(),
        owners: owners.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_many_documents_are_read() {
        let objects = Objects::parse(
            "kind: List\nitems:\n- {kind: Namespace, metadata: {name: a, annotations: {x: 'y'}}}\n\
             ---\n---\nkind: ReplicaSet\nmetadata: {name: r, namespace: a, uid: u,\n  \
             ownerReferences: [{kind: Deployment, name: d}]}\n",
        )
        .expect("objects");
        let expected = Metadata::annotated([("x".to_owned(), "y".to_owned())]);
        assert_eq!(objects.namespace("a"), Some(expected));
        assert_eq!(objects.namespace("b"), None);
        let owned = objects.owner("a", "ReplicaSet", "r").expect("replica set");
        assert_eq!((owned.object_uid.as_str(), owned.owners[0].name.as_str()), ("u", "d"));
    }

    #[test]
    fn items_of_a_typed_list_have_its_kind() {
        let objects = Objects::parse(
            "kind: NamespaceList\nitems:\n- {metadata: {name: a, annotations: {x: 'y'}}}\n---\n\
             kind: List\nitems:\n- {kind: ReplicaSetList, items: [{metadata: {name: r, namespace: a, \
             uid: u}}]}\n",
        )
        .expect("objects");
        let expected = Metadata::annotated([("x".to_owned(), "y".to_owned())]);
        assert_eq!(objects.namespace("a"), Some(expected));
        assert_eq!(objects.owner("a", "ReplicaSet", "r").expect("replica set").object_uid, "u");
    }

    #[test]
    fn a_service_account_has_labels_and_annotations() {
        let objects = Objects::parse(
            "kind: ServiceAccount\nmetadata: {name: web, namespace: a, labels: {l: '1'}, annotations: {k: '2'}}\n",
        )
        .expect("objects");
        let found = objects.object("a", "ServiceAccount", "web").expect("a ServiceAccount");
        let entry = |key: &str, text: &str| Box::from([(key.to_owned(), text.to_owned())]);
        assert_eq!(
            found.metadata,
            Metadata { labels: entry("l", "1"), annotations: entry("k", "2") }
        );
        assert_eq!(objects.object("b", "ServiceAccount", "web"), None);
    }

    #[test]
    fn a_document_that_is_not_an_object_is_named() {
        let error = Objects::parse("kind: Namespace\nmetadata: {name: a}\n---\njust text\n");
        let text = error.expect_err("no object").to_string();
        assert!(text.contains("document 2") && text.contains("just text"), "{text}");
    }
}
