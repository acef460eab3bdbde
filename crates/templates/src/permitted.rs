//! What an overlay may set in a pod. What it sets by a base (`$from`) or by a variable is looked at when the
//! template is read, and what an expression decides when it is filled in.

use serde_json::Value;

use crate::{
    Problem, Template,
    spot::{Part, Spot},
    structure::{DIRECTIVE, Structure, TextPart, below},
    template::CONTAINER_LISTS,
};

/// Fields of a Pod's `spec` that belong to the pod's author, the scheduler or the API server.
const NOT_IN_SPEC: [&str; 7] = [
    "nodeName",
    "hostname",
    "priority",
    "overhead",
    "ephemeralContainers",
    "serviceAccountName",
    // The old name of `serviceAccountName`.
    "serviceAccount",
];
/// Keys with this prefix are injectd's own.
const OWN_PREFIX: &str = "injectd.dev/";

/// Why an overlay may not have a key in the object at a path of the pod.
fn refusal(path: &[&str], key: &str) -> Option<&'static str> {
    match path {
        [] => (!["metadata", "spec"].contains(&key))
            .then_some("an overlay has metadata and spec only: remove this field"),
        ["metadata"] => (!["labels", "annotations"].contains(&key))
            .then_some("of metadata, an overlay may set labels and annotations only"),
        ["metadata", "labels"] if key == DIRECTIVE => {
            Some("labels of a pod can only be added: remove $patch")
        }
        ["metadata", _] => key
            .starts_with(OWN_PREFIX)
            .then_some("keys with injectd.dev/ are injectd's own: use another key"),
        ["spec"] if key == DIRECTIVE => {
            Some("$patch here would remove all containers: write it in fields or entries of lists")
        }
        ["spec"] => NOT_IN_SPEC.contains(&key).then_some(
            "an overlay may not set this field: it belongs to the pod's author, the scheduler or \
             the API server",
        ),
        _ => None,
    }
}

/// The objects of a pod in which only some keys may be set.
fn is_limited(path: &[&str]) -> bool {
    matches!(path, [] | ["metadata" | "spec"] | ["metadata", "labels" | "annotations"])
}

/// The problems of all overlays.
pub(crate) fn problems(template: &Template) -> Vec<Problem> {
    let mut found = Vec::new();
    let overlays = (0..template.steps.len()).filter_map(|step| Spot::overlay(template, step));
    for overlay in overlays {
        keys(&overlay, &mut Vec::new(), &mut found);
        let Some(spec) = overlay.get("spec") else { continue };
        let containers = CONTAINER_LISTS.into_iter().flat_map(|list| spec.list(list).0);
        found.extend(containers.filter_map(|container| of_name(&container)));
    }
    found
}

fn keys<'t>(spot: &Spot<'t>, path: &mut Vec<&'t str>, found: &mut Vec<Problem>) {
    for (key, below) in spot.fields() {
        if let Some(text) = refusal(path, key) {
            found.push(below.problem(text));
            continue;
        }
        path.push(key);
        if is_limited(path) {
            keys(&below, path, found);
        }
        path.pop();
    }
}

/// The name of a container must have a constant part, so that a person finds who added it.
fn of_name(container: &Spot<'_>) -> Option<Problem> {
    let fields = container.fields();
    // It says something about the list only.
    if fields.len() == 1 && container.directive() == Some("replace") {
        return None;
    }
    let Some(name) = container.get("name") else {
        // An expression may have the name.
        let field = below(container.field(), "name");
        let problem = || Problem::new(field, "a container needs a name");
        return (!container.is_open()).then(problem);
    };
    let is_open = match name.part() {
        Some(Part::Open(_)) => true,
        Some(Part::Text(parts)) => {
            !parts.iter().any(|part| matches!(part, TextPart::Constant(text) if !text.is_empty()))
        }
        Some(Part::Constant(value)) if value.as_str().is_some() => false,
        _ => return Some(name.problem("a container needs a name")),
    };
    let text = "the name of a container needs a constant part, such as tail-${index}";
    is_open.then(|| name.problem(text))
}

/// Checks what expressions have put into an overlay: all else was checked when the template was read.
///
/// # Errors
/// The field, and why an overlay may not set it.
pub fn check(of: &Structure, overlay: &Value) -> Result<(), String> {
    filled(Some(of), overlay, &mut Vec::new())
}

fn filled<'o>(
    of: Option<&Structure>,
    overlay: &'o Value,
    path: &mut Vec<&'o str>,
) -> Result<(), String> {
    let Value::Object(fields) = overlay else { return Ok(()) };
    let written = of.and_then(Structure::entries).filter(|entries| entries.from.is_none());
    for (key, value) in fields {
        if written.is_none()
            && let Some(text) = refusal(path, key)
        {
            let field = below(&path.join("."), key);
            return Err(format!("{}: {text}", field.trim_start_matches('.')));
        }
        path.push(key);
        if is_limited(path) {
            filled(written.and_then(|_| of?.field(key)), value, path)?;
        }
        path.pop();
    }
    Ok(())
}
