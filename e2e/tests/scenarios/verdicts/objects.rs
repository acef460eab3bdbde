//! The objects of a cell: the pod, and the policies of its namespace.

use injectd_harness::{
    expect::{Outcome, failed},
    objects,
};
use serde_json::{Value, json};

use super::{
    kinds::KINDS,
    table::{
        Cell, Changes, LIFE, LIMIT_RANGE, LIMITS, OTHERS, POD_LEVEL, QUOTA, REQUESTS, SECURITY,
        SIDECAR,
    },
};

/// The pod of a cell.
pub(super) fn pod(name: &str, cell: &Cell) -> Outcome<Value> {
    let mut main = json!({"name": "main", "image": "example.com/main:1",
        "ports": [{"containerPort": 8080}], "resources": {}});
    set(&mut main, "/resources/limits", LIMITS[cell.limits].2)?;
    set(&mut main, "/resources/requests", REQUESTS[cell.requests].2)?;
    let mut spec = json!({"containers": [main], "securityContext": secure()});
    set(&mut spec, "/resources", POD_LEVEL[cell.pod_level].2)?;
    let (is_init, other) = OTHERS[cell.others].2;
    if !other.is_empty() {
        let mut other: Value = serde_json::from_str(other)?;
        other["name"] = json!("other");
        other["image"] = json!("example.com/other:1");
        match &mut spec["containers"] {
            Value::Array(containers) if !is_init => containers.push(other),
            _ => spec["initContainers"] = json!([other]),
        }
    }
    let metadata = json!({"name": name, "namespace": cell.namespace()});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    change(&mut pod, COMPLIANT)?;
    change(&mut pod, KINDS[cell.kind].2)?;
    change(&mut pod, LIFE[cell.life].2)?;
    let annotations: Value = serde_json::from_str(SIDECAR[cell.sidecar].2)?;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        pod["metadata"]["annotations"][key] = value.clone();
    }
    Ok(pod)
}

/// What the level `restricted` asks of the pod.
fn secure() -> Value {
    json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
}

/// What the level `restricted` asks of each container.
const COMPLIANT: Changes = &[(
    "*/securityContext",
    r#"{"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}"#,
)];

fn change(pod: &mut Value, changes: Changes) -> Outcome {
    for (pointer, json) in changes {
        match pointer.strip_prefix('*') {
            None => set(pod, pointer, json)?,
            Some(rest) => {
                let lists = ["containers", "initContainers"];
                let containers = lists.map(|list| pod["spec"].get(list).map_or(0, count));
                for (list, count) in lists.into_iter().zip(containers) {
                    for index in 0..count {
                        set(pod, &format!("/spec/{list}/{index}{rest}"), json)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn count(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

/// Sets a field, or removes it if the text is empty.
fn set(object: &mut Value, pointer: &str, json: &str) -> Outcome {
    let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
    let parent = object.pointer_mut(parent);
    let parent = parent.ok_or_else(|| failed(format!("no parent of {pointer}")))?;
    if json.is_empty() {
        if let Some(fields) = parent.as_object_mut() {
            fields.remove(key);
        }
        return Ok(());
    }
    parent[key] = serde_json::from_str(json)?;
    Ok(())
}

/// The namespace of a cell.
pub(super) fn namespace(cell: &Cell) -> Value {
    let (level, version) = SECURITY[cell.security].2;
    let mut labels = json!({});
    for (key, value) in [("enforce", level), ("enforce-version", version)] {
        if !value.is_empty() {
            labels[format!("pod-security.kubernetes.io/{key}")] = json!(value);
        }
    }
    objects::namespace(&cell.namespace(), &json!({}), &labels)
}

/// The `LimitRange`s and `ResourceQuota`s of a cell's namespace.
pub(super) fn policies(cell: &Cell) -> Outcome<Vec<Value>> {
    let mut policies = Vec::new();
    for (index, limits) in LIMIT_RANGE[cell.limit_range].2.iter().enumerate() {
        let limits: Value = serde_json::from_str(limits)?;
        policies.push(policy("LimitRange", index, cell, &json!({"limits": limits})));
    }
    for (index, spec) in QUOTA[cell.quota].2.iter().enumerate() {
        policies.push(policy("ResourceQuota", index, cell, &serde_json::from_str(spec)?));
    }
    Ok(policies)
}

fn policy(kind: &str, index: usize, cell: &Cell, spec: &Value) -> Value {
    let name = format!("{}-{index}", kind.to_lowercase());
    let metadata = json!({"name": name, "namespace": cell.namespace()});
    json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// Whether the quota of a cell counts a pod.
pub(super) fn has_pod(cell: &Cell) -> bool {
    QUOTA[cell.quota].0 == "used"
}

/// The pod that the quota `used` counts, for a namespace with that quota. Every level accepts it.
pub(super) fn existing(cell: &Cell) -> Outcome<Option<Value>> {
    if !has_pod(cell) {
        return Ok(None);
    }
    let mut pod = objects::plain_pod("existing");
    pod["metadata"]["namespace"] = json!(cell.namespace());
    pod["spec"]["securityContext"] = secure();
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "900m"}});
    change(&mut pod, COMPLIANT)?;
    Ok(Some(pod))
}
