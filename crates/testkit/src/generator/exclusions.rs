//! Cases that the comparison excludes, and why.

use serde_json::Value;

/// Whether a configuration is excluded because it has two spellings of a key (`proxy` and `Proxy`).
/// Go merges them in byte order; the product reads the exact spelling (L§2.7-1). No installation
/// has both.
pub(super) fn config(tree: &Value) -> bool {
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
