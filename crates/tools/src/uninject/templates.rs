//! `injectd uninject --templates` and `--by-mark`: removes what sidecar templates added.

use injectd_command::CommandError;
use injectd_templates::ceiling::Ceiling;
use injectd_templates_tree::{
    Uninjected, by_mark,
    mark::{ANNOTATION, Mark},
    mesh::Templates,
    surroundings::unmade,
};
use serde_json::Value;

use super::Args;
use crate::{
    inject::{kind_of, must_have_spec, with_pod},
    manifests::{self, Action, Edited, Entry, pod_of, pod_prefix, text},
    sidecars,
};

/// Removes what the templates of --templates added.
pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let values = args.values.is_some().then_some("--values (or its variable INJECTD_VALUES)");
    sidecars::must_suit(values)?;
    // What a template added is removed, whatever the ceiling is now.
    let templates = args.templates.read(&args.manifests.paths(), Ceiling::Privileged)?;
    let mut surroundings = sidecars::of_file(args.objects.as_deref())?;
    let inputs = args.manifests.read(&manifests::runtime()?);
    sidecars::add_inputs(&mut surroundings, &inputs, &args.namespace);
    let templates = Templates::new(templates, surroundings);
    let removal = Removal { templates: Some(templates), namespace: &args.namespace };
    args.manifests.run(inputs, "uninjected", |object, kind| Ok(removal.edit(object, kind)))
}

/// Removes the containers of all templates, by the mark.
pub(super) fn run_by_mark(args: &Args) -> Result<(), CommandError> {
    let inputs = args.manifests.read(&manifests::runtime()?);
    let removal = Removal { templates: None, namespace: &args.namespace };
    args.manifests.run(inputs, "uninjected", |object, kind| Ok(removal.edit(object, kind)))
}

/// The templates in a pod that neither flag is set for: they stay.
pub(super) fn note(object: &Value, prefix: &str) -> Option<String> {
    let mark = Mark::of(object.pointer(prefix)?);
    let names: Vec<&str> = mark.0.keys().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!(
            "sidecars of templates are in it ({names}); remove them with --templates or --by-mark"
        )
    })
}

/// A pod template without metadata that has nothing.
fn without_empty(mut pod: Value) -> Value {
    let is_empty = |metadata: &Value| metadata.as_object().is_some_and(serde_json::Map::is_empty);
    if pod.get("metadata").is_some_and(is_empty)
        && let Some(pod) = pod.as_object_mut()
    {
        pod.shift_remove("metadata");
    }
    pod
}

struct Removal<'a> {
    /// Without them, the mark says what is removed.
    templates: Option<Templates>,
    /// The namespace of objects that do not set one.
    namespace: &'a str,
}

impl Removal<'_> {
    fn edit(&self, object: &Value, kind: &str) -> Edited {
        let Some(prefix) = pod_prefix(object, kind_of(object, kind), kind) else {
            return Edited { object: None, entry: Entry::of(object, kind, Action::Unchanged) };
        };
        let entry = |action| Entry { has_pods: true, ..Entry::of(object, kind, action) };
        let removed =
            must_have_spec(object, prefix).and_then(|()| self.removed(object, kind, prefix));
        match removed {
            Err(problem) => {
                Edited { object: None, entry: entry(Action::Rejected).because(problem) }
            }
            Ok(None) => {
                let what =
                    if self.templates.is_some() { "of these templates" } else { "of templates" };
                let reason = format!("nothing {what} is in it: it has no such mark {ANNOTATION}");
                Edited { object: None, entry: entry(Action::Skipped).because(reason) }
            }
            Ok(Some(Uninjected { pod, templates, left })) => {
                let names = [templates.join(", ")].into_iter().chain(left);
                let names: Vec<String> = names.collect();
                let template = object.pointer(prefix).unwrap_or(object);
                let object = with_pod(object, prefix, without_empty(unmade(pod, template)));
                let entry = entry(Action::Uninjected).because(names.join("; "));
                Edited { object: Some(object), entry }
            }
        }
    }

    /// The pod of an object without what templates added; `None` if nothing is in it.
    fn removed(
        &self,
        object: &Value,
        kind: &str,
        prefix: &str,
    ) -> Result<Option<Uninjected>, String> {
        let pod = pod_of(object, prefix);
        let Some(templates) = &self.templates else { return Ok(by_mark(&pod)) };
        let namespace = match text(object, "/metadata/namespace") {
            "" => self.namespace,
            own => own,
        };
        if prefix.is_empty() {
            return templates.uninject(&pod, namespace);
        }
        let mut workload = object.clone();
        workload["kind"] = kind.into();
        let made = templates.surroundings.made(pod, &workload, namespace);
        templates.uninject_made(&made, namespace)
    }
}
