//! Reviews of tests, benchmarks and load tests: the golden pods by size, and others made of the typical
//! one for four verdicts. They are the same every time, compact and escaped as an API server sends them.
//!
//! Not for random reviews ([`crate::generator`]), nor for those of many workloads ([`crate::workloads`]).

use std::{fs, path::Path};

use serde_json::{Value, json};

pub(crate) mod managed;
mod mixes;

pub use mixes::{ISTIO_MIX, MIX, Sent, TEMPLATES_MIX};

/// The review that the load tests send: the golden pod of 12 KB.
pub const TYPICAL: &str = include_str!("../../../loadtest/review-12k.json");
/// The golden pods, by the size of their reviews.
pub const SIZES: [&str; 3] = ["3k", "12k", "68k"];
/// Linkerd's overrides come before this annotation of [`TYPICAL`], because Go sorts keys.
const AFTER_OVERRIDES: &str = r#""fulfilment.example/change":"#;
const MANY_CONTAINERS: usize = 20;

/// [`TYPICAL`] as a tree.
pub fn typical() -> Value {
    serde_json::from_str(TYPICAL).expect("the review must be JSON")
}

/// JSON as Go's encoder writes it: compact, with the special characters of HTML escaped.
pub fn encode(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A review of a golden pod in the envelope of [`TYPICAL`].
pub fn review_of(size: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/golden");
    let object = fs::read_to_string(folder.join(format!("pod-of-{size}/object.yaml")));
    let object: Value = serde_saphyr::from_str(&object.expect("a golden case")).expect("YAML");
    let (head, rest) = TYPICAL.split_once(r#""object":"#).expect("a review has an object");
    let (_, tail) = rest.split_once(r#","oldObject""#).expect("a review has an oldObject");
    format!(r#"{head}"object":{},"oldObject"{tail}"#, encode(&object)).into_bytes()
}

/// [`TYPICAL`] with this annotation, its keys sorted.
pub fn annotated_with(key: &str, value: &str) -> Vec<u8> {
    let mut review = typical();
    let annotations = review["request"]["object"]["metadata"]["annotations"].as_object_mut();
    let annotations = annotations.expect("the typical pod must have annotations");
    annotations.insert(key.to_owned(), value.into());
    // The API server writes maps with sorted keys, as Go does.
    annotations.sort_keys();
    encode(&review).into_bytes()
}

/// [`TYPICAL`] with one more annotation, in the place of Linkerd's overrides. It costs less than
/// [`annotated_with`], for clients that make every review anew.
pub fn with_override(key: &str, value: &str) -> Vec<u8> {
    let (head, tail) = TYPICAL.split_once(AFTER_OVERRIDES).expect("an annotation of the review");
    let [key, value] = [key, value].map(Value::from);
    format!("{head}{key}:{value},{AFTER_OVERRIDES}{tail}").into_bytes()
}

/// A pod of twenty containers, four of five of them the main one: about 68 KB.
pub fn of_many_containers() -> Vec<u8> {
    let mut review = typical();
    let pod = &mut review["request"]["object"];
    let containers = pod["spec"]["containers"].as_array_mut().expect("a pod has containers");
    for index in 0..MANY_CONTAINERS - containers.len() {
        let mut another = containers[index % 5 / 4].clone();
        another["name"] = format!("berth-shard-{index:02}").into();
        containers.push(another);
    }
    managed::set(pod);
    encode(&review).into_bytes()
}

/// A Service that gets the annotation of its opaque port.
fn service() -> Vec<u8> {
    let mut review = typical();
    let request = &mut review["request"];
    for field in ["kind", "requestKind"] {
        request[field] = json!({"group": "", "version": "v1", "kind": "Service"});
    }
    for field in ["resource", "requestResource"] {
        request[field] = json!({"group": "", "version": "v1", "resource": "services"});
    }
    request["name"] = "berth-database".into();
    request["object"] = json!({
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {
            "name": "berth-database",
            "namespace": request["namespace"],
            "creationTimestamp": null,
            "labels": {"app.kubernetes.io/name": "berth"},
        },
        "spec": {
            "ports": [{"name": "mysql", "protocol": "TCP", "port": 3306, "targetPort": 3306}],
            "selector": {"app.kubernetes.io/name": "berth-database"},
            "type": "ClusterIP",
            "sessionAffinity": "None",
        },
        "status": {"loadBalancer": {}},
    });
    encode(&review).into_bytes()
}
