//! The sidecar templates of files, each with the places of its problems.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use clap::builder::{PossibleValuesParser, TypedValueParser as _, ValueParser};
use injectd_templates::{Problem, Template, ceiling::Ceiling};
use injectd_yaml::{Document, DuplicateKeys, Limits, Options, Step, stream};
use serde_json::Value;

mod origin;
mod rule;

pub use self::{origin::Placed, rule::Rule};

use self::origin::Origin;
use crate::{CommandError, input};

/// The kinds of templates.
const KINDS: [&str; 2] = ["ClusterSidecarTemplate", "SidecarTemplate"];

/// A template as a file has it.
#[derive(Debug)]
pub struct Written {
    /// The name of the file.
    pub file: String,
    /// The line in which it begins.
    pub line: usize,
    /// Its kind, and its name behind its namespace: `sidecartemplate/team-a/proxy`.
    pub name: String,
    /// The template, if it could be read. It is not used if there are problems.
    pub template: Option<Template>,
    /// Why it is not used, in the order of the lines.
    pub problems: Vec<Placed>,
    /// What should be looked at, in the order of the lines.
    pub warnings: Vec<Placed>,
    source: Source,
}

/// Where a template is.
#[derive(Debug)]
struct Source {
    /// The text of the file.
    text: Arc<str>,
    document: Arc<Document>,
    /// The way from the document to the template: an item of a List.
    path: Vec<Step>,
}

impl Written {
    /// The object.
    #[must_use]
    pub fn object(&self) -> &Value {
        self.source.object()
    }

    /// Its problems, each with its place.
    pub fn problem_lines(&self) -> impl Iterator<Item = String> {
        self.problems.iter().map(|problem| problem.line_of(&self.file, ""))
    }

    /// A problem of the template, with its place.
    #[must_use]
    pub fn placed(&self, rule: Rule, problem: &Problem) -> Placed {
        self.source.origin().placed(rule, problem)
    }

    /// Adds problems of the template.
    pub fn problem(&mut self, rule: Rule, problems: &[Problem]) {
        add(&mut self.problems, &self.source, rule, problems);
    }

    /// Adds warnings of the template.
    pub fn warn(&mut self, rule: Rule, warnings: &[Problem]) {
        add(&mut self.warnings, &self.source, rule, warnings);
    }
}

/// Adds findings, so that all are in the order of their lines and columns.
fn add(findings: &mut Vec<Placed>, source: &Source, rule: Rule, found: &[Problem]) {
    let origin = source.origin();
    findings.extend(found.iter().map(|problem| origin.placed(rule, problem)));
    findings.sort();
}

impl Source {
    fn object(&self) -> &Value {
        self.path.iter().fold(&self.document.value, |value, step| match step {
            Step::Field(name) => &value[name],
            Step::Item(index) => &value[*index],
        })
    }

    fn origin(&self) -> Origin<'_> {
        let (text, document, path) = (&*self.text, &*self.document, &*self.path);
        Origin { text, document, object: self.object(), path }
    }
}

/// Reads the highest level of the Pod Security Standards of `SidecarTemplate`s.
#[must_use]
pub fn ceilings() -> ValueParser {
    let named = |name: String| Ceiling::ALL.into_iter().find(|ceiling| ceiling.as_str() == name);
    PossibleValuesParser::new(Ceiling::ALL.map(Ceiling::as_str))
        .try_map(move |name| named(name).ok_or("it is no level"))
        .into()
}

/// The last revision without a problem of each template.
#[derive(Debug, Default)]
pub struct LastGood(BTreeMap<String, Value>);

impl LastGood {
    /// Keeps a template that is in order, and returns it.
    pub fn put(&mut self, written: Written) -> Option<Template> {
        self.0.insert(written.name.clone(), written.object().clone());
        written.template
    }

    /// The last revision of a template.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<Template> {
        Template::read(self.0.get(name)?).ok()
    }

    /// Forgets all templates but those of these names.
    pub fn keep(&mut self, names: &BTreeSet<String>) {
        self.0.retain(|name, _| names.contains(name));
    }
}

/// The templates of files, in their order. A `SidecarTemplate` above the ceiling has a problem. Of templates with
/// one kind and name, all but the first have one.
///
/// # Errors
/// When a file cannot be read, or is not YAML or JSON.
pub fn all(paths: &[PathBuf], ceiling: Ceiling) -> Result<Vec<Written>, CommandError> {
    let mut found = Vec::new();
    for path in paths {
        found.extend(of_text(&input::name(path), &input::read_text(path)?, ceiling)?);
    }
    refuse_same_names(&mut found);
    Ok(found)
}

/// Adds a problem to each template whose name another one has before it: in a cluster both are one.
pub fn refuse_same_names(written: &mut [Written]) {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for written in written {
        let Written { file, line, name, .. } = &*written;
        let place = format!("{file}:{line}");
        if let Some(first) = known.get(name).filter(|_| name.contains('/')) {
            let text = format!("{name} is at {first} as well: use another name");
            written.problem(Rule::DuplicateName, &[Problem::new("metadata.name", text)]);
            continue;
        }
        known.insert(name.clone(), place);
    }
}

/// The templates of a text that a file of this name has, in their order. Objects of other kinds are left out. A
/// `SidecarTemplate` above the ceiling has a problem.
///
/// # Errors
/// When it is not YAML or JSON.
pub fn of_text(file: &str, text: &str, ceiling: Ceiling) -> Result<Vec<Written>, CommandError> {
    let text: Arc<str> = text.into();
    let options = Options {
        duplicate_keys: DuplicateKeys::Noted,
        limits: Limits::FILES,
        ..Options::default()
    };
    let mut found = Vec::new();
    for document in stream(&text, options) {
        let document = document.map_err(|error| CommandError::failed(file, error))?;
        let document = Arc::new(document);
        for (object, path) in objects(&document) {
            if is_template(object) {
                let (text, document) = (Arc::clone(&text), Arc::clone(&document));
                found.push(written(file, Source { text, document, path }, ceiling));
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

fn written(file: &str, source: Source, ceiling: Ceiling) -> Written {
    let origin = source.origin();
    let text = |pointer| origin.object.pointer(pointer).and_then(Value::as_str);
    let parts = [text("/kind"), text("/metadata/namespace"), text("/metadata/name")];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let name = match &parts[..] {
        [kind, rest @ ..] => [&[&*kind.to_lowercase()], rest].concat().join("/"),
        [] => String::new(),
    };
    let read = Template::read(origin.object);
    let twice = origin.document.duplicate_key.as_ref().map(|problem| {
        let (line, column, text) = (problem.line, problem.column, problem.message.clone());
        Placed { rule: Rule::Invalid, line, column, field: String::new(), text }
    });
    let mut written = Written {
        file: file.to_owned(),
        line: origin.line(),
        name,
        template: None,
        problems: twice.into_iter().collect(),
        warnings: Vec::new(),
        source,
    };
    match read {
        Ok(template) => {
            written.problem(Rule::Ceiling, &ceiling.problems(&template));
            written.warn(Rule::UnknownField, &template.warnings);
            written.template = Some(template);
        }
        Err(problems) => written.problem(Rule::Invalid, &problems),
    }
    written
}
