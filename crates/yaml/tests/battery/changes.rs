//! Changes of values: those of an injection, and random ones.

use injectd_testkit::generator::random::Random;
use serde_json::{Map, Value, json};

use crate::values;

/// A change that an injection makes to a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Injection {
    AppendContainer,
    FirstContainer,
    InitContainers,
    Volumes,
    Annotations,
    Labels,
    All,
}

impl Injection {
    pub(crate) const EACH: [Self; 7] = [
        Self::AppendContainer,
        Self::FirstContainer,
        Self::InitContainers,
        Self::Volumes,
        Self::Annotations,
        Self::Labels,
        Self::All,
    ];

    /// Makes the change; false if the manifest has no pod.
    pub(crate) fn make(self, manifest: &mut Value) -> bool {
        if self == Self::All {
            return Self::EACH[1..6].iter().all(|injection| injection.make(manifest));
        }
        let pod = match manifest["kind"].as_str() {
            Some("Pod") => manifest,
            Some("CronJob") => &mut manifest["spec"]["jobTemplate"]["spec"]["template"],
            Some("Deployment" | "DaemonSet" | "StatefulSet" | "Job") => {
                &mut manifest["spec"]["template"]
            }
            _ => return false,
        };
        let proxy = json!({
            "name": "proxy",
            "image": "cr.l5d.io/linkerd/proxy:edge",
            "env": [{"name": "A", "value": "yes"}, {"name": "B", "value": "one\ntwo\n"}],
            "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsUser": 2102},
            "volumeMounts": [],
        });
        match self {
            Self::AppendContainer => list(pod, "containers").push(proxy),
            Self::FirstContainer => list(pod, "containers").insert(0, proxy),
            Self::InitContainers => list(pod, "initContainers").push(proxy),
            Self::Volumes => {
                list(pod, "volumes").push(json!({"name": "identity", "emptyDir": {}}));
            }
            Self::Annotations => {
                metadata(pod, "annotations").insert("linkerd.io/proxy".into(), json!("1"));
            }
            Self::Labels => {
                metadata(pod, "labels").insert("linkerd.io/control-plane-ns".into(), json!("l"));
            }
            Self::All => {}
        }
        true
    }
}

fn list<'v>(pod: &'v mut Value, key: &str) -> &'v mut Vec<Value> {
    let list = &mut pod["spec"][key];
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().expect("a list of the pod must be one")
}

fn metadata<'v>(pod: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    let map = &mut pod["metadata"][key];
    if map.is_null() {
        *map = json!({});
    }
    map.as_object_mut().expect("labels and annotations must be mappings")
}

/// A value with some random changes. With `only_additions`, collections that are not empty get more
/// entries, and nothing else changes.
pub(crate) fn changed(random: &mut Random, value: &Value, only_additions: bool) -> Value {
    let mut after = value.clone();
    for _ in 0..random.between(1, 3) {
        let mut places = Vec::new();
        collect(&after, String::new(), &mut places);
        let place = random.one_of(&places).clone();
        let node = after.pointer_mut(&place).expect("the place must be there");
        if only_additions {
            add(random, node);
        } else {
            change(random, node, place.is_empty());
        }
    }
    after
}

fn collect(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, format!("{place}/{at}"), places);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{place}/{key}"), places);
            }
        }
        _ => {}
    }
    places.push(place);
}

fn add(random: &mut Random, node: &mut Value) {
    match node {
        Value::Array(items) if !items.is_empty() => {
            let at = random.pick(&[0, items.len() / 2, items.len()]);
            items.insert(at, new(random));
        }
        Value::Object(map) if !map.is_empty() => {
            let key = random.pick(&["new", "other", "x-y", "yes", "1"]);
            map.entry(key).or_insert_with(|| new(random));
        }
        _ => {}
    }
}

fn change(random: &mut Random, node: &mut Value, is_root: bool) {
    match (&mut *node, random.below(4)) {
        (Value::Array(items), 0) if !items.is_empty() => {
            let at = random.below(items.len());
            items.remove(at);
        }
        (Value::Object(map), 0) if map.len() > 1 => {
            let at = random.below(map.len());
            let key = map.keys().nth(at).cloned().expect("the key must be there");
            map.shift_remove(&key);
        }
        (Value::Array(items), 1) => items.clear(),
        (Value::Object(map), 1) if !is_root => map.clear(),
        (Value::Array(items), _) => {
            let at = random.below(items.len() + 1);
            items.insert(at, new(random));
        }
        (Value::Object(map), _) => {
            map.insert("new".into(), new(random));
        }
        (node, _) => *node = new(random),
    }
}

fn new(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"name": "new", "list": [{"a": [1]}], "text": "one\n  two\n"}),
        1 => json!([1, {"b": null}]),
        2 => json!(values::string(random)),
        _ => random.one_of(&[json!(null), json!({}), json!([]), json!(8080), json!("on")]).clone(),
    }
}
