//! Reads the recordings of a family, as the README of the corpus describes them.

use std::path::Path;

use serde_json::{Value, json};

use super::answer::Answer;
use crate::corpus::{self, Cases};

/// A recorded case.
pub(crate) struct Case {
    /// A unique name.
    pub(crate) id: String,
    /// The settings of the webhook.
    pub(crate) config: Value,
    /// Objects in the cluster.
    pub(crate) objects: Vec<Value>,
    /// What the webhook was given.
    pub(crate) pod: Value,
    /// What it answered.
    pub(crate) answer: Answer,
    /// An API server refuses the pod.
    pub(crate) is_invalid: bool,
    /// The patch cannot be applied.
    pub(crate) has_broken_patch: bool,
}

/// The cases of a family's directory.
pub(crate) fn load(directory: &Path) -> Result<Vec<Case>, String> {
    corpus::read_cases(directory, Cases::All)?.into_iter().map(case).collect()
}

fn case(mut fields: Value) -> Result<Case, String> {
    let id = fields["id"].as_str().unwrap_or_default().to_owned();
    let mut take = |field: &str| fields[field].take();
    let pod = take("pod");
    let answer = match take("result").as_str() {
        Some("patched") => Answer::Pod(take("patched")),
        Some("untouched") => Answer::Pod(pod.clone()),
        Some("denied") => Answer::Denied(take("message").as_str().unwrap_or_default().to_owned()),
        other => return Err(format!("{id}: the result is {other:?}")),
    };
    Ok(Case {
        config: take("config"),
        objects: take("objects").as_array().cloned().unwrap_or_default(),
        is_invalid: !take("invalid").is_null(),
        has_broken_patch: !take("brokenPatch").is_null(),
        id,
        pod,
        answer,
    })
}

impl Case {
    /// The namespace of the pod.
    pub(crate) fn namespace(&self) -> &str {
        self.pod["metadata"]["namespace"].as_str().unwrap_or_default()
    }

    /// An annotation of the pod.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.pod["metadata"]["annotations"][key].as_str()
    }

    /// An object of a kind and a name, in the namespace of the pod.
    pub(crate) fn object(&self, kind: &str, name: &str) -> Option<&Value> {
        self.of_kind(kind).find(|object| {
            object["metadata"]["name"] == name
                && object["metadata"]["namespace"] == self.namespace()
        })
    }

    /// The objects of a kind, in their order.
    pub(crate) fn of_kind<'c>(&'c self, kind: &str) -> impl Iterator<Item = &'c Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// The Namespace of the pod.
    pub(crate) fn namespace_object(&self) -> Value {
        let name = self.namespace();
        let mut namespace = self
            .of_kind("Namespace")
            .find(|object| object["metadata"]["name"] == name)
            .cloned()
            .unwrap_or_else(|| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {}}));
        namespace["metadata"]["name"] = name.into();
        namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
        namespace
    }

    /// The ServiceAccount of the pod, if it exists.
    pub(crate) fn service_account(&self) -> Option<&Value> {
        let name = self.pod["spec"]["serviceAccountName"].as_str().filter(|name| !name.is_empty());
        self.object("ServiceAccount", name.unwrap_or("default"))
    }

    /// The owners of the pod that exist, nearest first.
    pub(crate) fn owners(&self) -> Vec<Value> {
        let mut owners: Vec<Value> = Vec::new();
        while let Some(reference) = controller(owners.last().unwrap_or(&self.pod)) {
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            let Some(owner) = self.object(text("kind"), text("name")) else { break };
            let uid = owner["metadata"]["uid"].as_str();
            if uid.is_some_and(|uid| uid != text("uid")) {
                break;
            }
            owners.push(owner.clone());
        }
        owners
    }
}

fn controller(object: &Value) -> Option<&Value> {
    let references = object["metadata"]["ownerReferences"].as_array()?;
    references.iter().find(|reference| reference["controller"] == true)
}
