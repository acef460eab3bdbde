//! Objects of a cluster, with only the fields that Istio's injection reads: deserialisation skips
//! all others.

#![expect(clippy::disallowed_types, reason = "the spec of a ProxyConfig is a tree")]

use std::borrow::Cow;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;
use serde_json::Value;

/// A `ConfigMap` with Istio's keys.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ConfigMap {
    /// Its name and labels.
    pub metadata: ObjectMeta,
    /// Its texts.
    #[serde(default)]
    pub data: Option<ConfigMapData>,
}

/// The keys of `istio-sidecar-injector`, and `mesh` of `istio`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ConfigMapData {
    /// Policy and templates.
    pub config: Option<String>,
    /// Helm values.
    pub values: Option<String>,
    /// The mesh config.
    pub mesh: Option<String>,
}

/// A Node with the version of its kubelet.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Node {
    /// Its name.
    pub metadata: ObjectMeta,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    #[serde(rename = "nodeInfo")]
    node_info: NodeInfo,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeInfo {
    #[serde(rename = "kubeletVersion")]
    kubelet_version: String,
}

/// A `ProxyConfig` of `networking.istio.io/v1beta1`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ProxyConfig {
    /// Its namespace, name and age.
    pub metadata: ObjectMeta,
    /// The spec as it is.
    #[serde(default)]
    pub spec: Value,
}

impl Node {
    /// The version of its kubelet; empty if it is unknown.
    #[must_use]
    pub fn kubelet_version(&self) -> &str {
        &self.status.node_info.kubelet_version
    }
}

/// Implements `Resource`: group, version, kind, plural, scope.
macro_rules! resource {
    ($type:ident, $group:literal, $version:literal, $plural:literal, $scope:ty) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($type).into()
            }

            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(ConfigMap, "", "v1", "configmaps", NamespaceResourceScope);
resource!(Node, "", "v1", "nodes", ClusterResourceScope);
resource!(ProxyConfig, "networking.istio.io", "v1beta1", "proxyconfigs", NamespaceResourceScope);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_fields_are_skipped() {
        let node = r#"{"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"x": [1]},
            "status": {"images": [{}], "nodeInfo": {"kubeletVersion": "v1.33.0", "x": 1}}}"#;
        let node: Node = serde_json::from_str(node).expect("a node");
        assert_eq!(node.kubelet_version(), "v1.33.0");
        for node in [r#"{"metadata": {}}"#, r#"{"metadata": {}, "status": {}}"#] {
            let node: Node = serde_json::from_str(node).expect("a node");
            assert_eq!(node.kubelet_version(), "");
        }
        let map = r#"{"metadata": {"name": "istio"}, "data": {"mesh": "a: 1", "other": "x"}}"#;
        let map: ConfigMap = serde_json::from_str(map).expect("a ConfigMap");
        let data = map.data.expect("data");
        assert_eq!((data.mesh.as_deref(), data.config, data.values), (Some("a: 1"), None, None));
        assert_eq!(
            ProxyConfig::url_path(&(), None),
            "/apis/networking.istio.io/v1beta1/proxyconfigs"
        );
        assert_eq!(Node::url_path(&(), None), "/api/v1/nodes");
        assert_eq!(ConfigMap::url_path(&(), Some("x")), "/api/v1/namespaces/x/configmaps");
    }
}
