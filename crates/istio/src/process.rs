//! What happens to a pod after Istio's templates were merged into it and the user's containers were
//! laid over the result.
//!
//! Istio: `postProcessPod` (`pkg/kube/inject/webhook.go`). One file holds one step.
//! Not the user's containers (`reapply`) and not the patch (`patch`).

pub mod native_move;

mod cluster_env;
mod container_order;
pub(crate) mod metadata;
pub(crate) mod names;
mod probes;
mod prometheus;
mod secure_port;
pub(crate) mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use crate::release::{Delta, Release};

/// What the steps need to know besides the pod.
#[expect(clippy::struct_excessive_bools, reason = "independent settings of mesh and values")]
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The release whose rules apply.
    pub release: Release,
    /// `defaultConfig.statusPort` of the mesh, without the layers of the pod. Usually 15020.
    pub status_port: i32,
    /// Whether the interception mode of the pod's merged `ProxyConfig` is `TPROXY`.
    pub tproxy: bool,
    /// Whether applications wait for the proxy: `holdApplicationUntilProxyStarts` of the mesh's
    /// `defaultConfig` with the annotation `proxy.istio.io/config` of the original pod applied, or
    /// of `global.proxy` in the values. Resources `ProxyConfig` do not count.
    pub hold: bool,
    /// `enablePrometheusMerge` of the mesh; true if it is unset.
    pub prometheus_merge: bool,
    /// `sidecarInjectorWebhook.rewriteAppHTTPProbe` of the values; false if it is unset.
    pub rewrite_probes: bool,
    /// The revision of the injector. An empty one counts as `default`.
    pub revision: &'a str,
    /// Variables of the path, with the effective cluster and network if they are not empty:
    /// `ISTIO_META_CLUSTER_ID`, `ISTIO_META_NETWORK` and others.
    pub environment: &'a BTreeMap<String, String>,
    /// `injectedAnnotations` of the injector's configuration.
    pub injected_annotations: &'a BTreeMap<String, String>,
}

/// Something that the author of the pod should know; the pod is injected nonetheless.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Warning {
    /// The uid of a user's proxy concerns a container that the templates did not add.
    #[error("could not find either istio-init or istio-validation container")]
    NoInitContainer,
    /// The annotation holds another value than `true` and `false`, which counts as `true`.
    #[error("invalid value for sidecar.istio.io/nativeSidecar: {0:?}; istio-proxy becomes native")]
    NativeSidecar(String),
    /// The pod was injected before, and its own fields of this container lose against the template.
    #[error("fields that the pod gave to {0} are lost, since the pod was injected before")]
    LostOverrides(String),
    /// A rewritten probe has the name of a port that the container lacks.
    #[error("a probe of container {container} names port {port:?}, which the container lacks")]
    UnknownPort {
        /// The container.
        container: String,
        /// The name.
        port: String,
    },
    /// The port of `status.sidecar.istio.io/port` is 0 or no number, and probes call it.
    #[error("rewritten probes call port 0: status.sidecar.istio.io/port is no port")]
    NoStatusPort,
    /// Istio 1.31 and later deny the pod.
    #[error("later releases of Istio deny the pod: {0}")]
    LaterValidation(ProcessError),
    /// The annotation has an entry without a port, so that all its entries are ignored.
    #[error("prometheus.istio.io/scrape-targets has an entry without a port: {0:?}")]
    ScrapeTargets(String),
}

/// Why a pod is denied after the merge. Upstream prefixes the text with `failed to process pod: `.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProcessError {
    /// A part of the pod is neither an object nor null. The API server sends no such pod.
    #[error("{0} must be an object")]
    NotAnObject(&'static str),
    /// A target of `prometheus.istio.io/scrape-targets` is refused (1.31 and later).
    #[error("invalid prometheus scrape targets: {}", .0.text("target port"))]
    ScrapeTargets(PortError),
    /// The annotation `prometheus.io/port` is refused (1.31 and later).
    #[error("invalid prometheus scrape configuration: {}", .0.text("port"))]
    ScrapePort(PortError),
}

/// Why a port cannot be scraped. The texts are the port as the annotation has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortError {
    /// Not a number from 1 to 65535.
    Invalid(String),
    /// The port under which the merged metrics are served.
    AgentPort(String),
    /// A port of Istio's own, and its use.
    Reserved(String, &'static str),
}

impl PortError {
    fn text(&self, noun: &str) -> String {
        match self {
            Self::Invalid(port) => format!("invalid {noun} {port:?}"),
            Self::AgentPort(port) => format!("{noun} {port} conflicts with agent port"),
            Self::Reserved(port, usage) => {
                format!("{noun} {port} is reserved for Istio ({usage}) and cannot be scraped")
            }
        }
    }
}

/// Changes a merged pod as Istio does before it makes the patch.
///
/// `pod` is the user's pod with all templates merged and its own containers re-applied; `rendered`
/// is an empty pod with all templates merged.
///
/// # Errors
///
/// See [`ProcessError`]; the pod may be changed in part then.
pub fn process(
    pod: &mut Value,
    rendered: &Value,
    facts: &Facts<'_>,
) -> Result<Vec<Warning>, ProcessError> {
    let mut warnings = Vec::new();
    cluster_env::set(pod, facts.environment);
    warnings.extend(prometheus::merge(pod, facts)?);
    if facts.release.has(Delta::SecurePort) {
        secure_port::annotate(pod)?;
    }
    warnings.extend(probes::rewrite(pod, facts));
    metadata::set(pod, rendered, facts)?;
    container_order::arrange(pod, facts.hold);
    Ok(warnings)
}
