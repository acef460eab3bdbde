//! The settings of a pod's sidecar, and what set each.

use std::{collections::HashSet, sync::Arc};

use injectd_core::explain::{Layer, Setting};
use serde_json::{Value, json};

use crate::{
    annotations::PROXY_CONFIG_ANNOTATION,
    fields::annotations,
    injection::Injection,
    mesh::Istio,
    path::PathEnvironment,
    proto::{Message, layers::Resources},
};

/// The values of the chart that templates of every release read.
const VALUES: [&str; 14] = [
    "global.hub",
    "global.tag",
    "global.variant",
    "global.imagePullPolicy",
    "global.logAsJson",
    "global.network",
    "global.meshID",
    "global.proxy.image",
    "global.proxy.logLevel",
    "global.proxy.componentLogLevel",
    "global.proxy.resources.requests",
    "global.proxy.resources.limits",
    "global.proxy.privileged",
    "pilot.cni.enabled",
];

/// Maximum number of fields of the `ProxyConfig` in an explanation: the schema has fewer, but
/// `proxyMetadata` may have any number of keys.
const MAX_FIELDS: usize = 500;

/// The names of the settings of a `ProxyConfig` begin so.
const PROXY_CONFIG: &str = "proxyConfig";

impl Istio {
    /// The annotations that are read, the `ProxyConfig` by its layers, and values of the chart.
    pub(super) fn shown_settings(&self, injection: &Injection<'_>, pod: &Value) -> Vec<Setting> {
        let revision = self.revision();
        let mut settings = Vec::new();
        for (key, value) in annotations(pod).into_iter().flatten() {
            if key != PROXY_CONFIG_ANNOTATION && revision.known_annotations.reads(key) {
                settings.push(Setting {
                    name: key.clone(),
                    value: text(value),
                    origin: Layer::Pod,
                    annotation: Some(key.clone()),
                });
            }
        }
        settings.push(of_configuration("revision", revision.name.clone()));
        self.add_proxy_config(injection, pod, &mut settings);
        for path in VALUES {
            let keys: Vec<_> = path.split('.').collect();
            if let Some(value) = revision.values.get(&keys).filter(|value| !value.is_null()) {
                settings.push(of_configuration(path, text(value)));
            }
        }
        settings
    }

    /// The fields of the pod's `ProxyConfig`, and the layer that each comes from.
    fn add_proxy_config(
        &self,
        injection: &Injection<'_>,
        pod: &Value,
        settings: &mut Vec<Setting>,
    ) {
        let none = Resources::default();
        // The layers below the annotation are of the same pod without it, so that a long annotation
        // is parsed once.
        let (labels, namespace) = (pod.pointer("/metadata/labels"), injection.namespace());
        let plain = Arc::new(json!({"metadata": {"labels": labels, "namespace": namespace}}));
        let plain = Injection::new(self.revision(), plain, namespace, PathEnvironment::default());
        let layer = |resources| -> HashSet<_> {
            flat(&plain.layered_config(false, resources)).into_iter().collect()
        };
        let (base, with_resources) = (layer(&none), layer(self.resources()));
        let fields = flat(&injection.layered_config(true, self.resources()));
        let omitted = fields.len().saturating_sub(MAX_FIELDS);
        for field in fields.into_iter().take(MAX_FIELDS) {
            let (origin, annotation) = if !with_resources.contains(&field) {
                (Layer::Pod, Some(PROXY_CONFIG_ANNOTATION.to_owned()))
            } else if base.contains(&field) {
                (Layer::Configuration, None)
            } else {
                (Layer::ProxyConfig, None)
            };
            let (name, value) = field;
            settings.push(Setting { name, value, origin, annotation });
        }
        if omitted > 0 {
            settings.push(Setting {
                name: PROXY_CONFIG.to_owned(),
                value: format!("{omitted} more fields"),
                origin: Layer::Pod,
                annotation: Some(PROXY_CONFIG_ANNOTATION.to_owned()),
            });
        }
    }
}

fn of_configuration(name: &str, value: String) -> Setting {
    Setting { name: name.to_owned(), value, origin: Layer::Configuration, annotation: None }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The fields of a message, with the path of each.
fn flat(message: &Message) -> Vec<(String, String)> {
    let tree: Value = serde_json::from_str(&message.to_json()).unwrap_or_default();
    let mut fields = Vec::new();
    flatten(PROXY_CONFIG, &tree, &mut fields);
    fields
}

/// The depth of a message is that of its schema.
fn flatten(path: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                flatten(&format!("{path}.{key}"), value, fields);
            }
        }
        value => fields.push((path.to_owned(), text(value))),
    }
}
