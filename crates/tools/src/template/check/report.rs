//! What a check has found: as lines, as JSON, or as SARIF.

use std::io;

use injectd_command::{
    counted,
    print::Printer,
    sarif::{self, Finding},
};
use injectd_templates::scope::{Entry, Note, Scope};
use serde_json::{Value, json};

use super::{facts::Facts, pods::Pod};
use injectd_command::templates::{Placed, Rule, Written};

/// What programs read: version and kind.
const API_VERSION: &str = "injectd.dev/v1";
const KIND: &str = "TemplateCheck";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A line for each finding
    Text,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code hosts
    Sarif,
}

/// What a check has found.
pub(super) struct Report<'r> {
    pub(super) templates: &'r [Written],
    /// Of each of them, unless it has a problem.
    pub(super) facts: &'r [Option<Facts>],
    /// Which pods the webhook must be called for.
    pub(super) scope: &'r Scope,
    /// Pods of manifests.
    pub(super) pods: &'r [Pod],
}

impl Report<'_> {
    pub(super) fn print<W: io::Write>(
        &self,
        out: &mut Printer<W>,
        format: Format,
    ) -> io::Result<()> {
        match format {
            Format::Text => self.lines(out),
            Format::Json => out.json(&self.json()),
            Format::Sarif => out.json(&self.sarif()),
        }
    }

    fn lines<W: io::Write>(&self, out: &mut Printer<W>) -> io::Result<()> {
        for (template, facts) in self.templates.iter().zip(self.facts) {
            for line in template.problem_lines() {
                out.line(&line)?;
            }
            for warning in &template.warnings {
                out.line(&warning.line_of(&template.file, "warning: "))?;
            }
            if template.problems.is_empty() {
                let warnings = match template.warnings.len() {
                    0 => String::new(),
                    count => format!(", {}", counted(count, "warning")),
                };
                out.line(&format!("{}: in order{warnings}", template.name))?;
                for line in facts.iter().flat_map(|facts| facts.lines(&template.file)) {
                    out.line(&line)?;
                }
            }
        }
        if self.templates.iter().any(|template| template.problems.is_empty()) {
            self.scope.to_string().lines().try_for_each(|line| out.line(line))?;
        }
        self.pods.iter().flat_map(Pod::lines).try_for_each(|line| out.line(&line))
    }

    fn json(&self) -> Value {
        let template = |template: &Written, facts: Option<&Facts>| {
            let Written { file, line, name, problems, warnings, .. } = template;
            let facts = facts.map(Facts::json);
            json!({
                "file": file,
                "line": line,
                "template": name,
                "problems": problems,
                "warnings": warnings,
                "facts": facts,
            })
        };
        let templates = self.templates.iter().zip(self.facts);
        let templates: Vec<_> =
            templates.map(|(one, facts)| template(one, facts.as_ref())).collect();
        json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "templates": templates,
            "scope": scope(self.scope),
            "pods": self.pods,
        })
    }

    fn sarif(&self) -> Value {
        let text = |placed: &Placed| match &*placed.field {
            "" => placed.text.clone(),
            field => format!("{field}: {}", placed.text),
        };
        let all = self.templates.iter().flat_map(|written| {
            let errors = written.problems.iter().map(|placed| (placed, true));
            let warnings = written.warnings.iter().map(|placed| (placed, false));
            errors.chain(warnings).map(|(placed, is_error)| (&*written.file, placed, is_error))
        });
        let all: Vec<_> = all.collect();
        let texts: Vec<_> = all.iter().map(|(_, placed, _)| text(placed)).collect();
        let findings: Vec<_> = all
            .iter()
            .zip(&texts)
            .map(|((file, placed, is_error), text)| Finding {
                rule: placed.rule.id(),
                is_error: *is_error,
                text,
                file,
                place: [placed.line, placed.column],
            })
            .collect();
        let rules = Rule::ALL.map(|(_, id, about)| sarif::Rule { id, about });
        sarif::log(&rules, &findings)
    }
}

/// What the webhook must be called for.
fn scope(scope: &Scope) -> Value {
    let entry = |entry: &Entry| {
        json!({
            "namespaceSelector": entry.namespace_selector.requirements(),
            "objectSelector": entry.object_selector.requirements(),
            "condition": entry.condition,
            "pods": entry.pods,
        })
    };
    let texts = |notes: &[Note]| notes.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "entries": scope.entries.iter().map(entry).collect::<Vec<_>>(),
        "allPods": texts(&scope.all_pods),
        "notes": texts(&scope.notes),
    })
}
