//! What templates would do to the pods of manifests.

use std::path::PathBuf;

use injectd_command::{CommandError, input};
use injectd_core::yaml;
use injectd_templates::Template;
use injectd_templates_tree::{Decision, Injected, mesh::Templates, surroundings::Surroundings};
use serde::Serialize;
use serde_json::Value;

use crate::{
    inject::{kind_of, must_have_spec},
    manifests::{Listed, listed, pod_of, pod_prefix, text},
    sidecars,
};

/// What happens to the pod of an object.
#[derive(Debug, Serialize)]
pub(super) struct Pod {
    file: String,
    /// Kind, namespace and name.
    object: String,
    /// What becomes of each template, in the order in which they are applied; none if the pod is denied.
    templates: Vec<Outcome>,
    /// Why the pod is denied.
    denied: Option<String>,
    warnings: Vec<String>,
}

/// What becomes of a template.
#[derive(Debug, Serialize)]
struct Outcome {
    template: String,
    result: String,
}

impl From<Decision> for Outcome {
    fn from(Decision { template, state, .. }: Decision) -> Self {
        Self { template, result: state.to_string() }
    }
}

impl Pod {
    /// A line for each template, denial and warning.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let outcomes =
            self.templates.iter().map(|of| format!("template {}: {}", of.template, of.result));
        let denied = self.denied.iter().map(|why| format!("denied: {why}"));
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        let lines = outcomes.chain(denied).chain(warnings);
        lines.map(|line| format!("{}: {}: {line}", self.file, self.object))
    }
}

/// What happens to the pods of files. Their other objects say where the pods come from.
pub(super) fn all(
    templates: Vec<Template>,
    files: &[PathBuf],
    namespace: &str,
) -> Result<Vec<Pod>, CommandError> {
    let mut surroundings = Surroundings::default();
    let mut documents = Vec::new();
    for path in files {
        let name = input::name(path);
        for document in yaml::stream(&input::read_text(path)?) {
            let document = document.map_err(|error| CommandError::failed(&*name, error))?;
            sidecars::add(&mut surroundings, &document.value, "", namespace);
            documents.push((name.clone(), document.value));
        }
    }
    let templates = Templates::new(templates, surroundings);
    let mut run = Run { templates, namespace, pods: Vec::new() };
    for (file, object) in &documents {
        run.object(file, object, "");
    }
    if run.pods.is_empty() {
        let text = "--manifests: the files have no pods, and no objects with pod templates";
        return Err(CommandError::Incomplete(text.to_owned()));
    }
    Ok(run.pods)
}

struct Run<'r> {
    templates: Templates,
    namespace: &'r str,
    pods: Vec<Pod>,
}

impl Run<'_> {
    fn object(&mut self, file: &str, object: &Value, listed_kind: &str) {
        if let Some(Listed { items, item_kind }) = listed(object) {
            for item in items {
                self.object(file, item, item_kind);
            }
            return;
        }
        let kind = match text(object, "/kind") {
            "" => listed_kind,
            kind => kind,
        };
        let Some(prefix) = pod_prefix(object, kind_of(object, kind), kind) else { return };
        let namespace = match text(object, "/metadata/namespace") {
            "" => self.namespace,
            own => own,
        };
        let pod = pod_of(object, prefix);
        let injected = if let Err(problem) = must_have_spec(object, prefix) {
            Err(problem)
        } else if prefix.is_empty() {
            self.templates.inject(&pod, namespace)
        } else {
            let mut workload = object.clone();
            workload["kind"] = kind.into();
            let made = self.templates.surroundings.made(pod, &workload, namespace);
            self.templates.inject_made(&made, namespace)
        };
        let name = match text(object, "/metadata/name") {
            "" => text(object, "/metadata/generateName"),
            name => name,
        };
        let object = format!("{}/{namespace}/{name}", kind.to_lowercase());
        let (templates, denied, warnings) = match injected {
            Ok(Injected { decisions, warnings, .. }) => {
                (decisions.into_iter().map(Outcome::from).collect(), None, warnings)
            }
            Err(why) => (Vec::new(), Some(why), Vec::new()),
        };
        self.pods.push(Pod { file: file.to_owned(), object, templates, denied, warnings });
    }
}
