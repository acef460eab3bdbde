//! `injectd template check`: what is wrong in sidecar templates, with its place.

#![expect(clippy::doc_markdown, reason = "help texts have no backticks")]

use std::{io, path::PathBuf};

use injectd_command::{
    CommandError, counted,
    format::{Format, formats},
    input,
    print::Printer,
};
use serde_json::{Value, json};

use super::{
    origin::Placed,
    read::{self, Written},
};

/// What programs read: version and kind.
const API_VERSION: &str = "injectd.dev/v1";
const KIND: &str = "TemplateCheck";

/// Check sidecar templates: fields, types and expressions
///
/// Reads SidecarTemplates and ClusterSidecarTemplates and prints each problem with file, line, column and field.
/// A template with a problem is not used by injectd. Objects of other kinds are ignored. It needs no cluster.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files or folders with templates, or - for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = formats(["text", "json"]))]
    output: Format,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let mut templates = Vec::new();
    for path in input::all_files(&args.files)? {
        templates.extend(read::templates(&path)?);
    }
    if templates.is_empty() {
        let text = "the files have no SidecarTemplate and no ClusterSidecarTemplate";
        return Err(CommandError::Incomplete(text.to_owned()));
    }
    let mut out = Printer::stdout();
    let printed = match args.output {
        Format::Json => out.json(&report(&templates)),
        Format::Text | Format::Yaml => print(&mut out, &templates),
    };
    printed.map_err(CommandError::output)?;
    let problems: usize = templates.iter().map(|template| template.problems.len()).sum();
    if problems == 0 {
        return Ok(());
    }
    let refused = templates.iter().filter(|template| !template.problems.is_empty()).count();
    let (problems, all) = (counted(problems, "problem"), counted(templates.len(), "template"));
    Err(CommandError::Findings(format!("{problems} in {refused} of {all}")))
}

fn print<W: io::Write>(out: &mut Printer<W>, templates: &[Written]) -> io::Result<()> {
    for template in templates {
        for line in template.problem_lines() {
            out.line(&line)?;
        }
        for warning in &template.warnings {
            out.line(&line(&template.file, "warning: ", warning))?;
        }
        if template.problems.is_empty() {
            let warnings = match template.warnings.len() {
                0 => String::new(),
                count => format!(", {}", counted(count, "warning")),
            };
            out.line(&format!("{}: in order{warnings}", template.name))?;
        }
    }
    Ok(())
}

impl Written {
    /// Its problems, each with its place.
    pub(crate) fn problem_lines(&self) -> impl Iterator<Item = String> {
        self.problems.iter().map(|problem| line(&self.file, "", problem))
    }
}

fn line(file: &str, severity: &str, placed: &Placed) -> String {
    let Placed { line, column, field, text } = placed;
    let colon = if field.is_empty() { "" } else { ": " };
    format!("{file}:{line}:{column}: {severity}{field}{colon}{text}")
}

fn report(templates: &[Written]) -> Value {
    let template = |template: &Written| {
        let Written { file, line, name, problems, warnings, .. } = template;
        json!({"file": file, "line": line, "template": name, "problems": problems, "warnings": warnings})
    };
    let templates: Vec<_> = templates.iter().map(template).collect();
    json!({"apiVersion": API_VERSION, "kind": KIND, "templates": templates})
}
