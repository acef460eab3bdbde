//! The settings of a pod's sidecar, and what set each.

use injectd_core::explain::{Layer, Setting};
use serde_json::Value;

use crate::{
    annotations::PROXY_CONFIG_ANNOTATION,
    fields::annotations,
    injection::Injection,
    mesh::Istio,
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

/// The names of the settings of a `ProxyConfig` begin so.
const PROXY_CONFIG: &str = "proxyConfig";

impl Istio {
    /// The annotations that are read, the `ProxyConfig` by its layers, and values of the chart.
    pub(super) fn shown_settings(&self, injection: &Injection<'_>, pod: &Value) -> Vec<Setting> {
        let injector = self.injector();
        let mut settings = Vec::new();
        for (key, value) in annotations(pod).into_iter().flatten() {
            if key != PROXY_CONFIG_ANNOTATION && injector.known_annotations.reads(key) {
                settings.push(Setting {
                    name: key.clone(),
                    value: text(value),
                    origin: Layer::Pod,
                    annotation: Some(key.clone()),
                });
            }
        }
        settings.push(of_configuration("revision", injector.revision.clone()));
        let none = Resources::default();
        let base = flat(&injection.layered_config(false, &none));
        let with_resources = flat(&injection.layered_config(false, self.resources()));
        for (name, value) in flat(&injection.layered_config(true, self.resources())) {
            let has = |layer: &[(String, String)]| {
                layer.iter().any(|(other, known)| *other == name && *known == value)
            };
            let (origin, annotation) = if !has(&with_resources) {
                (Layer::Pod, Some(PROXY_CONFIG_ANNOTATION.to_owned()))
            } else if has(&base) {
                (Layer::Configuration, None)
            } else {
                (Layer::ProxyConfig, None)
            };
            settings.push(Setting { name, value, origin, annotation });
        }
        for path in VALUES {
            let keys: Vec<_> = path.split('.').collect();
            if let Some(value) = injector.values.get(&keys).filter(|value| !value.is_null()) {
                settings.push(of_configuration(path, text(value)));
            }
        }
        settings
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
