//! What is left out of the comparison, and why.

use serde_json::Value;

/// Whether a configuration is left out: one with two spellings of a key (`proxy` and `Proxy`). Go
/// merges them in the order of their bytes, the product takes the exact one (L§2.7-1); no
/// installation writes both.
pub(crate) fn config(tree: &Value) -> bool {
    match tree {
        Value::Object(fields) => {
            let lower = fields.keys().map(|key| key.to_ascii_lowercase());
            let distinct = lower.collect::<std::collections::BTreeSet<_>>();
            distinct.len() != fields.len() || fields.values().any(config)
        }
        Value::Array(items) => items.iter().any(config),
        _ => false,
    }
}
