//! `injectd template check`: what is wrong in sidecar templates, with its place.

#![expect(clippy::doc_markdown, reason = "help texts have no backticks")]

use std::path::PathBuf;

use injectd_command::{CommandError, counted, input, print::Printer};
use injectd_templates::{
    advice::{Advice, advice},
    releases::{NEWEST, OLDEST, lacking},
    scope::Scope,
};

use injectd_command::templates::{self, Rule, Written};

use crate::sidecars::CeilingArgs;

mod facts;
mod pods;
mod report;
mod together;

use facts::Facts;
use pods::Pod;
use report::{Format, Report};

/// Check sidecar templates: fields, types, expressions, and what they add
///
/// Reads SidecarTemplates and ClusterSidecarTemplates and prints each problem with file, line, column and field.
/// A template with a problem is not used by injectd. Templates that are given together are also compared with each
/// other. Objects of other kinds are ignored. It needs no cluster.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files or folders with templates, or - for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    ceiling: CeilingArgs,
    /// Release of Kubernetes, such as 1.33: fields that it does not have are problems
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    kubernetes: Option<u32>,
    /// File or folder with manifests: print what each template would do to each pod; may be repeated
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    manifests: Vec<PathBuf>,
    /// Namespace of manifests that do not set one
    #[arg(short, long, default_value = "default", requires = "manifests")]
    namespace: String,
    /// Findings for which the exit code is 3
    #[arg(long, value_name = "SEVERITY", default_value = "problem")]
    fail_on: FailOn,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// A template is not used
    Problem,
    /// A template is used, and should be looked at
    Warning,
    /// No finding
    None,
}

/// The minor release of Kubernetes that a text names.
fn release(text: &str) -> Result<u32, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let minor = text.strip_prefix("1.").and_then(|rest| rest.split('.').next()?.parse().ok());
    minor
        .filter(|minor| (OLDEST..=NEWEST).contains(minor))
        .ok_or_else(|| format!("expected a release from 1.{OLDEST} to 1.{NEWEST}, such as 1.33"))
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let mut templates = templates::all(&input::all_files(&args.files)?, args.ceiling.level())?;
    if templates.is_empty() {
        let text = "the files have no SidecarTemplate and no ClusterSidecarTemplate";
        return Err(CommandError::Incomplete(text.to_owned()));
    }
    let facts: Vec<_> = templates.iter_mut().map(|written| args.check(written)).collect();
    together::check(&mut templates);
    let usable = templates.iter().filter(|written| written.problems.is_empty());
    let scope = Scope::of(usable.filter_map(|written| written.template.as_ref()), None);
    let pods = args.pods(&mut templates)?;
    let report = Report { templates: &templates, facts: &facts, scope: &scope, pods: &pods };
    report.print(&mut Printer::stdout(), args.output).map_err(CommandError::output)?;
    args.result(&templates)
}

impl Args {
    /// Checks a template by itself.
    fn check(&self, written: &mut Written) -> Option<Facts> {
        let template = written.template.take()?;
        if let Some(release) = self.kubernetes {
            let lacking = lacking(&template, release);
            written.problem(Rule::Kubernetes, &lacking.unknown);
            written.warn(Rule::Kubernetes, &lacking.gated);
        }
        for Advice { topic, problem } in advice(&template) {
            written.warn(topic.into(), &[problem]);
        }
        let facts = Facts::of(written, &template);
        written.warn(Rule::Cost, &facts.warnings());
        written.template = Some(template);
        Some(facts)
    }

    /// What the templates do to the pods of manifests; they are taken for that.
    fn pods(&self, templates: &mut [Written]) -> Result<Vec<Pod>, CommandError> {
        if self.manifests.is_empty() {
            return Ok(Vec::new());
        }
        let usable = templates.iter_mut().filter(|written| written.problems.is_empty());
        let usable = usable.filter_map(|written| written.template.take()).collect();
        pods::all(usable, &input::all_files(&self.manifests)?, &self.namespace)
    }

    fn result(&self, templates: &[Written]) -> Result<(), CommandError> {
        let problems = templates.iter().map(|written| written.problems.len()).sum();
        let warnings = templates.iter().map(|written| written.warnings.len()).sum();
        let counts = match self.fail_on {
            FailOn::Problem => [problems, 0],
            FailOn::Warning => [problems, warnings],
            FailOn::None => [0, 0],
        };
        let counted_if = |(count, of)| (count > 0).then(|| counted(count, of));
        let words: Vec<_> =
            counts.into_iter().zip(["problem", "warning"]).filter_map(counted_if).collect();
        if words.is_empty() {
            return Ok(());
        }
        let is_found = |written: &&Written| {
            !written.problems.is_empty() || counts[1] > 0 && !written.warnings.is_empty()
        };
        let (found, all) = (templates.iter().filter(is_found).count(), templates.len());
        let (words, all) = (words.join(" and "), counted(all, "template"));
        Err(CommandError::Findings(format!("{words} in {found} of {all}")))
    }
}
