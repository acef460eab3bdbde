//! Any JSON as a pod and, on the next line, as a patch: an error, or a merge of bounded size.

#![no_main]
#![expect(clippy::disallowed_types, reason = "pods are trees")]

use injectd_merge::{check, check_pod, normal, overlay, prune, strategic_merge};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|text: &str| {
    let Some((pod, patch)) = text.split_once('\n') else { return };
    let (Ok(pod), Ok(patch)) = (serde_json::from_str(pod), serde_json::from_str(patch)) else {
        return;
    };
    drop(check_pod(&pod));
    drop(check(&patch));
    let mut unchanged: Value = pod.clone();
    if pod.is_object() && overlay(&mut unchanged, Value::Object(Map::new())).is_ok() {
        assert_eq!(unchanged, pod, "an empty patch must change nothing");
    }
    // A merged element may get the fields of both, and an order that names each.
    let most = 2 * (pod.to_string().len() + patch.to_string().len());
    drop(strategic_merge(&mut pod.clone(), patch.clone()));
    let mut pruned = patch.clone();
    prune(&mut pruned);
    for patch in [patch, pruned] {
        let mut merged = pod.clone();
        if overlay(&mut merged, patch).is_ok() {
            assert!(merged.to_string().len() <= most, "a merge must not multiply");
            let normal_pod = normal(&merged);
            assert_eq!(normal(&normal_pod), normal_pod, "the normal form must be stable");
        }
    }
});
