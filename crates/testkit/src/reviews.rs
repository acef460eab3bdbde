//! Reviews of the golden pods, by size.

use std::{fs, path::Path};

use serde_json::Value;

/// The review that the load tests send: the golden pod of 12 KB.
pub const TYPICAL: &str = include_str!("../../../loadtest/review-12k.json");
/// The golden pods, by the size of their reviews.
pub const SIZES: [&str; 3] = ["3k", "12k", "68k"];

/// A review of a golden pod in the envelope of [`TYPICAL`], as an API server sends it.
pub fn review_of(size: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/golden");
    let object = fs::read_to_string(folder.join(format!("pod-of-{size}/object.yaml")));
    let object: Value = serde_saphyr::from_str(&object.expect("a golden case")).expect("YAML");
    let (head, rest) = TYPICAL.split_once(r#""object":"#).expect("a review has an object");
    let (_, tail) = rest.split_once(r#","oldObject""#).expect("a review has an oldObject");
    let object = object.to_string();
    let escaped = object.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    format!(r#"{head}"object":{escaped},"oldObject"{tail}"#).into_bytes()
}
