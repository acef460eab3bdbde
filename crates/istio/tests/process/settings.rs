//! The settings of a case.

use std::{collections::BTreeMap, fs, path::Path};

use injectd_istio::{process::Facts, release::Release};
use serde_json::Value;

use super::case::Case;

pub(crate) struct Settings {
    release: Release,
    sets: BTreeMap<String, Set>,
}

struct Set {
    revision: String,
    openshift: bool,
    mesh: Value,
    values: Value,
    injected_annotations: BTreeMap<String, String>,
}

/// The facts about a pod, and what they refer to.
pub(crate) struct Owned<'a> {
    release: Release,
    set: &'a Set,
    hold: bool,
    tproxy: bool,
    environment: BTreeMap<String, String>,
}

fn yaml(text: &str) -> Value {
    injectd_yaml::parse(text, injectd_yaml::Options::default()).unwrap_or_default()
}

impl Settings {
    pub(crate) fn load(directory: &Path, release: Release) -> Self {
        let read = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            fs::read_to_string(directory.join(name)).unwrap_or_default()
        };
        let sets: Value =
            serde_json::from_str(&fs::read_to_string(directory.join("configs.json")).unwrap())
                .unwrap();
        let set = |(name, set): (&String, &Value)| {
            let config = read(&set["config"]);
            // Most of a configuration is templates.
            let from = config.find("\ninjectedAnnotations:").unwrap_or(config.len());
            let end = config[from..].find("\ntemplates:").map_or(config.len(), |end| from + end);
            let annotations = yaml(&config[from..end])["injectedAnnotations"].clone();
            let set = Set {
                revision: set["revision"].as_str().unwrap_or_default().to_owned(),
                openshift: set["env"]["PLATFORM"] == "openshift",
                mesh: yaml(&read(&set["mesh"])),
                values: yaml(&read(&set["values"])),
                injected_annotations: serde_json::from_value(annotations).unwrap_or_default(),
            };
            (name.clone(), set)
        };
        Self { release, sets: sets.as_object().unwrap().iter().map(set).collect() }
    }

    /// Whether ids of the user's proxy may be dropped before the templates.
    pub(crate) fn drops_ids(&self, case: &Case) -> bool {
        self.release >= Release::new(23, 1) && self.sets[&case.config].openshift
    }

    pub(crate) fn of(&self, case: &Case) -> Owned<'_> {
        let set = &self.sets[&case.config];
        let config = yaml(case.annotation("proxy.istio.io/config").unwrap_or_default());
        let default_config = &set.mesh["defaultConfig"];
        let layered = |key: &str| {
            match &config[key] {
                Value::Null => &default_config[key],
                found => found,
            }
            .clone()
        };
        let hold = layered("holdApplicationUntilProxyStarts") == true
            || set.values["global"]["proxy"]["holdApplicationUntilProxyStarts"] == true;
        let tproxy = layered("interceptionMode") == "TPROXY";
        let environment = environment(case, &set.values["global"]);
        Owned { release: self.release, set, hold, tproxy, environment }
    }
}

impl Owned<'_> {
    pub(crate) fn facts(&self) -> Facts<'_> {
        let mesh = &self.set.mesh;
        let status_port = mesh["defaultConfig"]["statusPort"].as_i64().unwrap_or(15020);
        Facts {
            release: self.release,
            status_port: status_port.try_into().unwrap(),
            tproxy: self.tproxy,
            hold: self.hold,
            prometheus_merge: mesh["enablePrometheusMerge"] != false,
            rewrite_probes: self.set.values["sidecarInjectorWebhook"]["rewriteAppHTTPProbe"]
                == true,
            revision: &self.set.revision,
            environment: &self.environment,
            injected_annotations: &self.set.injected_annotations,
        }
    }
}

/// The variables of the path, the values and the label.
fn environment(case: &Case, values: &Value) -> BTreeMap<String, String> {
    let mut found = of_path(&case.path);
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let mut set = |key: &str, asked: Option<String>, default: Option<String>| {
        let asked = asked.or_else(|| found.get(key).filter(|text| !text.is_empty()).cloned());
        if let Some(value) = asked.or(default).filter(|value| !value.is_empty()) {
            found.insert(key.to_owned(), value);
        }
    };
    let label = &case.object["metadata"]["labels"]["topology.istio.io/network"];
    set("ISTIO_META_CLUSTER_ID", None, text(&values["multiCluster"]["clusterName"]));
    set("ISTIO_META_NETWORK", label.as_str().map(str::to_owned), text(&values["network"]));
    found
}

fn of_path(path: &str) -> BTreeMap<String, String> {
    let path = path.split('?').next().unwrap_or_default();
    let path = path
        .split_once("://")
        .map_or(path, |(_, rest)| rest.find('/').map_or("", |at| &rest[at..]));
    let path = decoded(path);
    let path = path.strip_suffix('/').unwrap_or(&path);
    let Some(rest) = path.splitn(3, '/').nth(2) else { return BTreeMap::new() };
    let key = |key: &str| match key {
        "cluster" => "ISTIO_META_CLUSTER_ID".to_owned(),
        "net" => "ISTIO_META_NETWORK".to_owned(),
        other => other.to_uppercase(),
    };
    if let Some(pairs) = rest.strip_prefix(":ENV:") {
        let pairs = pairs.split(":ENV:").filter_map(|pair| pair.split_once('='));
        let pairs = pairs.filter(|(key, _)| !key.is_empty());
        return pairs.map(|(name, value)| (key(name), value.to_owned())).collect();
    }
    let parts: Vec<_> = rest.split('/').collect();
    let pairs = parts.chunks_exact(2);
    pairs.map(|pair| (key(pair[0]), pair[1].replace("--slash--", "/"))).collect()
}

fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%');
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
