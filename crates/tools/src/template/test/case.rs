//! A case: a pod with what is known about where it comes from, and what becomes of it.

use std::path::Path;

use injectd_command::{CommandError, input};
use injectd_core::yaml;
use injectd_templates::Template;
use injectd_templates_tree::{
    Decision, Denied, Injected, Request, State, inject, lay, surroundings::Surroundings,
};
use serde_json::Value;

use super::meaning;
use crate::sidecars;

/// The file with the pod.
pub(super) const POD: &str = "pod.yaml";
/// The file with its namespace, its ServiceAccount and its owners.
const OBJECTS: &str = "objects.yaml";
const DEFAULT: &str = "default";

/// A case.
#[derive(Debug)]
pub(super) struct Case {
    pod: Value,
    /// The name of its namespace.
    namespace: String,
    surroundings: Surroundings,
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
        let namespace = namespace(&pod, &objects, templates).to_owned();
        let mut surroundings = Surroundings::default();
        for object in &objects {
            sidecars::add(&mut surroundings, object, "", &namespace);
        }
        Ok(Self { pod, namespace, surroundings })
    }

    fn inject(&self, templates: &[Template], pod: &Value) -> Result<Injected, Denied> {
        let namespace = self.surroundings.namespace(&self.namespace).unwrap_or_default();
        let request = Request {
            pod,
            namespace: &namespace,
            service_account: self.surroundings.service_account(pod, &self.namespace),
            owners: &self.surroundings.owners(pod, &self.namespace),
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
    if decision.state == State::Applied {
        return format!("template {}: {}\n", decision.template, State::Nothing);
    }
    format!("{decision}\n")
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

/// The name of the pod's namespace. A pod without one is in the namespace of the objects, or of a template
/// with a namespace.
fn namespace<'c>(pod: &'c Value, objects: &'c [Value], templates: &'c [Template]) -> &'c str {
    let of_object = || {
        let namespace = objects.iter().find(|object| object["kind"] == "Namespace")?;
        namespace.pointer("/metadata/name")?.as_str()
    };
    let of_template = || templates.iter().find_map(|one| one.identity.namespace.as_deref());
    let written = pod.pointer("/metadata/namespace").and_then(Value::as_str);
    written.or_else(of_object).or_else(of_template).unwrap_or(DEFAULT)
}
