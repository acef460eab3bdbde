//! The `ProxyConfig` of a pod: layers over the built-in default.
//!
//! Lowest first: the `defaultConfig` of the mesh; the resource `ProxyConfig` without selector of the
//! root namespace; the one of the pod's namespace; the annotation `proxy.istio.io/config`; the
//! resource of the pod's namespace that selects the pod.
//!
//! Go: `EffectiveProxyConfig` of `pilot/pkg/model` and `MergeProxyConfig` of `pkg/config/mesh`.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value as Json;
use thiserror::Error;

use super::{
    defaults,
    message::{Message, Value},
    read::ReadError,
    schema::{PROXY_CONFIG, PROXY_CONFIG_RESOURCE},
    validate::{self, Invalid},
};
use crate::{
    budget,
    release::{Delta, Release},
};

/// The headers that a lower layer's `proxyHeaders` gives to a higher one without them.
const KEPT_HEADERS: [&str; 5] =
    ["forwarded_client_cert", "request_id", "attempt_count", "server", "envoy_debug_headers"];

/// The resources `ProxyConfig` of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// In the order in which they match.
    ordered: Vec<Resource>,
}

#[derive(Clone, Debug)]
struct Resource {
    namespace: String,
    /// `None` without a selector; its labels may be none at all.
    selector: Option<BTreeMap<String, String>>,
    config: Message,
}

/// What the layers look at in a pod.
#[derive(Clone, Copy)]
pub struct Pod<'p> {
    /// The namespace it will be in.
    pub namespace: &'p str,
    /// The value of one of its labels.
    pub label: &'p dyn Fn(&str) -> Option<&'p str>,
    /// What [`read_annotation`] found in its annotation.
    pub annotation: Option<&'p Message>,
}

/// Why Istio denies a pod for its annotation `proxy.istio.io/config`.
#[derive(Debug, Error)]
pub enum AnnotationError {
    /// It is not YAML.
    #[error("failed to convert to apply proxy config: {0}")]
    Yaml(#[source] injectd_yaml::Problem),
    /// A value has the wrong type.
    #[error("failed to convert to apply proxy config: {0}")]
    Type(#[source] ReadError),
    /// The values do not fit.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl Resources {
    /// Reads objects of `networking.istio.io`, kind `ProxyConfig`; of those of one kind the oldest
    /// matches first, then the order is by name and namespace. Objects that cannot be read are left
    /// out.
    pub fn new<'o>(objects: impl IntoIterator<Item = &'o Json>, release: Release) -> Self {
        let mut found: Vec<_> = objects
            .into_iter()
            .filter_map(|object| {
                let meta = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
                let age = (meta("creationTimestamp"), meta("name"), meta("namespace"));
                let spec = Message::read(*PROXY_CONFIG_RESOURCE, &object["spec"], release).ok()?;
                Some((age, Resource::new(meta("namespace"), &spec)))
            })
            .collect();
        found.sort_by_key(|(age, _)| *age);
        Self { ordered: found.into_iter().map(|(_, resource)| resource).collect() }
    }

    /// The keys of the labels by which resources select pods.
    pub(crate) fn selecting_labels(&self) -> impl Iterator<Item = &str> {
        let labels = self.ordered.iter().filter_map(|one| one.selector.as_ref());
        labels.flat_map(BTreeMap::keys).map(String::as_str)
    }

    /// The first resource of a namespace that has no selector.
    fn of_namespace(&self, namespace: &str) -> Option<&Message> {
        self.find(|one| one.namespace == namespace && one.selector.is_none())
    }

    /// The first resource of the pod's namespace whose labels, one at least, the pod has.
    fn of_pod(&self, pod: Pod<'_>) -> Option<&Message> {
        self.find(|one| {
            let Some(labels) = &one.selector else { return false };
            let mut labels = labels.iter();
            one.namespace == pod.namespace
                && labels.len() > 0
                && labels.all(|(key, value)| (pod.label)(key) == Some(value))
        })
    }

    fn find(&self, matches: impl Fn(&Resource) -> bool) -> Option<&Message> {
        self.ordered.iter().find(|one| matches(one)).map(|one| &one.config)
    }
}

impl Resource {
    fn new(namespace: &str, spec: &Message) -> Self {
        let mut config = Message::new(*PROXY_CONFIG);
        for (from, to) in [
            ("concurrency", "concurrency"),
            ("environment_variables", "proxy_metadata"),
            ("image", "image"),
        ] {
            config.set(to, spec.value(from).cloned());
        }
        let selector = spec.message("selector").map(|selector| {
            let labels = selector.map("match_labels").into_iter().flatten();
            labels
                .filter_map(|(key, value)| match value {
                    Value::Text(text) => Some((key.clone(), text.clone())),
                    _ => None,
                })
                .collect()
        });
        Self { namespace: namespace.to_owned(), selector, config }
    }
}

/// The `ProxyConfig` of a pod. An annotation that cannot be read is left out here;
/// [`check_annotation`] rejects it.
#[must_use]
pub fn effective(mesh: &Message, resources: &Resources, pod: Pod<'_>, release: Release) -> Message {
    let root = mesh.text("root_namespace");
    let layers = [
        mesh.message("default_config"),
        resources.of_namespace(root).filter(|_| !root.is_empty()),
        resources.of_namespace(pod.namespace).filter(|_| pod.namespace != root),
        pod.annotation,
        resources.of_pod(pod),
    ];
    let mut config = defaults::proxy_config(release).clone();
    for layer in layers.into_iter().flatten() {
        merge(&mut config, layer, release);
    }
    config
}

/// Reads the annotation `proxy.istio.io/config`.
///
/// # Errors
///
/// If it is not YAML, or a value has the wrong type.
pub fn read_annotation(text: &str, release: Release) -> Result<Message, AnnotationError> {
    let mut config = Message::new(*PROXY_CONFIG);
    apply_annotation(&mut config, text, release)?;
    Ok(config)
}

/// Checks the annotation `proxy.istio.io/config` over the built-in defaults; the mesh config has no
/// part in it.
///
/// # Errors
///
/// If it cannot be read, or breaks rules.
pub fn check_annotation(text: &str, release: Release) -> Result<(), AnnotationError> {
    let mut config = defaults::proxy_config(release).clone();
    apply_annotation(&mut config, text, release)?;
    Ok(validate::proxy_config(&config, release)?)
}

fn apply_annotation(
    config: &mut Message,
    text: &str,
    release: Release,
) -> Result<(), AnnotationError> {
    let json = injectd_yaml::parse(text, budget::YAML).map_err(AnnotationError::Yaml)?;
    config.apply(&json, release).map_err(AnnotationError::Type)
}

/// Lays a layer over a `ProxyConfig`: each field that it sets replaces the one below as a whole.
fn merge(config: &mut Message, layer: &Message, release: Release) {
    let kept = Kept::of(config);
    for (index, (_, value)) in layer.fields().enumerate() {
        if let Some(value) = value {
            config.set_at(index, Some(value.clone()));
        }
    }
    kept.restore(config, release);
}

/// What a layer does not replace as a whole.
pub(super) struct Kept {
    metadata: Option<BTreeMap<String, Value>>,
    headers: Option<Message>,
}

impl Kept {
    /// Takes it from the lower layers.
    pub(super) fn of(below: &Message) -> Self {
        Self {
            metadata: below.map("proxy_metadata").cloned(),
            headers: below.message("proxy_headers").cloned(),
        }
    }

    /// Gives it to the merged layers: entries of `proxyMetadata` that the new layer does not have,
    /// and the same of some headers.
    pub(super) fn restore(self, config: &mut Message, release: Release) {
        if let Some(mut metadata) = self.metadata {
            let own = config.map("proxy_metadata").into_iter().flatten();
            metadata.extend(own.map(|(key, value)| (key.clone(), value.clone())));
            config.set("proxy_metadata", Some(Value::Map(metadata)));
        }
        if let (Some(own), Some(below)) = (config.message("proxy_headers"), self.headers)
            && release.has(Delta::KeptHeaders)
        {
            let mut own = own.clone();
            for name in KEPT_HEADERS {
                if own.value(name).is_none() {
                    own.set(name, below.value(name).cloned());
                }
            }
            config.set("proxy_headers", Some(Value::Message(own)));
        }
    }
}
