//! What injection reads of a cluster besides namespaces: nodes and `ProxyConfig`s.

use std::sync::Arc;

use injectd_core::{objects::ObjectsError, yaml};
use serde_json::Value;

use crate::{native::Nodes, proto::layers::Resources, release::Release};

/// The nodes and `ProxyConfig`s of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// The names under which the cluster is known; a pod of another one has no nodes and no namespace.
    pub names: Vec<String>,
    /// Its nodes; `None` if they cannot be read.
    pub nodes: Option<Arc<Nodes>>,
    /// Its `ProxyConfig`s.
    pub resources: Resources,
}

impl Cluster {
    /// A cluster without objects.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self { names, nodes: Some(Arc::default()), resources: Resources::default() }
    }

    /// Reads the objects of a file: YAML or JSON, many documents, Lists. Other kinds are ignored.
    ///
    /// # Errors
    /// The text is not YAML.
    pub fn parse(names: Vec<String>, text: &str, release: Release) -> Result<Self, ObjectsError> {
        let documents = yaml::parse_all(text).map_err(ObjectsError::Syntax)?;
        let mut objects = Vec::new();
        for document in &documents {
            add(document, "", &mut objects);
        }
        let mut nodes = Nodes::default();
        for (_, node) in objects.iter().filter(|(kind, _)| *kind == "Node") {
            let version = node.pointer("/status/nodeInfo/kubeletVersion");
            let [name, version] = [node.pointer("/metadata/name"), version]
                .map(|text| text.and_then(Value::as_str).unwrap_or_default());
            // The version decides alone; the warning about an odd one is not shown for files.
            drop(nodes.insert(name, version));
        }
        let resources = objects.iter().filter(|(kind, _)| *kind == "ProxyConfig");
        let resources = Resources::new(resources.map(|(_, object)| *object), release);
        Ok(Self { names, nodes: Some(Arc::new(nodes)), resources })
    }
}

/// Adds an object or the items of a List, with their kinds. Items of a `NodeList` may leave out theirs.
fn add<'v>(object: &'v Value, listed_kind: &'v str, objects: &mut Vec<(&'v str, &'v Value)>) {
    let kind = object["kind"].as_str().unwrap_or(listed_kind);
    match (object["items"].as_array(), kind.strip_suffix("List")) {
        (Some(items), Some(item_kind)) => {
            for item in items {
                add(item, item_kind, objects);
            }
        }
        _ => objects.push((kind, object)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_proxy_configs_are_read_from_lists_and_documents() {
        let text = "kind: List\nitems:\n\
                    - {kind: Node, metadata: {name: a}, status: {nodeInfo: {kubeletVersion: v1.33.0}}}\n\
                    ---\nkind: NodeList\nitems:\n\
                    - {metadata: {name: b}, status: {nodeInfo: {kubeletVersion: v1.32.0}}}\n\
                    ---\nkind: Namespace\nmetadata: {name: c}\n";
        let cluster = Cluster::parse(Vec::new(), text, Release::NEWEST).expect("objects");
        assert_eq!(cluster.nodes.expect("nodes").count(), (2, 1));
        assert!(Cluster::parse(Vec::new(), "a: [", Release::NEWEST).is_err());
    }
}
