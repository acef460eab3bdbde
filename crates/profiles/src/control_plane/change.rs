//! What changes for the control plane, and what it reports.

use std::sync::Arc;

use injectd_cluster::{
    objects::{ConfigMap, Node, ProxyConfig},
    watch::Update,
};
use injectd_istio::{mesh::Istio, revision::Revision};

/// A change in the cluster or in a file.
#[derive(Debug)]
pub enum Change {
    /// Of `ConfigMap`s: all, or one by its name.
    ConfigMaps(Option<String>, Update<ConfigMap>),
    /// Of Nodes.
    Nodes(Update<Node>),
    /// Of `ProxyConfig`s.
    ProxyConfigs(Update<ProxyConfig>),
    /// A configuration of files, for a revision.
    Files(String, Box<Revision>),
}

/// What the caller reports.
#[derive(Debug)]
pub enum Note {
    /// A configuration is in use.
    Applied {
        /// Its revision.
        revision: String,
        /// The mesh with it.
        mesh: Arc<Istio>,
    },
    /// A configuration cannot be used. The previous one stays in use, if there is one.
    Rejected {
        /// Its revision.
        revision: String,
        /// Whether there is one.
        is_served: bool,
        /// Why, with the `ConfigMap` and the key.
        problem: String,
    },
    /// A revision is not served any more.
    Removed {
        /// Its name.
        revision: String,
    },
    /// A configuration can be used, but something is wrong with it, or with an object.
    Warning(String),
}
