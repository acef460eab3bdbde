//! Istio's `ConfigMaps`, and the webhook configurations that its charts make.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::expect::{Outcome, failed};

const CONFIG: &str = include_str!("../../../e2e/istio/config.yaml");
const VALUES: &str = include_str!("../../testkit/src/istio/values.json");
const MESH: &str = include_str!("../../testkit/src/istio/mesh.yaml");
/// The tag in [`VALUES`].
const TAG: &str = "1.30.3";

/// The configuration of one revision: the keys of its two `ConfigMaps`.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The name; `default` is that of the revision without one.
    pub name: String,
    /// `config` of `istio-sidecar-injector`.
    pub config: String,
    /// `values` of `istio-sidecar-injector`.
    pub values: String,
    /// `mesh` of `istio`.
    pub mesh: String,
}

impl Revision {
    /// A small configuration, whose pods show the injector as an annotation.
    #[must_use]
    pub fn small(name: &str, tag: &str, injector: &str) -> Self {
        Self {
            name: name.to_owned(),
            config: CONFIG.replace("INJECTOR", injector),
            values: VALUES.replace(TAG, tag),
            mesh: MESH.to_owned(),
        }
    }

    /// The default configuration of a recorded release, with the release as the tag of images.
    ///
    /// # Errors
    ///
    /// Names the file that cannot be read.
    pub fn recorded(corpus: &Path, name: &str, release: &str) -> Outcome<Self> {
        let folder = corpus.join("istio").join(release);
        let read = |file: &str| {
            let file = folder.join(file);
            fs::read_to_string(&file)
                .map_err(|error| failed(format!("cannot read {}: {error}", file.display())))
        };
        let mut values: Value = serde_json::from_str(&read("values-default.json")?)?;
        values["global"]["tag"] = json!(release);
        Ok(Self {
            name: name.to_owned(),
            config: read("config-default.yaml")?,
            values: values.to_string(),
            mesh: read("mesh-default.yaml")?,
        })
    }

    /// `-REVISION`; nothing for the default one.
    #[must_use]
    pub fn suffix(&self) -> String {
        if self.name == "default" { String::new() } else { format!("-{}", self.name) }
    }

    /// Both `ConfigMaps`, for any namespace.
    #[must_use]
    pub fn config_maps(&self) -> [Value; 2] {
        let suffix = self.suffix();
        let config_map = |name: &str, data: Value| {
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": format!("{name}{suffix}"),
                    "labels": {"istio.io/rev": self.name},
                },
                "data": data,
            })
        };
        [
            config_map(
                "istio-sidecar-injector",
                json!({"config": self.config, "values": self.values}),
            ),
            config_map("istio", json!({"mesh": self.mesh})),
        ]
    }

    /// The image of the proxy that the values name.
    ///
    /// # Errors
    ///
    /// Fails if the values are no JSON.
    pub fn image(&self) -> Outcome<String> {
        let values: Value = serde_json::from_str(&self.values)?;
        let text = |key: &str| values["global"][key].as_str().unwrap_or_default().to_owned();
        Ok(format!("{}/proxyv2:{}", text("hub"), text("tag")))
    }
}

/// A webhook configuration of `deploy/istio-webhook/webhooks`, as `take-over.sh print` has it.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn printed(file: &str, words: &[(&str, &str)]) -> Outcome<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/istio-webhook/webhooks");
    let mut text = fs::read_to_string(folder.join(file))?;
    for (word, value) in words {
        text = text.replace(&format!("${{{word}}}"), value);
    }
    Ok(serde_saphyr::from_str(&text.replace("${SERVICE}", "injectd"))?)
}

/// The four webhooks that the chart of a release makes, for the revision and the port of istiod.
///
/// # Errors
///
/// Fails if there is no file of the release.
pub fn of_chart(release: &str, revision: &str, port: u16) -> Outcome<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/istio");
    let text = fs::read_to_string(folder.join(format!("webhooks-{release}.yaml")))?;
    let mut object: Value = serde_saphyr::from_str(&text)?;
    let suffix = if revision == "default" { String::new() } else { format!("-{revision}") };
    object["metadata"]["name"] = json!(format!("istio-sidecar-injector{suffix}"));
    object["metadata"]["labels"]["istio.io/rev"] = json!(revision);
    let webhooks = object["webhooks"].as_array_mut().ok_or_else(|| failed("no webhooks"))?;
    if revision != "default" {
        webhooks.truncate(2);
    }
    for webhook in webhooks {
        let service = &mut webhook["clientConfig"]["service"];
        service["name"] = json!(format!("istiod{suffix}"));
        service["port"] = json!(port);
        let text = webhook.to_string().replace(r#"["default"]"#, &format!("[{revision:?}]"));
        *webhook = serde_json::from_str(&text)?;
    }
    Ok(object)
}
