//! A `MutatingAdmissionPolicy` with the effect of a JSON Patch of `add` operations.

use std::{collections::BTreeMap, mem::discriminant};

use injectd_harness::expect::{Outcome, failed};
use serde_json::{Value, json};

const VERSION: &str = "admissionregistration.k8s.io/v1";
/// Values that differ from pod to pod, and their CEL.
pub(super) type Replaced = BTreeMap<String, String>;

/// A policy that does what a patch does.
#[derive(Debug)]
pub(super) struct Policy<'p> {
    /// Its name.
    pub(super) name: &'p str,
    /// The patch.
    pub(super) operations: &'p [Value],
    /// Whether a pod is left as it is, in CEL.
    pub(super) is_injected: &'p str,
    /// Labels of the namespaces.
    pub(super) labels: Value,
    /// What differs from pod to pod.
    pub(super) replaced: &'p Replaced,
}

/// The policy and its binding.
pub(super) fn policy(of: &Policy<'_>) -> Outcome<[Value; 2]> {
    let Policy { name, operations, is_injected, labels, replaced } = of;
    let patches: Vec<_> =
        operations.iter().map(|operation| patch(operation, replaced)).collect::<Outcome<_>>()?;
    // The cheapest form that was tried, by 30 %: maps instead of the typed objects of most examples,
    // and neither a match condition nor a variable, because each converts the pod once more.
    let expression = format!("{is_injected} ? [] : [\n{}\n]", patches.join(",\n"));
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["pods"]});
    let spec = json!({
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"namespaceSelector": {"matchLabels": labels}, "resourceRules": [rule]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    });
    let object = |kind: &str, spec: Value| json!({"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let binding = json!({"policyName": name});
    let kind = "MutatingAdmissionPolicy";
    Ok([object(kind, spec), object(&format!("{kind}Binding"), binding)])
}

fn patch(operation: &Value, replaced: &Replaced) -> Outcome<String> {
    if operation["op"] != "add" {
        return Err(failed(format!("not an add operation: {operation}")));
    }
    let (path, value) = (&operation["path"], cel(&operation["value"], replaced));
    Ok(format!(r#"JSONPatch{{op: "add", path: {path}, value: {value}}}"#))
}

/// A value as a CEL expression, without null members, which have no effect there.
fn cel(value: &Value, replaced: &Replaced) -> String {
    match value {
        Value::Object(fields) => {
            let (keys, values): (Vec<_>, Vec<_>) =
                fields.iter().filter(|(_, member)| !member.is_null()).unzip();
            let members = of_one_type(&values, replaced);
            let entries = keys.into_iter().zip(members);
            let entries = entries.map(|(key, it)| format!("{}: {it}", json!(key)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().collect();
            format!("[{}]", of_one_type(&items, replaced).join(", "))
        }
        Value::String(text) if replaced.contains_key(text) => replaced[text].clone(),
        _ => value.to_string(),
    }
}

/// The entries of a map or list as expressions of one type, as CEL requires.
fn of_one_type(values: &[&Value], replaced: &Replaced) -> Vec<String> {
    let is_plain = |value: &&Value| match value {
        Value::Object(_) | Value::Array(_) => false,
        Value::String(text) => !replaced.contains_key(text),
        _ => true,
    };
    let is_same = values.windows(2).all(|pair| discriminant(pair[0]) == discriminant(pair[1]));
    let is_typed = is_same && values.iter().all(is_plain);
    let expressions = values.iter().map(|value| cel(value, replaced));
    expressions
        .map(|expression| if is_typed { expression } else { format!("dyn({expression})") })
        .collect()
}
