//! Pods compared in meaning: the order of volumes and mounts is no part of it, nor is the hash of a template,
//! which every change of the template changes.

use injectd_templates_tree::mark::ANNOTATION;
use serde_json::{Map, Value};

/// Differences that are named.
// A pod without its sidecar differs in each field; the first ones show it.
const SHOWN: usize = 10;
/// Characters of a value that are shown.
const WIDTH: usize = 120;
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Where two pods differ in meaning.
pub(super) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut all = Vec::new();
    compare("", Some(&meaning(expected)), Some(&meaning(found)), &mut all);
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    all.extend((more > 0).then(|| format!("and {more} more")));
    all
}

/// A pod without what is no part of a result.
fn meaning(pod: &Value) -> Value {
    let mut pod = without_hashes(pod);
    if let Some(spec) = pod.get_mut("spec") {
        spec.get_mut("volumes").map(sort);
        for list in LISTS {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                container.get_mut("volumeMounts").map(sort);
            }
        }
    }
    pod
}

fn sort(list: &mut Value) {
    if let Value::Array(items) = list {
        let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
        items.sort_by_cached_key(|item| [text(item, "mountPath"), text(item, "name")]);
    }
}

/// A pod whose mark has no hashes.
pub(super) fn without_hashes(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let annotations = pod.pointer_mut("/metadata/annotations");
    if let Some(Value::String(mark)) = annotations.and_then(|all| all.get_mut(ANNOTATION))
        && let Ok(mut entries) = serde_json::from_str::<Map<String, Value>>(mark)
    {
        for entry in entries.values_mut().filter_map(Value::as_object_mut) {
            // A hash changes with each edit of the template, even one that changes no pod: all
            // expected files would have to be written again.
            entry.retain(|key, _| key != "hash");
        }
        let mut entries = Value::Object(entries);
        entries.sort_all_objects();
        *mark = entries.to_string();
    }
    pod
}

fn compare(path: &str, expected: Option<&Value>, found: Option<&Value>, all: &mut Vec<String>) {
    match (expected, found) {
        _ if expected == found => {}
        (Some(Value::Object(expected)), Some(Value::Object(found))) => {
            let added = found.keys().filter(|key| !expected.contains_key(*key));
            for key in expected.keys().chain(added) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, expected.get(key), found.get(key), all);
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(found))) => {
            for index in 0..expected.len().max(found.len()) {
                let path = format!("{path}[{index}]");
                compare(&path, expected.get(index), found.get(index), all);
            }
        }
        _ => all.push(format!("{path}: expected {}, found {}", shown(expected), shown(found))),
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_volumes_and_mounts_and_hashes_are_no_part_of_a_result() {
        let pod = |volumes: [&str; 2], mounts: [&str; 2], hash: &str| {
            let named = |name: &str| json!({"name": name});
            let mounts = mounts.map(|path| json!({"name": "a", "mountPath": path}));
            let mark = json!({"agent": {"added": [], "hash": hash}}).to_string();
            json!({
                "metadata": {"annotations": {ANNOTATION: mark}},
                "spec": {
                    "containers": [{"name": "app", "volumeMounts": mounts}],
                    "volumes": volumes.map(named),
                },
            })
        };
        let [one, other] = [pod(["a", "b"], ["/a", "/b"], "1"), pod(["b", "a"], ["/b", "/a"], "2")];
        assert_eq!(differences(&one, &other), [""; 0]);
        let third = pod(["a", "c"], ["/a", "/b"], "1");
        let expected = ["spec.volumes[1].name: expected \"b\", found \"c\""];
        assert_eq!(differences(&one, &third), expected);
    }
}
