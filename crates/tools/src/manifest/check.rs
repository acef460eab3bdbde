//! `injectd manifest check`: what is wrong or dangerous in webhook configurations and in Istio's templates.

use std::{io, path::PathBuf};

use injectd_cluster::causes::with_causes;
use injectd_command::{
    CommandError,
    cluster_config::ClusterArgs,
    counted,
    format::{Format, formats},
    input,
    print::Printer,
};
use injectd_controllers::audit::cluster;
use injectd_core::yaml;
use injectd_webhooks::check::{self, Finding, Severity};
use serde_json::{Value, json};

use crate::manifests;

mod ca_bundle;
mod lifetime;
mod promise;
mod served;
mod unquoted;

use served::Connect;
use unquoted::Unquoted;

/// What programs read: version and kind.
const API_VERSION: &str = "injectd.dev/v1";
const KIND: &str = "ManifestCheck";

/// Name what is wrong or dangerous in webhook configurations, and in Istio's templates
///
/// Checks mutating and validating configurations: fields that the API server rejects, rules and
/// selectors that never match, namespaces that cannot be repaired while the webhook is gone,
/// certificates that expire, and webhooks that inject the same pod. In the ConfigMaps
/// istio-sidecar-injector of Istio's revisions it looks for templates that paste values of pods into YAML
/// without quotes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files or folders with manifests, or - for stdin
    #[arg(value_name = "FILE", required_unless_present = "live")]
    files: Vec<PathBuf>,
    /// Check the configurations of the cluster, and Istio's ConfigMaps
    #[arg(long, conflicts_with = "files")]
    live: bool,
    /// Address of a webhook, such as that of kubectl port-forward: the caBundle must verify the
    /// certificate that is served there. With the Service, if configurations lead to several
    #[arg(long, value_name = "[NAMESPACE/SERVICE=]HOST:PORT")]
    connect: Vec<Connect>,
    /// Findings for which the exit code is 3: those of this severity and worse
    #[arg(long, value_name = "SEVERITY", default_value = "danger")]
    fail_on: FailOn,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = formats(["text", "json"]))]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// What the API server rejects
    Error,
    /// What fails more once something fails
    Danger,
    /// What is probably not meant
    Warning,
    /// What could be better
    Suggestion,
    /// No finding
    None,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    if let Some(flag) = args.cluster.set().filter(|_| !args.live) {
        let text = format!("{flag} needs --live: files are checked without a cluster");
        return Err(CommandError::Usage(text));
    }
    let runtime = manifests::runtime()?;
    let (objects, mut notes) =
        if args.live { runtime.block_on(live(args))? } else { (read(&args.files)?, Vec::new()) };
    let configurations: Vec<_> =
        objects.iter().filter(|object| check::is_configuration(object)).collect();
    let mut unquoted = unquoted::check(&objects);
    if configurations.is_empty() && unquoted.config_maps == 0 {
        return Err(CommandError::Incomplete(nothing(args.live, &unquoted.notes)));
    }
    let served = runtime.block_on(served::all(&args.connect, &configurations))?;
    let mut findings = check::check(configurations.iter().copied());
    let context = ca_bundle::Context { is_live: args.live, served: &served };
    findings.extend(ca_bundle::check(&configurations, context));
    findings.extend(unquoted.findings());
    // The sort is stable: within a severity the input gives the order.
    findings.sort_by_key(|finding| finding.severity);
    notes.append(&mut unquoted.notes);
    let configurations = configurations.len();
    let report = Report { configurations, unquoted: &unquoted, findings: &findings, notes };
    report.print(args.output).map_err(CommandError::output)?;
    args.result(&findings)
}

/// Why there is nothing to check.
fn nothing(is_live: bool, problems: &[String]) -> String {
    let whose = if is_live { "the cluster has" } else { "the files have" };
    let problems = problems.iter().fold(String::new(), |all, problem| all + "; " + problem);
    format!(
        "{whose} no MutatingWebhookConfiguration, no ValidatingWebhookConfiguration, and no usable \
         ConfigMap istio-sidecar-injector{problems}"
    )
}

impl Args {
    fn result(&self, findings: &[Finding]) -> Result<(), CommandError> {
        let limit = match self.fail_on {
            FailOn::Error => Severity::Error,
            FailOn::Danger => Severity::Danger,
            FailOn::Warning => Severity::Warning,
            FailOn::Suggestion => Severity::Suggestion,
            FailOn::None => return Ok(()),
        };
        let count = findings.iter().filter(|finding| finding.severity <= limit).count();
        if count == 0 {
            return Ok(());
        }
        let (all, level) = (counted(findings.len(), "finding"), name(limit));
        let verb = if count == 1 { "fails" } else { "fail" };
        Err(CommandError::Findings(format!(
            "{count} of {all} {verb} the check (--fail-on {level})"
        )))
    }
}

fn read(files: &[PathBuf]) -> Result<Vec<Value>, CommandError> {
    let mut objects = Vec::new();
    for path in input::all_files(files)? {
        let name = input::name(&path);
        let documents = yaml::parse_all(&input::read_text(&path)?)
            .map_err(|error| CommandError::failed(name.as_str(), error))?;
        for mut document in documents {
            let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
            match document.get_mut("items") {
                Some(Value::Array(items)) if is_list => objects.append(items),
                _ => objects.push(document),
            }
        }
    }
    Ok(objects)
}

/// The objects of the cluster, and what cannot be read.
async fn live(args: &Args) -> Result<(Vec<Value>, Vec<String>), CommandError> {
    let mut notes = vec![not_seen()];
    let Some(client) = args.cluster.client(true).await? else { return Ok((Vec::new(), notes)) };
    let read = cluster::webhook_configurations(&client).await;
    let mut objects = read.map_err(|error| {
        CommandError::failed("cannot read the webhook configurations", with_causes(&error))
    })?;
    for namespace in unquoted::namespaces(&objects) {
        match unquoted::config_maps(&client, &namespace).await {
            Ok(maps) => objects.extend(maps),
            Err(problem) => notes.push(problem),
        }
    }
    Ok((objects, notes))
}

/// What no API shows.
fn not_seen() -> String {
    format!(
        "configurations that an API server of 1.36 or later loads from its own files (names that end \
         in {}) are not in its API, and were not checked",
        check::STATIC_SUFFIX
    )
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Danger => "danger",
        Severity::Warning => "warning",
        Severity::Suggestion => "suggestion",
    }
}

/// What is printed.
struct Report<'r> {
    configurations: usize,
    unquoted: &'r Unquoted,
    findings: &'r [Finding],
    /// What was not checked.
    notes: Vec<String>,
}

impl Report<'_> {
    fn print(&self, format: Format) -> io::Result<()> {
        let mut out = Printer::stdout();
        if format == Format::Json {
            let report = json!({
                "apiVersion": API_VERSION, "kind": KIND, "configurations": self.configurations,
                "configMaps": self.unquoted.config_maps, "findings": self.findings,
                "unquoted": self.unquoted.as_json(), "notes": self.notes,
            });
            return out.json(&report);
        }
        for Finding { severity, configuration, webhook, field, problem, advice } in self.findings {
            let severity = name(*severity);
            let place = [Some(configuration), webhook.as_ref(), Some(field)];
            let place: Vec<_> =
                place.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            let place = place.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            out.line(&format!("{severity}: {place}: {problem}"))?;
            out.line(&format!("  {advice}"))?;
        }
        for note in &self.notes {
            out.line(&format!("note: {note}"))?;
        }
        let maps = self.unquoted.config_maps;
        let checked = match (self.configurations, maps) {
            (all, 0) => counted(all, "configuration"),
            (0, maps) => counted(maps, "ConfigMap"),
            (all, maps) => {
                format!("{}, {}", counted(all, "configuration"), counted(maps, "ConfigMap"))
            }
        };
        out.line(&format!("{checked}: {}", counted(self.findings.len(), "finding")))
    }
}
