//! Sidecar templates: read from files, and read again when these change. In a cluster without files,
//! `template_watch.rs` has them.
//!
//! A template with a problem is refused at the start. Later it does not replace its last good revision.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use injectd_cluster::sources::Sources;
use injectd_command::{
    CommandError,
    config::Purpose,
    counted, input,
    templates::{self, LastGood, Placed, Written},
};
use injectd_k8s::names::is_dns_label;
use injectd_profiles::TemplatesInjector;
use injectd_templates::{Template, ceiling::Ceiling};
use injectd_templates_mesh::Templates;
use tracing::warn;

use super::{pod, process::Process, reporter::Reporter};
use crate::{
    injector::Injector,
    mesh::Mesh as _,
    reload::{Files, Reloaded},
    standalone::Standalone,
};

/// The flags of sidecar templates.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Sidecar templates")]
pub(crate) struct TemplateArgs {
    /// File or folder with sidecar templates, for --mesh templates; may be repeated [default: the
    /// templates of the cluster]
    #[arg(
        long = "templates",
        value_name = "FILE",
        value_delimiter = ',',
        env = "INJECTD_TEMPLATES"
    )]
    paths: Vec<PathBuf>,
    /// Highest level of the Pod Security Standards that a SidecarTemplate may need; off: none is served
    /// [default: baseline]
    #[arg(long, value_name = "LEVEL", value_parser = templates::ceilings(), env = "INJECTD_NAMESPACED_TEMPLATES")]
    namespaced_templates: Option<Ceiling>,
    /// Namespace of injectd: of the revisions of templates and of the Leases of replicas. Its pods are
    /// never changed [default: $POD_NAMESPACE]
    #[arg(long, value_name = "NAMESPACE")]
    template_namespace: Option<String>,
}

impl TemplateArgs {
    /// What is wrong with the flags.
    pub(super) fn problem(&self, are_served: bool, is_standalone: bool) -> Option<String> {
        let set = [
            ("--templates (or its variable INJECTD_TEMPLATES)", !self.paths.is_empty()),
            ("--namespaced-templates", self.namespaced_templates.is_some()),
            ("--template-namespace", self.template_namespace.is_some()),
        ];
        match injectd_command::first_set(set) {
            Some(flag) if !are_served => return Some(format!("{flag} needs --mesh templates")),
            _ if !are_served => return None,
            _ => {}
        }
        let namespace = self.namespace();
        if self.paths.is_empty() && is_standalone {
            let text = "--mesh templates with --standalone needs --templates (or its variable INJECTD_TEMPLATES)";
            Some(text.to_owned())
        } else if self.paths.is_empty() && namespace.is_none() {
            let text = "--mesh templates needs --template-namespace or the variable POD_NAMESPACE; or \
                --templates, for templates of files";
            Some(text.to_owned())
        } else {
            let wrong = namespace.filter(|namespace| !is_dns_label(namespace))?;
            Some(format!("--template-namespace: {wrong:?} is not the name of a namespace"))
        }
    }

    /// Whether the templates are those of a cluster.
    pub(super) fn are_of_cluster(&self) -> bool {
        self.paths.is_empty()
    }

    /// The namespace of injectd.
    pub(super) fn namespace(&self) -> Option<String> {
        let named = self.template_namespace.clone().or_else(pod::namespace);
        named.filter(|namespace| !namespace.is_empty())
    }

    /// The highest level that a `SidecarTemplate` may need.
    pub(super) fn ceiling(&self) -> Ceiling {
        self.namespaced_templates.unwrap_or_default()
    }
}

/// The flag with the files.
const FLAG: &str = "--templates";
/// The metric with the problems of templates.
pub(super) const REJECTED: &str = "injectd_template_rejected";
/// Maximum number of problems that are reported in metrics since the start: each one is a series of its own.
pub(super) const MAX_REPORTED: usize = 200;

/// The templates of files, with the last good revision of each.
struct Followed {
    paths: Vec<PathBuf>,
    ceiling: Ceiling,
    last_good: LastGood,
    reporter: Reporter,
    /// The problems in metrics since the start, and whether each is there now.
    reported: BTreeMap<Series, bool>,
}

/// The labels of a problem: template, file, line and column.
type Series = [String; 4];

impl Process {
    /// Sidecar templates, which are read again when their files change; without sources, without a cluster.
    pub(super) fn templates(
        &self,
        sources: Option<Sources>,
    ) -> Result<Arc<TemplatesInjector>, CommandError> {
        let (flags, config) = (&self.args.templates, &self.args.config);
        let (paths, own_namespace) = (flags.paths.clone(), flags.namespace());
        let sources = match (sources, config.objects(Purpose::Serve)?) {
            (Some(sources), _) => sources,
            (None, Some(objects)) => Standalone::Listed(Arc::new(objects)).into(),
            (None, None) => Standalone::default().into(),
        };
        let files = Files::listed(paths.clone(), listed);
        let reporter = self.reporter.clone();
        let mut followed = Followed {
            paths,
            ceiling: flags.ceiling(),
            last_good: LastGood::default(),
            reporter,
            reported: BTreeMap::new(),
        };
        let templates = followed.first()?;
        let mesh = Templates::new(templates, own_namespace.clone(), 1);
        let injector = Arc::new(Injector::new(mesh, sources));
        self.reporter.report_templates(&injector.mesh());
        let reloaded = Arc::clone(&injector);
        self.follow_config("templates", files, move || {
            let (templates, outcome) = followed.again()?;
            let generation = reloaded.mesh().configuration().generation + 1;
            reloaded.replace_mesh(Templates::new(templates, own_namespace.clone(), generation));
            followed.reporter.report_templates(&reloaded.mesh());
            Ok(outcome)
        })?;
        Ok(injector)
    }
}

impl Followed {
    /// Reads the templates for the first time.
    ///
    /// # Errors
    /// A file cannot be read, there is no template, or one has a problem.
    fn first(&mut self) -> Result<Vec<Template>, CommandError> {
        let written = self.read()?;
        if written.is_empty() {
            let text =
                format!("{FLAG}: the files have no SidecarTemplate and no ClusterSidecarTemplate");
            return Err(CommandError::Incomplete(text));
        }
        let problems: Vec<_> = written.iter().flat_map(Written::problem_lines).collect();
        if problems.is_empty() {
            return Ok(written.into_iter().filter_map(|one| self.last_good.put(one)).collect());
        }
        let (found, all) = (counted(problems.len(), "problem"), counted(written.len(), "template"));
        Err(CommandError::failed(format!("{FLAG}: {found} in {all}"), problems.join("\n")))
    }

    /// Reads the templates again.
    ///
    /// # Errors
    /// A file cannot be read, or is not YAML or JSON: nothing is known about its templates.
    fn again(&mut self) -> Result<(Vec<Template>, Reloaded), CommandError> {
        let written = self.read()?;
        let names: BTreeSet<_> = written.iter().map(|one| one.name.clone()).collect();
        self.last_good.keep(&names);
        let mut problems = BTreeSet::new();
        let mut served = BTreeMap::new();
        let (refused, good): (Vec<_>, Vec<_>) =
            written.into_iter().partition(|one| !one.problems.is_empty());
        for one in good {
            let name = one.name.clone();
            served.extend(self.last_good.put(one).map(|template| (name, template)));
        }
        for Written { name, file, problems: found, .. } in &refused {
            if !served.contains_key(name) {
                served.extend(self.last_good.of(name).map(|last| (name.clone(), last)));
            }
            for problem in found {
                report(key(name), file, problem, served.contains_key(name));
                problems.insert(series(key(name), file, problem));
            }
        }
        let outcome = if problems.is_empty() { Reloaded::Whole } else { Reloaded::InPart };
        self.count(problems);
        Ok((served.into_values().collect(), outcome))
    }

    fn read(&self) -> Result<Vec<Written>, CommandError> {
        let mut written = Vec::new();
        for path in input::all_files(&self.paths)? {
            let name = input::name(&path);
            let text = input::utf8(&name, input::read_served(FLAG, &path)?)?;
            written.extend(templates::of_text(&name, &text, self.ceiling)?);
        }
        templates::refuse_same_names(&mut written);
        Ok(written)
    }

    /// Sets the metrics of the problems.
    fn count(&mut self, problems: BTreeSet<Series>) {
        for (series, is_there) in &mut self.reported {
            *is_there = problems.contains(series);
        }
        for series in problems {
            if self.reported.len() < MAX_REPORTED {
                self.reported.insert(series, true);
            }
        }
        for (series, is_there) in &self.reported {
            let [template, file, line, column] = series.clone();
            let labels =
                [("template", template), ("file", file), ("line", line), ("column", column)];
            self.reporter.registry.set(REJECTED, &labels, f64::from(u8::from(*is_there)));
        }
    }
}

/// The files below paths; paths that cannot be read are among them.
fn listed(paths: &[PathBuf]) -> Vec<PathBuf> {
    let files = input::files(paths).into_iter();
    files.map(|found| found.unwrap_or_else(|(path, _)| path)).collect()
}

/// A name without the kind, as counters and messages have it.
fn key(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, key)| key)
}

fn series(template: &str, file: &str, problem: &Placed) -> Series {
    [template.to_owned(), file.to_owned(), problem.line.to_string(), problem.column.to_string()]
}

fn report(template: &str, file: &str, problem: &Placed, is_served: bool) {
    let message = if is_served {
        "a sidecar template is rejected; its last good revision stays in use"
    } else {
        "a sidecar template is rejected; it has no earlier revision, and is not served"
    };
    let Placed { line, column, field, text, .. } = problem;
    let (field, error) = (&**field, &**text);
    warn!(message, template, file, line, column, field, error);
}
