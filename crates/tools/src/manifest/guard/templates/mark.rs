//! The mark in CEL, which has no function that reads JSON: a regular expression has its form as injectd writes it,
//! and others find its parts.

use std::collections::BTreeSet;

use injectd_templates::{
    Step, Template, mark::ANNOTATION, object::OnConflict, structure::Structure,
};

use super::super::{Check, Named, selector::cel_list};

/// The name of a container, between quotes.
const CONTAINER: &str = r#""[a-z0-9]([-a-z0-9]*[a-z0-9])?""#;
/// The key of a template, between quotes.
const KEY: &str = r#""[a-z0-9][-a-z0-9./]*""#;

/// What a person does about a mark that is not right.
const REMOVE: &str = "Remove the annotation from the pod, or from the template of its workload: injectd writes \
                      it when the pod is created";

/// Variables that checks use.
pub(super) fn variables() -> [Named; 4] {
    let list = format!(r"\[({CONTAINER}(,{CONTAINER})*)?\]");
    let entry = format!(r#"{KEY}:\{{"hash":"[0-9a-f]{{10}}","added":{list},"served":{list}\}}"#);
    let whole = format!(r"^\{{{entry}(,{entry})*\}}$");
    let entries = format!(r"{KEY}:\{{[^}}]*\}}");
    [
        Named::new("mark", &format!("variables.podAnnotations[?'{ANNOTATION}'].orValue('')")),
        Named::new("isMark", &format!("variables.mark.matches({})", quoted(&whole))),
        Named::new(
            "entries",
            &format!("variables.isMark ? variables.mark.findAll({}) : []", quoted(&entries)),
        ),
        Named::new("containers", CONTAINERS),
    ]
}

const CONTAINERS: &str = "\
object.spec.containers.map(container, container.name) +
object.spec.?initContainers.orValue([]).map(container, container.name)";

/// Whether the mark has a template.
pub(super) fn has(key: &str) -> String {
    format!("variables.mark.contains('\"{key}\":{{')")
}

/// What must be true of a mark.
pub(super) fn checks(templates: &[Template]) -> Vec<Check> {
    let of_cluster = templates.iter().filter(|one| one.identity.namespace.is_none());
    let keys: Vec<_> = of_cluster.map(Template::key).collect();
    let is_known =
        if keys.is_empty() { "false".to_owned() } else { format!("key in {}", cel_list(&keys)) };
    let mut checks = vec![
        check(
            "variables.mark == '' || variables.isMark".to_owned(),
            &format!("has an annotation {ANNOTATION} that is not as injectd writes it"),
        ),
        check(
            format!(
                "variables.entries.map(entry, entry.split('\"')[1]).all(key,\n  {is_known} || \
                 key.startsWith(namespaceObject.metadata.name + '/'))"
            ),
            &format!("has a template in its annotation {ANNOTATION} that does not exist"),
        ),
        check(
            format!(
                "variables.entries.all(entry,\n  {ADDED}.all(name, name in variables.containers))"
            ),
            &format!("lacks a container that its annotation {ANNOTATION} names as added"),
        ),
    ];
    let replaced = touched(templates);
    for template in templates {
        let names = always_added(template).filter(|name| !replaced.contains(*name));
        let names: BTreeSet<_> = names.map(str::to_owned).collect();
        if names.is_empty() {
            continue;
        }
        let (key, names) = (template.key(), Vec::from_iter(names));
        let list = cel_list(&names);
        checks.push(check(
            format!(
                "variables.entries.all(entry, !entry.startsWith('\"{key}\":') ||\n  \
                 {list}.all(name, name in {ADDED}))"
            ),
            &format!(
                "has the template {key} in its annotation {ANNOTATION} without each of the containers \
                 that it adds: {}",
                names.join(", ")
            ),
        ));
    }
    checks
}

/// The names of containers that an entry has as added.
const ADDED: &str = "entry.split('\"added\":[')[1].split(']')[0].findAll('[-a-z0-9]+')";

fn check(expression: String, text: &str) -> Check {
    Check {
        expression,
        message: format!("the pod {text}. {REMOVE}"),
        message_expression: format!("'pod ' + variables.podName + ' {text}. ' +\n'{REMOVE}'"),
    }
}

/// A regular expression as a text of CEL.
fn quoted(regex: &str) -> String {
    format!("'{}'", regex.replace('\\', "\\\\"))
}

/// The names of containers that a template adds to each pod.
fn always_added(template: &Template) -> impl Iterator<Item = &str> {
    let is_sure = |step: &&Step| {
        let is_kept =
            matches!(step.on_conflict, None | Some(OnConflict::Fail | OnConflict::Replace));
        step.when.is_none() && step.for_each.is_none() && is_kept
    };
    template.steps.iter().filter(is_sure).flat_map(containers).filter_map(constant_name)
}

/// The names of containers that some template removes or replaces.
fn touched(templates: &[Template]) -> BTreeSet<&str> {
    let steps = templates.iter().flat_map(|template| &template.steps);
    let patched =
        steps.flat_map(containers).filter(|container| container.field("$patch").is_some());
    patched.filter_map(constant_name).collect()
}

/// The containers in the overlay of a step.
fn containers(step: &Step) -> impl Iterator<Item = &Structure> {
    let spec = step.overlay.iter().filter_map(|overlay| overlay.field("spec"));
    let lists = spec.flat_map(|spec| ["initContainers", "containers"].map(|list| spec.field(list)));
    lists.flatten().flat_map(|list| match list {
        Structure::List(containers) => &**containers,
        _ => &[],
    })
}

fn constant_name(container: &Structure) -> Option<&str> {
    match container.field("name") {
        Some(Structure::Constant(name)) => name.as_str(),
        _ => None,
    }
}
