//! A case: a pod with what is known about where it comes from, and what becomes of it.

use std::path::Path;

use injectd_command::{CommandError, input};
use injectd_core::yaml;
use injectd_templates::Template;
use injectd_templates_tree::{Decision, Denied, Injected, Request, State, inject, lay};
use serde_json::{Value, json};

use super::meaning;

/// The file with the pod.
pub(super) const POD: &str = "pod.yaml";
/// The file with its namespace, its ServiceAccount and its owners.
const OBJECTS: &str = "objects.yaml";
const DEFAULT: &str = "default";

/// A case.
#[derive(Debug)]
pub(super) struct Case {
    pod: Value,
    namespace: Value,
    service_account: Option<Value>,
    owners: Vec<Value>,
}

/// What became of the pod.
#[derive(Debug)]
pub(super) enum Found {
    /// It was changed.
    Changed(Value),
    /// It is denied, for this reason.
    Denied(String),
    /// It was not changed: a line for each template says why.
    Skipped(String),
}

/// What became of the pod, and what is wrong whatever is expected.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) result: Found,
    /// A line for each warning.
    pub(super) warnings: String,
    /// Promises that an injection does not keep.
    pub(super) broken: Vec<String>,
}

impl Case {
    /// Reads the files of a case.
    pub(super) fn read(folder: &Path, templates: &[Template]) -> Result<Self, CommandError> {
        let file = folder.join(POD);
        let pod = documents(&file)?.into_iter().find(|object| object["kind"] == "Pod");
        let Some(pod) = pod else {
            return Err(CommandError::Incomplete(format!("{} has no Pod", file.display())));
        };
        let file = folder.join(OBJECTS);
        let objects = if file.exists() { documents(&file)? } else { Vec::new() };
        let namespace = namespace(&pod, &objects, templates);
        let name = pod.pointer("/spec/serviceAccountName").and_then(Value::as_str);
        let is_account = |object: &&Value| {
            let own = object.pointer("/metadata/namespace");
            object["kind"] == "ServiceAccount"
                && object["metadata"]["name"] == name.unwrap_or(DEFAULT)
                && own.is_none_or(|own| *own == namespace["metadata"]["name"])
        };
        let service_account = objects.iter().find(is_account).cloned();
        let owners = owners(&pod, &objects);
        Ok(Self { pod, namespace, service_account, owners })
    }

    fn inject(&self, templates: &[Template], pod: &Value) -> Result<Injected, Denied> {
        let request = Request {
            pod,
            namespace: &self.namespace,
            service_account: self.service_account.as_ref(),
            owners: &self.owners,
            own_namespace: None,
        };
        inject(templates, &request)
    }

    /// Injects the pod, and then the result.
    pub(super) fn outcome(&self, templates: &[Template]) -> Outcome {
        let first = match self.inject(templates, &self.pod) {
            Ok(first) => first,
            Err(denied) => {
                let result = Found::Denied(denied.to_string() + "\n");
                return Outcome { result, warnings: String::new(), broken: Vec::new() };
            }
        };
        let mut broken = Vec::new();
        if patched(&self.pod, &first.pod).as_ref() != Some(&first.pod) {
            broken.push("the JSON patch does not lead to the pod that was computed".to_owned());
        }
        match self.inject(templates, &first.pod) {
            Err(denied) => broken.push(format!("a second call denies the pod: {denied}")),
            Ok(second) => {
                let changed = meaning::differences(&first.pod, &second.pod).into_iter();
                broken.extend(changed.map(|text| format!("a second call changes the pod: {text}")));
            }
        }
        let warnings = first.warnings.iter().map(|warning| warning.clone() + "\n").collect();
        let result = if first.pod == self.pod {
            Found::Skipped(first.decisions.iter().map(reason).collect())
        } else {
            Found::Changed(first.pod)
        };
        Outcome { result, warnings, broken }
    }
}

/// Why a template did not change the pod, as a line.
fn reason(decision: &Decision) -> String {
    let reason = match &decision.state {
        State::Unmatched(reason) => format!("not matched: {reason}"),
        State::Disabled => "disabled".to_owned(),
        State::Skipped(reason) => format!("skipped: {reason}"),
        State::Nothing | State::Applied => "nothing to add".to_owned(),
        State::Present { is_outdated: false } => "in the pod already".to_owned(),
        State::Present { is_outdated: true } => "an older revision is in the pod".to_owned(),
    };
    format!("template {}: {reason}\n", decision.template)
}

/// The pod that the patch between two pods leads to.
fn patched(before: &Value, after: &Value) -> Option<Value> {
    let patch = Value::Array(lay::patch(before, after));
    let patch: json_patch::Patch = serde_json::from_value(patch).ok()?;
    let mut pod = before.clone();
    json_patch::patch(&mut pod, &patch).ok()?;
    Some(pod)
}

/// The objects of a file, with the items of its Lists.
fn documents(path: &Path) -> Result<Vec<Value>, CommandError> {
    let read = yaml::parse_all(&input::read_text(path)?)
        .map_err(|error| CommandError::failed(input::name(path), error))?;
    let items = |mut document: Value| match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![document],
    };
    Ok(read.into_iter().flat_map(items).collect())
}

/// The pod's namespace: the object of that name, or one with its name only. A pod without a namespace is in
/// the one of the objects, or of a template with a namespace.
fn namespace(pod: &Value, objects: &[Value], templates: &[Template]) -> Value {
    let written = pod.pointer("/metadata/namespace").and_then(Value::as_str);
    let mut namespaces = objects.iter().filter(|object| object["kind"] == "Namespace");
    let is_own = |object: &&Value| written.is_none_or(|name| object["metadata"]["name"] == name);
    if let Some(object) = namespaces.find(is_own) {
        return object.clone();
    }
    let of_template = || templates.iter().find_map(|one| one.identity.namespace.as_deref());
    let name = written.or_else(of_template).unwrap_or(DEFAULT);
    let labels = json!({"kubernetes.io/metadata.name": name});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// The owners of a pod among the objects, the nearest first.
fn owners(pod: &Value, objects: &[Value]) -> Vec<Value> {
    let (mut owners, mut of) = (Vec::new(), pod);
    // Owners may form a circle.
    while owners.len() < objects.len()
        && let Some(next) = owner(of, objects)
    {
        owners.push(next.clone());
        of = next;
    }
    owners
}

fn owner<'o>(of: &Value, objects: &'o [Value]) -> Option<&'o Value> {
    let references = of.pointer("/metadata/ownerReferences")?.as_array()?;
    let reference = references.iter().find(|reference| reference["controller"] == true)?;
    objects.iter().find(|object| {
        object["kind"] == reference["kind"] && object["metadata"]["name"] == reference["name"]
    })
}
