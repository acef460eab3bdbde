//! The sidecar templates of a file.

use std::path::Path;

use injectd_command::{CommandError, input};
use injectd_templates::Template;
use injectd_yaml::{Document, DuplicateKeys, Limits, Options, Step, stream};
use serde_json::Value;

use super::origin::{Origin, Placed};

/// The kinds of templates.
const KINDS: [&str; 2] = ["ClusterSidecarTemplate", "SidecarTemplate"];

/// A template as a file has it.
#[derive(Debug)]
pub(crate) struct Written {
    /// The name of the file.
    pub(crate) file: String,
    /// The line in which it begins.
    pub(crate) line: usize,
    /// Its kind, and its name behind its namespace: `sidecartemplate/team-a/proxy`.
    pub(crate) name: String,
    /// The template, if it has no problem.
    pub(crate) template: Option<Template>,
    /// Why it is not used.
    pub(super) problems: Vec<Placed>,
    /// What should be looked at.
    pub(super) warnings: Vec<Placed>,
}

/// The templates of a file, in their order. Objects of other kinds are left out.
///
/// # Errors
/// When the file cannot be read, or is not YAML or JSON.
pub(crate) fn templates(path: &Path) -> Result<Vec<Written>, CommandError> {
    let file = input::name(path);
    let text = input::read_text(path)?;
    let options = Options {
        duplicate_keys: DuplicateKeys::Noted,
        limits: Limits::FILES,
        ..Options::default()
    };
    let mut found = Vec::new();
    for document in stream(&text, options) {
        let document = document.map_err(|error| CommandError::failed(&*file, error))?;
        for (object, path) in objects(&document) {
            if is_template(object) {
                let origin = Origin { text: &text, document: &document, object, path };
                found.push(written(&file, &origin));
            }
        }
    }
    Ok(found)
}

/// The object of a document, or the items of its List, with the way to them.
fn objects(document: &Document) -> Vec<(&Value, Vec<Step>)> {
    let value = &document.value;
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match &value["items"] {
        Value::Array(items) if is_list => {
            let way = |index| vec![Step::Field("items".to_owned()), Step::Item(index)];
            items.iter().enumerate().map(|(index, item)| (item, way(index))).collect()
        }
        _ => vec![(value, Vec::new())],
    }
}

/// Whether an object is a template, or was meant as one.
fn is_template(object: &Value) -> bool {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    KINDS.contains(&text("kind")) || text("apiVersion").starts_with("injectd.dev/")
}

fn written(file: &str, origin: &Origin<'_>) -> Written {
    let text = |pointer| origin.object.pointer(pointer).and_then(Value::as_str);
    let parts = [text("/kind"), text("/metadata/namespace"), text("/metadata/name")];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let name = match &parts[..] {
        [kind, rest @ ..] => [&[&*kind.to_lowercase()], rest].concat().join("/"),
        [] => String::new(),
    };
    let placed = |problems: &[_]| problems.iter().map(|problem| origin.placed(problem)).collect();
    let (template, mut problems, warnings) = match Template::read(origin.object) {
        Ok(template) => {
            let warnings = placed(&template.warnings);
            (Some(template), Vec::new(), warnings)
        }
        Err(problems) => (None, placed(&problems), Vec::new()),
    };
    if let Some(problem) = &origin.document.duplicate_key {
        let (line, column, text) = (problem.line, problem.column, problem.message.clone());
        problems.push(Placed { line, column, field: String::new(), text });
    }
    problems.sort_by_key(|problem: &Placed| [problem.line, problem.column]);
    Written { file: file.to_owned(), line: origin.line(), name, template, problems, warnings }
}
