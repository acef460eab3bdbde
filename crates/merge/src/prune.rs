//! Fields that a Pod does not have, and quantities that are too large for one.

use injectd_gocompat::quantity;
use serde_json::Value;

use crate::{
    MAX_DEPTH,
    apply::is_directive,
    schema::{Kind, POD},
};

/// Removes the fields of a patch that a Pod does not have. Directives stay, and keys that differ
/// from a field in case only. A quantity above the cap of Kubernetes becomes the cap, as where
/// Kubernetes reads one.
pub fn prune(patch: &mut Value) {
    prune_value(patch, &POD, 0);
}

fn prune_value(value: &mut Value, kind: &Kind, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match (kind, value) {
        (Kind::Struct(fields), Value::Object(map)) => {
            let fields = fields.get();
            map.retain(|key, value| {
                let field = fields.field_ignoring_case(key);
                if let Some(field) = field {
                    prune_value(value, &field.kind, depth + 1);
                }
                field.is_some() || is_directive(key)
            });
        }
        (Kind::Map(_, inner), Value::Object(map)) => {
            for value in map.values_mut() {
                prune_value(value, inner, depth + 1);
            }
        }
        (Kind::List(inner), Value::Array(list)) => {
            for value in list {
                prune_value(value, inner, depth + 1);
            }
        }
        (Kind::Quantity, Value::String(text)) => cap(text),
        _ => {}
    }
}

/// Kubernetes: `resource.ParseQuantity` caps only quantities with a binary suffix.
fn cap(text: &mut String) {
    const CAPPED: [&str; 2] = ["9223372036854775807", "-9223372036854775807"];
    if !text.trim_end().ends_with('i') {
        return;
    }
    let canonical = quantity::parse(text.trim()).map(|found| found.canonical());
    if let Some(capped) = canonical.filter(|canonical| CAPPED.contains(&canonical.as_str())) {
        *text = capped;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quantity_above_the_cap_is_the_cap() {
        let limits = |limits| json!({"spec": {"containers": [{"resources": {"limits": limits}}]}});
        let mut patch = limits(json!({"a": "99999999999999999999Gi", "b": " -8Ei ", "c": "7Ei",
            "d": "99999999999999999999", "e": "Gi", "f": 5}));
        prune(&mut patch);
        let cap = "9223372036854775807";
        let expected = json!({"a": cap, "b": format!("-{cap}"), "c": "7Ei",
            "d": "99999999999999999999", "e": "Gi", "f": 5});
        assert_eq!(patch, limits(expected));
    }

    #[test]
    fn only_fields_of_a_pod_stay() {
        let mut patch = json!({
            "labels": {"a": "b"},
            "metadata": {"labels": {"any": "key"}, "extra": 1},
            "spec": {
                "$retainKeys": ["containers"],
                "Containers": [{"name": "a", "$patch": "merge", "no": 1, "env": [{"name": "A", "x": 1}]}],
            },
        });
        prune(&mut patch);
        let expected = json!({
            "metadata": {"labels": {"any": "key"}},
            "spec": {
                "$retainKeys": ["containers"],
                "Containers": [{"name": "a", "$patch": "merge", "env": [{"name": "A"}]}],
            },
        });
        assert_eq!(patch, expected);
    }
}
