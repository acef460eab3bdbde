//! A pod in a configuration, reviewed by several releases.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::FutureExt as _;
use injectd_core::{
    linkerd::{
        snapshot::{Config, Snapshot},
        values::DEFAULT_VALUES,
    },
    standalone::Standalone,
};
use injectd_testkit::Injector;
use serde_json::{Map, Value, json};

/// The expected value where there must be no value; null is a value.
pub(crate) const ABSENT: &str = "(absent)";

/// Values that only older releases read.
const OLD_VALUES: &str = "
proxyInit:
  image: {name: cr.l5d.io/linkerd/proxy-init, version: v2.4.3, pullPolicy: ''}
  resources: {cpu: {limit: 100m, request: 100m}, memory: {limit: 20Mi, request: 20Mi}}
networkValidator: {enableSecurityContext: true}
";

type Texts<'a> = &'a [(&'a str, &'a str)];

#[derive(Clone, Copy, Default)]
pub(crate) struct Case<'a> {
    /// YAML, merged into the built-in values; null removes a key.
    pub(crate) values: &'a str,
    /// Annotations of the pod.
    pub(crate) pod: Texts<'a>,
    /// Annotations of its namespace.
    pub(crate) namespace: Texts<'a>,
    /// Labels of the pod.
    pub(crate) labels: Texts<'a>,
    /// YAML of the pod's spec; by default one container without ports.
    pub(crate) spec: &'a str,
}

/// What each release answered, as trees:
/// - `verdict`, `reasons`, `warned` (keys of annotations)
/// - `annotations`, `volumes` by name
/// - `proxy`, `init`, `debug`, `network-validator`: the container, with its `path`, `flags` (each
///   argument with the next), `mounts` by name, `env` by name, the previous variable of each
///   variable (`behind`), and the `last` one
pub(crate) struct Answers(Vec<(&'static str, Value)>);

impl Case<'_> {
    /// Reviews the pod in each release: an edge release, unless the text names another channel.
    pub(crate) fn across(self, releases: &[&'static str]) -> Answers {
        Answers(releases.iter().map(|release| (*release, self.review(release))).collect())
    }

    fn review(self, release: &str) -> Value {
        let injector = self.injector(release);
        let mut annotations = map(self.pod);
        annotations.entry("linkerd.io/inject").or_insert_with(|| "enabled".into());
        let spec = if self.spec.is_empty() { "containers: [{name: web}]" } else { self.spec };
        let pod = json!({"kind": "Pod", "spec": yaml(spec), "metadata": {"name": "web",
            "namespace": "shop", "annotations": annotations, "labels": map(self.labels)}});
        let request = json!({"uid": "u", "namespace": "shop", "object": pod});
        let body = json!({ "request": request }).to_string().into_bytes();
        let answer = injector.review(&body).now_or_never().expect("must not wait");
        let answer = answer.expect("a review must be answered");
        let answer: Value = serde_json::from_slice(&answer.body).expect("must be JSON");
        view(&answer["response"])
    }

    /// An injector on the values of the case in a release.
    pub(crate) fn injector(self, release: &str) -> Injector {
        let mut values = yaml(DEFAULT_VALUES);
        merge(&mut values, yaml(OLD_VALUES));
        if !self.values.is_empty() {
            merge(&mut values, yaml(self.values));
        }
        let is_edge = release.starts_with(|c: char| c.is_ascii_digit());
        let channel = if is_edge { "edge-" } else { "" };
        values["linkerdVersion"] = format!("{channel}{release}").into();
        let config = Config {
            values: &values.to_string(),
            trust_roots: b"roots",
            control_plane_namespace: "linkerd",
            fallback_release: None,
        };
        let snapshot = Snapshot::new(config, 1).expect("the values must be readable");
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Injector::new(snapshot, Standalone::annotated(self.namespace.iter().map(owned)))
    }
}

impl Answers {
    /// Checks the value at a JSON pointer in each release: a list with one value per release, or
    /// one value for all. For pods that are not injected, only the verdict can be checked.
    pub(crate) fn hold(&self, pointer: &str, expected: Value) -> &Self {
        let expected = match expected {
            Value::Array(each) => each,
            all => vec![all; self.0.len()],
        };
        assert_eq!(expected.len(), self.0.len(), "{pointer}: one expectation for each release");
        for ((release, view), expected) in self.0.iter().zip(expected) {
            let is_of_patch = !["/verdict", "/reasons", "/warned"].contains(&pointer);
            let found = match view["verdict"].as_str() {
                Some(verdict) if is_of_patch && verdict != "injected" => json!(verdict),
                _ => view.pointer(pointer).cloned().unwrap_or_else(|| json!(ABSENT)),
            };
            assert_eq!(found, expected, "{pointer} in {release}");
        }
        self
    }

    /// Checks the value of a variable of the proxy in each release.
    pub(crate) fn env(&self, name: &str, expected: Value) -> &Self {
        self.hold(&format!("/proxy/env/{name}"), expected)
    }

    /// Checks the proxy's variables with this prefix, in order: for each release a list of pairs of
    /// the rest of the name and the value.
    pub(crate) fn family(&self, prefix: &str, expected: Value) -> &Self {
        let families = self.0.iter().map(|(release, view)| {
            let env = view["proxy"]["env"].as_object().into_iter().flatten();
            let family = env.filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value)));
            (*release, json!({"verdict": view["verdict"], "family": family.collect::<Vec<_>>()}))
        });
        Self(families.collect()).hold("/family", expected);
        self
    }

    /// Checks the variable before a variable of the proxy in each release.
    pub(crate) fn behind(&self, name: &str, expected: Value) -> &Self {
        self.hold(&format!("/proxy/behind/{name}"), expected)
    }
}

fn view(response: &Value) -> Value {
    let mut view = json!({});
    for (key, value) in response["auditAnnotations"].as_object().into_iter().flatten() {
        view[key] = value.clone();
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warned = warnings.map(|warning| warning.as_str()?.split_once(": ").map(|(key, _)| key));
    view["warned"] = warned.collect();
    if let Some(patch) = response["patch"].as_str() {
        let patch = STANDARD.decode(patch).expect("a patch must be base64");
        let patch: Vec<Value> = serde_json::from_slice(&patch).expect("a patch must be a list");
        for operation in &patch {
            add(&mut view, operation);
        }
    }
    view
}

fn add(view: &mut Value, operation: &Value) {
    let path = operation["path"].as_str().expect("an operation must have a path");
    let value = &operation["value"];
    let name = value["name"].as_str().unwrap_or_default();
    if let Some(key) = path.strip_prefix("/metadata/annotations/") {
        view["annotations"][key.replace("~1", "/")] = value.clone();
    } else if path.starts_with("/spec/volumes/") {
        view["volumes"][name] = value.clone();
    } else if path.starts_with("/spec/containers/") || path.starts_with("/spec/initContainers/") {
        let name = name.strip_prefix("linkerd-").expect("a container must be Linkerd's");
        view[name] = container(path, value);
    }
}

fn container(path: &str, value: &Value) -> Value {
    let mut view = value.clone();
    view["path"] = path.into();
    if let Some(args) = value["args"].as_array() {
        let pairs = args.windows(2).filter_map(|pair| Some((pair[0].as_str()?, pair[1].clone())));
        view["flags"] = pairs.collect();
    }
    for mount in value["volumeMounts"].as_array().into_iter().flatten() {
        view["mounts"][mount["name"].as_str().unwrap_or_default()] = mount["mountPath"].clone();
    }
    if let Some(env) = value["env"].as_array() {
        let name = |var: &Value| var["name"].as_str().unwrap_or_default().to_owned();
        let text = |var: &Value| var.get("value").unwrap_or(&var["valueFrom"]).clone();
        // Maps keep their order.
        view["env"] = env.iter().map(|var| (name(var), text(var))).collect();
        view["behind"] = env.windows(2).map(|pair| (name(&pair[1]), name(&pair[0]))).collect();
        view["last"] = env.last().map(name).into();
    }
    view
}

fn map(entries: Texts<'_>) -> Map<String, Value> {
    entries.iter().map(|&(key, value)| (key.to_owned(), value.into())).collect()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("must be YAML")
}

/// Merges values as Helm does: merges maps, removes on null, replaces everything else.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                if value.is_null() {
                    into.remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, from) => *into = from,
    }
}
