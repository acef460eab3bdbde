//! `--templates`: sidecar templates of files, for commands that work with a mesh otherwise.

use std::path::{Path, PathBuf};

use injectd_command::{
    CommandError,
    config::{ConfigArgs, Purpose},
    counted, input,
    print::print_line,
    templates::{self, Written},
};
use injectd_core::yaml;
use injectd_templates::{Template, ceiling::Ceiling};
use injectd_templates_tree::surroundings::Surroundings;
use serde_json::Value;

use super::manifests::{Input, Listed, listed, text};

/// The templates that are applied: their files, and what those of a namespace may do.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("namespaced_templates", |level| level.requires("templates")))]
pub(super) struct TemplateArgs {
    #[command(flatten)]
    files: TemplateFiles,
    #[command(flatten)]
    ceiling: CeilingArgs,
}

/// The files with templates.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct TemplateFiles {
    /// File or folder with sidecar templates, in place of a mesh; - reads stdin; may be repeated
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    templates: Vec<PathBuf>,
}

/// The ceiling of `SidecarTemplate`s.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct CeilingArgs {
    /// Highest level of the Pod Security Standards that a SidecarTemplate may need; off: there must be none
    #[arg(long, value_name = "LEVEL", default_value = Ceiling::default().as_str(), value_parser = templates::ceilings())]
    namespaced_templates: Ceiling,
}

impl TemplateArgs {
    /// Whether the flag with the files is set.
    pub(super) fn is_set(&self) -> bool {
        self.files.is_set()
    }

    /// Reads the templates, as a webhook with this ceiling serves them. `inputs` are the other files that the command
    /// reads.
    ///
    /// # Errors
    /// As of [`TemplateFiles::read`].
    pub(super) fn read(&self, inputs: &[PathBuf]) -> Result<Vec<Template>, CommandError> {
        self.files.read(inputs, self.ceiling.level())
    }
}

impl CeilingArgs {
    /// The level.
    pub(super) fn level(&self) -> Ceiling {
        self.namespaced_templates
    }
}

impl TemplateFiles {
    /// These files.
    pub(super) fn of(templates: Vec<PathBuf>) -> Self {
        Self { templates }
    }

    /// Whether the flag is set.
    pub(super) fn is_set(&self) -> bool {
        !self.templates.is_empty()
    }

    /// Reads the templates. `inputs` are the other files that the command reads.
    ///
    /// # Errors
    /// As of [`templates_of`], or stdin has the input, too.
    pub(super) fn read(
        &self,
        inputs: &[PathBuf],
        ceiling: Ceiling,
    ) -> Result<Vec<Template>, CommandError> {
        let files = input::all_files(&self.templates)?;
        let is_stdin = |path: &PathBuf| path == Path::new("-");
        if files.iter().any(is_stdin) && (inputs.is_empty() || inputs.iter().any(is_stdin)) {
            let text = "--templates -: the command reads its input from stdin; name a file for one of them";
            return Err(CommandError::Usage(text.to_owned()));
        }
        templates_of(&files, ceiling)
    }
}

/// Reads the templates of files.
///
/// # Errors
/// A file cannot be read or has no template, or a template has a problem: that is printed, with its place.
pub(super) fn templates_of(
    files: &[PathBuf],
    ceiling: Ceiling,
) -> Result<Vec<Template>, CommandError> {
    let written = templates::all(files, ceiling)?;
    if written.is_empty() {
        let text = "--templates: the files have no SidecarTemplate and no ClusterSidecarTemplate";
        return Err(CommandError::Incomplete(text.to_owned()));
    }
    let problems: Vec<_> = written.iter().flat_map(Written::problem_lines).collect();
    if problems.is_empty() {
        return Ok(written.into_iter().filter_map(|one| one.template).collect());
    }
    for problem in &problems {
        print_line(problem);
    }
    let (found, all) = (counted(problems.len(), "problem"), counted(written.len(), "template"));
    Err(CommandError::Findings(format!("--templates: {found} in {all}")))
}

/// Checks that --templates is the only flag that says what is injected: `other` is a flag of a mesh.
pub(super) fn must_suit(other: Option<&str>) -> Result<(), CommandError> {
    let Some(flag) = other else { return Ok(()) };
    Err(CommandError::Usage(format!(
        "{flag} does not work with --templates; a mesh and templates take a command each, such as injectd \
         inject --templates FILE pod.yaml | injectd inject"
    )))
}

/// The objects of `--objects`. With the flag, a namespace that is not among them does not exist.
pub(super) fn surroundings(
    config: &ConfigArgs,
    purpose: Purpose,
) -> Result<Surroundings, CommandError> {
    Ok(of_objects(config.object_values(purpose)?))
}

/// The same of a file with objects.
pub(super) fn of_file(path: Option<&Path>) -> Result<Surroundings, CommandError> {
    let Some(path) = path else { return Ok(of_objects(None)) };
    let name = format!("--objects {}", input::name(path));
    let text = input::utf8(&name, input::read_flag("--objects", path)?)?;
    let objects = yaml::parse_all(&text);
    let objects = objects.map_err(|problem| CommandError::failed(name, problem))?;
    Ok(of_objects(Some(objects)))
}

fn of_objects(objects: Option<Vec<Value>>) -> Surroundings {
    let mut surroundings = Surroundings::default();
    let has_all = objects.is_some();
    for object in objects.into_iter().flatten() {
        add(&mut surroundings, &object, "", "");
    }
    surroundings.has_all_namespaces = has_all;
    surroundings
}

/// Adds an object, or the items of a List, that may leave their kind to the name of the List. `namespace` is
/// the one of objects that name none.
pub(super) fn add(
    surroundings: &mut Surroundings,
    object: &Value,
    listed_kind: &str,
    namespace: &str,
) {
    if let Some(Listed { items, item_kind }) = listed(object) {
        for item in items {
            add(surroundings, item, item_kind, namespace);
        }
        return;
    }
    let kind = match text(object, "/kind") {
        "" => listed_kind,
        kind => kind,
    };
    if !kind.is_empty() {
        surroundings.add(object, kind, namespace);
    }
}

/// Adds the objects of manifests, which win over those of --objects.
pub(super) fn add_inputs(surroundings: &mut Surroundings, inputs: &[Input], namespace: &str) {
    for text in inputs.iter().filter_map(|input| input.text.as_deref().ok()) {
        // An error is reported when the file is changed.
        for document in yaml::stream(text).map_while(Result::ok) {
            add(surroundings, &document.value, "", namespace);
        }
    }
}
