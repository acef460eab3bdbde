//! `injectd audit`: pods without the sidecar that they should have, with an outdated one, or with one
//! that they should not have.

use std::{collections::BTreeMap, io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use injectd_cluster::causes::with_causes;
use injectd_command::{
    CommandError,
    cluster_config::ClusterArgs,
    config::ConfigArgs,
    input,
    print::{self, Printer, print_line},
    units::parse_duration,
};
use injectd_controllers::audit::{
    self, Auditor, Mesh, Namespace, Served, Webhooks, audit_log,
    cluster::{self, Judges, ReadError, Scope},
    summary::Summary,
};
use injectd_webhooks::{Configurations, injectors::Product};
use serde_json::Value;

use super::{
    in_force,
    manifests::{self, text},
    meshes::Meshes,
    progress::Progress,
    stream::{Document, Documents, Errors, Step},
};

mod files;
mod filter;
mod output;
mod pods;
mod table;
mod templates;

use self::{
    files::Input,
    filter::{Filter, Kind},
};

/// Find pods without a sidecar, with an outdated one, or with one that they should not have
///
/// Judges each pod as if it were created now: by the webhooks of the cluster, and by the decision of
/// the mesh. Groups the findings by workload, with what to do. Reads the cluster of the current
/// context, or files with pods, Namespaces and webhook configurations, such as the output of
/// kubectl get -o json.
///
/// Pods with sidecar templates are compared with those of the cluster, or of --templates.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or folders with pods, or - for stdin [default: the cluster]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Namespace to audit; may be repeated [default: all]
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "files")]
    namespace: Vec<String>,
    /// Audit all namespaces (the default)
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Label selector of the pods
    #[arg(
        short = 'l',
        long,
        value_name = "SELECTOR",
        default_value = "",
        conflicts_with = "files",
        hide_default_value = true
    )]
    selector: String,
    /// Audit again and again, and print the findings when they change, until Ctrl-C
    #[arg(long, conflicts_with_all = ["files", "audit_log"])]
    watch: bool,
    /// Time between two audits of --watch
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration, requires = "watch")]
    interval: Duration,
    /// Audit log of the API server, to find pods that were let in while a webhook failed; JSON
    /// lines, plain or compressed
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// File or folder with the sidecar templates that are in force; may be repeated [default: those of
    /// the cluster]
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    templates: Vec<PathBuf>,
    /// Findings that are printed, and that decide the exit code [default: all]
    #[arg(long, value_name = "FINDING,...", value_delimiter = ',')]
    finding: Vec<Kind>,
    /// Findings for which the exit code is 3
    #[arg(
        long,
        value_name = "FINDING,...",
        value_delimiter = ',',
        default_value = "missing,outdated,unexpected,no-webhook,failed-open"
    )]
    fail_on: Vec<FailOn>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: output::Format,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Pods without the sidecar that they should have
    Missing,
    /// Pods with an outdated sidecar
    Outdated,
    /// Pods with a sidecar that they should not have
    Unexpected,
    /// Pods of a mesh without a webhook, or whose webhook would not be called for new ones
    NoWebhook,
    /// Pods that were let in while a webhook failed
    FailedOpen,
    /// Pods with values that change other fields than their own in Istio's templates
    Tainted,
    /// No finding
    None,
}

impl FailOn {
    /// The kind of finding; `None` for none.
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Missing => Some(Kind::Missing),
            Self::Outdated => Some(Kind::Outdated),
            Self::Unexpected => Some(Kind::Unexpected),
            Self::NoWebhook => Some(Kind::NoWebhook),
            Self::FailedOpen => Some(Kind::FailedOpen),
            Self::Tainted => Some(Kind::Tainted),
            Self::None => None,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: &Args) -> Result<(), CommandError> {
    args.config.must_suit_the_mesh()?;
    let runtime = manifests::runtime()?;
    if args.watch {
        if args.output == output::Format::Jsonl {
            let text =
                "-o jsonl prints each pod once; --watch prints what changes: use another format";
            return Err(CommandError::Usage(text.to_owned()));
        }
        return runtime.block_on(watch(args));
    }
    let mut summary = Summary::default();
    if args.output == output::Format::Jsonl {
        pods::follow(&mut summary, args.finding.clone());
    }
    let is_about_pods = !args.files.is_empty() || args.audit_log.is_none() || args.names_cluster();
    if !args.files.is_empty() {
        runtime.block_on(audit_files(args, &mut summary))?;
    } else if is_about_pods {
        runtime.block_on(audit_cluster(args, &mut summary))?;
    }
    if let Some(path) = &args.audit_log {
        read_audit_log(path, &mut summary)?;
    }
    summary.followed().map_err(CommandError::output)?;
    let (out, filter) = (&mut Printer::stdout(), Filter(&args.finding));
    output::write(out, &summary, filter, args.output, is_about_pods)
        .map_err(CommandError::output)?;
    args.result(&summary)
}

impl Args {
    fn names_cluster(&self) -> bool {
        self.cluster.set().is_some() || self.all_namespaces || !self.namespace.is_empty()
    }

    fn result(&self, summary: &Summary) -> Result<(), CommandError> {
        // Before the findings: an audit that saw a part must not end with the code of one that
        // found little.
        if !summary.not_read().is_empty() {
            let text = "the audit is not complete: see what could not be read";
            return Err(CommandError::Incomplete(text.to_owned()));
        }
        let counts = summary.counts();
        let failed_open = summary.failed_open().len() as u64;
        let found = [
            (FailOn::Missing, counts.missing, "without their sidecar"),
            (FailOn::Outdated, counts.outdated, "with an outdated sidecar"),
            (FailOn::Unexpected, counts.unexpected, "with a sidecar that they should not have"),
            (
                FailOn::NoWebhook,
                [summary.without_webhook(), summary.not_called()]
                    .into_iter()
                    .flat_map(|meshes| meshes.values())
                    .sum(),
                "without a webhook for new ones",
            ),
            (FailOn::FailedOpen, failed_open, "let in while a webhook failed"),
            (FailOn::Tainted, counts.tainted, "with values that change other fields"),
        ];
        let is_printed =
            |kind: &FailOn| kind.kind().is_some_and(|finding| Filter(&self.finding).has(finding));
        let fails = found.into_iter().filter(|(kind, count, _)| {
            *count > 0 && is_printed(kind) && self.fail_on.contains(kind)
        });
        let texts: Vec<_> = fails.map(|(_, count, text)| format!("{count} {text}")).collect();
        if texts.is_empty() || self.fail_on.contains(&FailOn::None) {
            return Ok(());
        }
        Err(CommandError::Findings(format!("pods: {}", texts.join(", "))))
    }
}

/// An auditor for the webhooks of a cluster or of files, with the meshes that decide for them. What
/// cannot be read is noted.
pub(super) async fn auditor(
    meshes: &mut Meshes<'_>,
    webhooks: Webhooks,
    templates: Option<Served>,
    summary: &mut Summary,
) -> Result<Auditor, CommandError> {
    let mut known = BTreeMap::new();
    for webhook in webhooks.configurations.webhooks() {
        let product = webhook.product().filter(|product| product.is_known());
        let Some(product) = product.filter(|product| *product != Product::Templates) else {
            if product.is_some() && templates.is_none() {
                note_unknown_templates(summary);
            }
            continue;
        };
        match meshes.of_product(product, Some(webhook)).await {
            Ok(mesh) => {
                for note in &mesh.notes {
                    summary.add_not_read(note.clone());
                }
                let key = (webhook.configuration.clone(), webhook.name.clone());
                let (profile, path) = (mesh.profile.clone(), mesh.path.clone());
                known.insert(key, Arc::new(Mesh { profile, path }));
            }
            Err(error) => summary.add_not_read(with_causes(&error)),
        }
    }
    let meshes = audit::Meshes { by_webhook: known, templates };
    let auditor = Auditor::new(webhooks, meshes).await;
    auditor.map_err(|error| CommandError::failed("cannot judge pods", error))
}

/// Notes that the templates are not known, unless the reason is noted.
fn note_unknown_templates(summary: &mut Summary) {
    if !summary.not_read().iter().any(|note| note.starts_with(in_force::NOT_KNOWN)) {
        summary.add_not_read(format!("{}: set --templates", in_force::NOT_KNOWN));
    }
}

/// Audits until Ctrl-C. An audit that fails is reported, and the next one follows.
async fn watch(args: &Args) -> Result<(), CommandError> {
    let mut shown = Vec::new();
    let mut last = Ok(());
    loop {
        let mut summary = Summary::default();
        let audit = async {
            audit_cluster(args, &mut summary).await?;
            let mut text = Vec::new();
            let out = &mut Printer::new(&mut text);
            let filter = Filter(&args.finding);
            output::write(out, &summary, filter, args.output, true)
                .map_err(CommandError::output)?;
            // A second equal table says nothing, and hides the place of a change.
            if text != shown {
                print::stdout().write_all(&text).map_err(CommandError::output)?;
                shown = text;
            }
            args.result(&summary)
        };
        tokio::select! {
            audited = audit => last = audited,
            interrupted = tokio::signal::ctrl_c() => return interrupted.map_err(CommandError::output).and(last),
        }
        match &last {
            Err(CommandError::OutputClosed) => return last,
            Err(CommandError::Findings(_)) | Ok(()) => {}
            Err(error) => print_line(&format!("error: {}", with_causes(error))),
        }
        tokio::select! {
            () = tokio::time::sleep(args.interval) => {}
            interrupted = tokio::signal::ctrl_c() => return interrupted.map_err(CommandError::output).and(last),
        }
    }
}

async fn audit_cluster(args: &Args, summary: &mut Summary) -> Result<(), CommandError> {
    let Some(client) = args.cluster.client(true).await? else { return Ok(()) };
    let mut progress = Progress::of_requests(true);
    progress.say("webhook configurations");
    let webhooks = cluster::webhooks(&client).await.map_err(|error| failed(&error))?;
    progress.say("namespaces");
    let namespaces = match cluster::namespaces(&client).await {
        Ok(namespaces) => namespaces,
        // Who may read some namespaces only may not list all. The pods are judged as far as that
        // goes.
        Err(error @ ReadError::Refused { .. }) if !args.namespace.is_empty() => {
            summary.add_not_read(with_causes(&error));
            BTreeMap::new()
        }
        Err(error) => return Err(failed(&error)),
    };
    if let Some(missing) =
        args.namespace.iter().find(|name| !namespaces.is_empty() && !namespaces.contains_key(*name))
    {
        return Err(CommandError::Incomplete(format!("namespace {missing} does not exist")));
    }
    progress.say("the configurations of the meshes");
    let templates = args.templates_of_cluster(&client, &webhooks, summary).await?;
    let meshes = &mut Meshes::new(&args.config, Some(&client));
    let auditor = auditor(meshes, webhooks, templates, summary).await?;
    let scope = Scope { namespaces: args.namespace.clone(), selector: args.selector.clone() };
    let advance = |count| progress.count(count, "pod");
    let judges = Judges::new(Arc::new(auditor), namespaces);
    let audit = cluster::audit(&client, &scope, &judges, summary, advance).await;
    progress.finish();
    audit.map_err(|error| failed(&error))
}

async fn audit_files(args: &Args, summary: &mut Summary) -> Result<(), CommandError> {
    let mut input = Input::read(&args.files)?;
    // Nothing to judge is mostly a wrong file, and would pass as an audit without findings.
    if input.has_no_pods() {
        return Err(CommandError::Incomplete("no pod is in the input; audit needs one".to_owned()));
    }
    let known = input.facts.configurations()?;
    let templates = args.templates_of_files(&mut input, known.is_none())?;
    let nothing: &[Value] = &[];
    let assumed = || templates.as_ref().and_then(|_| Configurations::read(nothing).ok());
    let Some(configurations) = known.or_else(assumed) else {
        return Err(CommandError::Incomplete(
            "no webhook configuration is in the input; add the output of kubectl get \
             mutatingwebhookconfigurations -o json"
                .to_owned(),
        ));
    };
    let webhooks = Webhooks::of_files(configurations);
    let meshes = &mut Meshes::new(&args.config, None);
    let auditor = auditor(meshes, webhooks, templates, summary).await?;
    let namespaces = input.facts.namespaces();
    let namespaces = namespaces.map(|(name, it)| (name.clone(), Namespace::new(it.clone())));
    let judges = Judges::new(Arc::new(auditor), namespaces.collect());
    for pod in input.pods() {
        judges.judge(pod?, summary).await;
    }
    Ok(())
}

/// Reads an audit log document by document.
fn read_audit_log(path: &std::path::Path, summary: &mut Summary) -> Result<(), CommandError> {
    let message = || format!("cannot read --audit-log {}", path.display());
    let failed = |error| CommandError::failed(message(), error);
    let mut documents = Documents::new(input::open(path)?).map_err(failed)?;
    let (mut events, mut problems) = (0_usize, Errors::default());
    loop {
        let Document { line, text } = match documents.next().map_err(failed)? {
            Step::Reads => continue,
            Step::End => break,
            Step::Document(document) => document,
        };
        let event: Result<Value, String> = text
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_slice(text).map_err(|error| error.to_string()));
        match event {
            Ok(event) if text_of(&event, "/apiVersion").starts_with("audit.k8s.io/") => {
                events += 1;
                audit_log::failed_open(&event).for_each(|found| summary.add_failed_open(found));
            }
            Ok(_) => problems.count += 1,
            Err(problem) => {
                if problems.add() {
                    print_line(&format!("{}: line {line}: {problem}", path.display()));
                }
            }
        }
    }
    // A wrong file would otherwise look like a log without failures.
    if events == 0 {
        let problem = "it has no event of audit.k8s.io; name the file of --audit-log-path";
        return Err(CommandError::failed(message(), problem));
    }
    if problems.count > 0 {
        summary.add_not_read(format!("{} documents of {}", problems.count, path.display()));
    }
    Ok(())
}

fn text_of<'v>(value: &'v Value, pointer: &str) -> &'v str {
    text(value, pointer)
}

fn failed(error: &ReadError) -> CommandError {
    CommandError::Incomplete(with_causes(error))
}
