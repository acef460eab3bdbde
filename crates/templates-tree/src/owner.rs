//! Who owns a pod.

use std::sync::OnceLock;

use injectd_templates::named::member;
use serde_json::{Value, json};

/// Kinds whose own owner is the root: a Deployment, or a `CronJob`.
const BELOW_A_ROOT: [&str; 2] = ["ReplicaSet", "Job"];

/// The pod's controller reference.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    let references = member(member(object, "metadata")?, "ownerReferences")?.as_array()?;
    references.iter().find(|reference| reference.get("controller") == Some(&Value::Bool(true)))
}

/// The owners of a pod as expressions see them, made when they are read.
#[derive(Debug)]
pub(crate) struct Owners<'o> {
    pod: &'o Value,
    /// The objects that are known, the nearest first.
    found: &'o [Value],
    made: OnceLock<Made>,
}

#[derive(Debug)]
struct Made {
    root: Value,
    all: Value,
}

impl<'o> Owners<'o> {
    /// The owners of a pod.
    pub(crate) fn of(pod: &'o Value, found: &'o [Value]) -> Self {
        Self { pod, found, made: OnceLock::new() }
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(|| {
            let all = owners(self.pod, self.found);
            Made { root: root(self.pod, &all), all: all.into() }
        })
    }

    /// What expressions call `owner`.
    pub(crate) fn root(&self) -> &Value {
        &self.made().root
    }

    /// What expressions call `owners`.
    pub(crate) fn all(&self) -> &Value {
        &self.made().all
    }
}

/// The owners of a pod, the nearest first: what expressions call `owners`.
fn owners(pod: &Value, found: &[Value]) -> Vec<Value> {
    let mut owners = Vec::new();
    let mut reference = controller(pod);
    for object in found {
        let Some(expected) = reference else { break };
        if !is_same(expected, object) {
            break;
        }
        owners.push(owner(object));
        reference = controller(object);
    }
    // The last one is known by its reference only.
    owners.extend(reference.map(by_reference));
    owners
}

/// The root: one step above a `ReplicaSet` or Job, else the controller, else the pod itself.
fn root(pod: &Value, owners: &[Value]) -> Value {
    match owners {
        [] => owner(pod),
        [nearest, above, ..] if is_below_a_root(nearest) => above.clone(),
        [nearest, ..] => nearest.clone(),
    }
}

fn is_below_a_root(owner: &Value) -> bool {
    owner["kind"].as_str().is_some_and(|kind| BELOW_A_ROOT.contains(&kind))
}

fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn is_same(reference: &Value, object: &Value) -> bool {
    let uid = text(object, "/metadata/uid");
    text(reference, "/kind") == text(object, "/kind")
        && text(reference, "/name") == text(object, "/metadata/name")
        && (uid.is_empty() || text(reference, "/uid").is_empty() || uid == text(reference, "/uid"))
}

fn owner(object: &Value) -> Value {
    let or = |text: &str, default: &str| {
        if text.is_empty() { default.to_owned() } else { text.to_owned() }
    };
    json!({
        "apiVersion": or(text(object, "/apiVersion"), "v1"),
        "kind": or(text(object, "/kind"), "Pod"),
        "name": text(object, "/metadata/name"),
        "uid": text(object, "/metadata/uid"),
        "labels": object.pointer("/metadata/labels").filter(|labels| labels.is_object()).cloned().unwrap_or_else(|| json!({})),
    })
}

fn by_reference(reference: &Value) -> Value {
    json!({
        "apiVersion": text(reference, "/apiVersion"),
        "kind": text(reference, "/kind"),
        "name": text(reference, "/name"),
        "uid": text(reference, "/uid"),
        "labels": {},
    })
}
