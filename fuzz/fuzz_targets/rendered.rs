//! Any text as the output of a template: it is an error, or it is merged into a pod.

#![no_main]
#![expect(clippy::disallowed_types, reason = "pods are trees")]

use std::sync::LazyLock;

use injectd_merge::{check, check_pod, normal, overlay, prune};
use injectd_yaml::{MAX_NESTING, Options, documents, parse, write};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Bytes that a value may take for each byte of its text, if there are no aliases in it.
const GROWTH: usize = 16;

static POD: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../seeds/rendered/pod.yaml");
    parse(text, Options::default()).expect("the pod must be YAML")
});

fuzz_target!(|text: &str| {
    drop(documents(text, Options::default()));
    let Ok(value) = parse(text, Options::default()) else { return };
    assert!(depth(&value) <= MAX_NESTING);
    let json = value.to_string();
    if !text.contains('*') {
        assert!(json.len() <= GROWTH * text.len() + GROWTH, "{} bytes", json.len());
    }
    let again = parse(&write(&value), Options::default());
    assert_eq!(again.as_ref(), Ok(&value), "what is written must read as the same value");
    merge(value);
});

fn merge(mut patch: Value) {
    if !patch.is_object() {
        return;
    }
    prune(&mut patch);
    let pruned = patch.clone();
    prune(&mut patch);
    assert_eq!(patch, pruned, "pruning twice must be pruning once");
    drop(check(&patch));
    let most = patch.to_string().len() + POD.to_string().len();
    let mut pod = POD.clone();
    if overlay(&mut pod, patch).is_ok() {
        assert!(pod.to_string().len() <= 2 * most, "a merge must not multiply");
        drop(check_pod(&pod));
        let normal_pod = normal(&pod);
        assert_eq!(normal(&normal_pod), normal_pod, "the normal form must be stable");
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
