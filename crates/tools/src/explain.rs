//! `injectd explain`: why a pod is injected or not.

use std::{collections::BTreeSet, sync::Arc};

use clap::builder::{PossibleValue, ValueParser};
use injectd_command::{
    CommandError,
    cluster_config::ClusterArgs,
    config::{ConfigArgs, Purpose},
    format::{Format, formats},
};
use injectd_core::{
    explain::{Explanation, places::texts},
    lookups::{CallerFacts, Metadata},
};
use injectd_explain::{
    Creation, Report, assumed_namespace,
    later::{self, Checks, Version},
    missed,
};
use injectd_webhooks::{
    Configurations, Step,
    injectors::{self, Missed, Product},
};
use serde_json::Value;

use super::{
    facts::{Facts, Source},
    in_force, manifests,
    meshes::{Mesh, Meshes},
    progress::Progress,
    sidecars::TemplateArgs,
};

mod advice;
mod all;
mod brief;
mod cluster;
mod items;
mod names;
mod pods;
mod target;
mod templates;
mod text;

use self::{
    all::Explaining,
    pods::Workloads,
    target::{Target, Wanted},
};

/// What programs read: version and kind.
const API_VERSION: &str = "injectd.dev/v1";
const KIND: &str = "ExplanationList";

/// Explain why a pod is injected or not
///
/// Walks what happens to the pod: the webhooks that the API server calls, every rule of the injection
/// with what it read and what it said, the settings of the sidecar with the origin of each, annotations
/// without effect, and what may refuse the pod afterwards. Ends with what to do.
///
/// Explains pods, and the pods that workloads create. A manifest is explained with the Namespaces,
/// webhook configurations, ResourceQuotas and LimitRanges of the same files and of --objects; with
/// --kubeconfig or --context with those of the cluster.
///
/// With --templates, explains what became of each sidecar template, where the values of its parameters
/// come from, and which step and expression wrote each field of the pod.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or folders with manifests, - for stdin, or objects of the cluster: pod/NAME,
    /// deploy/NAME, and sts, ds, rs, rc, job, cronjob
    #[arg(value_name = "FILE|TYPE/NAME", required = true)]
    targets: Vec<String>,
    /// Namespace of objects of the cluster, and of manifests that do not set one [default: that of
    /// the context, or default]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text", value_parser = output_formats())]
    output: Format,
    /// Print a table with a row for each workload: the verdict and why; and once what to do
    #[arg(long, conflicts_with_all = ["all_settings", "output"])]
    brief: bool,
    /// Release of Kubernetes whose checks of pods apply, such as 1.36 or v1.36.3; known are 1.34 to
    /// 1.37 [default: that of the cluster, or 1.37]
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<Version>,
    /// Show every setting, not only those that annotations set
    #[arg(long)]
    all_settings: bool,
    #[command(flatten)]
    templates: TemplateArgs,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

fn output_formats() -> ValueParser {
    let text = PossibleValue::new("text").help("For people, in the width of the terminal");
    formats([text, "json".into(), "yaml".into()])
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: &Args) -> Result<(), CommandError> {
    if args.templates.is_set() {
        return templates::run(args);
    }
    args.config.must_suit_the_mesh()?;
    let wanted = Wanted::of(&names::normalized(&args.targets)?)?;
    let runtime = manifests::runtime()?;
    let client = runtime.block_on(args.cluster.client(wanted.needs_cluster()))?;
    let default_namespace = match (&args.namespace, &client) {
        (Some(namespace), _) => namespace.clone(),
        (None, Some(client)) => client.default_namespace().to_owned(),
        (None, None) => "default".to_owned(),
    };
    let progress = Progress::of_requests(client.is_some());
    let mut facts = Facts::default();
    let (mut targets, mut workloads) = (Vec::new(), Workloads::default());
    for object in args.config.object_values(Purpose::Inject)?.into_iter().flatten() {
        facts.add(&object, "");
    }
    for path in &wanted.files {
        targets.extend(target::read(path, &default_namespace, &mut facts, &mut |_| ())?);
    }
    let cluster = client.as_ref().map(|client| cluster::Cluster::new(client, &progress));
    if let Some(cluster) = &cluster {
        for name in &wanted.names {
            let object = runtime.block_on(cluster.object(name, &default_namespace))?;
            let target = Target::of(&object, "", &default_namespace)?;
            runtime.block_on(workloads.add(cluster, &target, &object, &mut facts))?;
            targets.push(target);
        }
        runtime.block_on(cluster.read(&targets, &mut facts))?;
    }
    facts.version = args.kubernetes_version.or(facts.version);
    let targets: Vec<_> = targets.into_iter().filter(|target| target.pod.is_some()).collect();
    if targets.is_empty() {
        let text = "no pod and no workload is in the input; explain needs one".to_owned();
        return Err(CommandError::Incomplete(text));
    }
    facts.must_be_readable()?;
    let configurations = facts.configurations()?;
    let source = match client {
        Some(_) => Source::Cluster,
        None if args.config.has_objects() => Source::Objects,
        None => Source::Files,
    };
    let known = (client.as_ref(), configurations.as_ref());
    if let (Some(client), Some(configurations)) = known {
        let (templates, notes) = runtime.block_on(in_force::of_cluster(client, configurations));
        facts.unread.extend(notes);
        workloads.templates = templates;
    }
    let explaining = Explaining {
        args,
        client: client.as_ref(),
        cluster: cluster.as_ref(),
        configurations: configurations.as_ref(),
        known: Known { facts: &facts, source },
    };
    let explained = runtime.block_on(explaining.all(&targets, &mut workloads))?;
    progress.finish();
    explained.print(args).map_err(CommandError::output)
}

/// The note for a pod that is explained without its sidecar, and for a workload whose template has one.
const RUNS: &str = "the pod has its sidecar; this is how it would be injected now";
const HAS_PROXY: &str =
    "the template has a sidecar already; this is how the pod would be injected without it";

/// The note for a pod or workload that the API server cannot decode.
const UNDECODED: &str = "the API server cannot read all fields and calls no webhook for the pod; what \
                         follows is about those that can be read";

/// The facts and their source.
#[derive(Debug, Clone, Copy)]
struct Known<'f> {
    facts: &'f Facts,
    source: Source,
}

async fn report<'c>(
    meshes: &mut Meshes<'_>,
    configurations: Option<&'c Configurations>,
    target: &Target,
    Known { facts, source }: Known<'_>,
) -> Result<Report<'c>, CommandError> {
    let pod = target.pod.as_ref().unwrap_or(&Value::Null);
    let namespace = &*target.namespace;
    let checking = facts.checking(namespace);
    let checks = checking.checks();
    let creation = Creation { pod, namespace, checks };
    let webhooks = configurations.map(|all| injectd_explain::webhooks(all, creation));
    let mesh = meshes.of(webhooks.as_deref().unwrap_or_default(), creation).await?;
    let assumed = assumed_namespace(&mesh.profile);
    let mut notes = [&target.notes[..], &facts.unread[..], &mesh.notes[..]].concat();
    let of_namespace = metadata_of(checks.namespace, source, assumed);
    let annotations = of_namespace.as_deref().map(|found| &*found.annotations).unwrap_or_default();
    let before = injectd_explain::before_injection(&mesh.profile, pod, annotations);
    notes.extend(before.as_ref().map(|_| without_sidecar(target)));
    notes.extend(facts.missing(namespace, source, assumed));
    let pod = before.as_ref().unwrap_or(pod);
    let creation = Creation { pod, ..creation };
    // What the API server does about the pod depends on the pod as its author wrote it.
    let anew = before.as_ref().and(configurations);
    let webhooks = anew.map(|all| injectd_explain::webhooks(all, creation)).or(webhooks);
    let caller =
        CallerFacts { namespace: of_namespace, path: &mesh.path, ..CallerFacts::default() };
    let failed = |error| CommandError::failed(format!("cannot explain {}", target.title()), error);
    let decided = injectd_explain::decide(&mesh.profile, creation, target.workload(), caller);
    let decided = decided.await.map_err(failed)?;
    notes.extend(decided.note);
    let missed = webhooks.as_deref().and_then(|steps| missed(steps, mesh.product, creation));
    let is_known = Product::of_mesh(decided.explanation.mesh) == Some(mesh.product);
    if webhooks.is_some() && missed.is_none() && !is_known {
        return Err(not_known(target, &mesh));
    }
    let is_asked = missed.as_ref().is_none_or(Missed::is_doubt);
    // A pod that no webhook changes is checked as well.
    let created = if is_asked { &decided.pod } else { pod };
    let later = target.placed(later::objections(checks, pod, created));
    notes.extend(notes_on_checks(facts, checks, pod, created));
    let is_undecoded = later.iter().any(advice::is_undecoded);
    notes.extend(is_undecoded.then(|| UNDECODED.to_owned()));
    notes.extend(webhooks.as_deref().and_then(several));
    let could_be_left_out = target.is_running && missed.is_none() && before.is_none();
    let advice = if could_be_left_out && gets_sidecar(&decided.explanation) {
        advice::left_out(pod)
    } else {
        advice::of(missed.as_ref(), &decided.explanation, &later)
    };
    Ok(Report {
        object: target.subject.clone(),
        notes,
        advice,
        webhooks,
        not_asked: text_of(missed.as_ref(), false),
        is_rejected: is_undecoded || missed.as_ref().is_some_and(Missed::is_rejected),
        doubt: text_of(missed.as_ref(), true),
        injection: decided.explanation,
        later,
    })
}

/// The note on the release by whose checks a pod is judged: one that is not known, or not the one that
/// was assumed. And one on amounts that are not judged.
fn notes_on_checks(
    facts: &Facts,
    checks: Checks<'_>,
    pod: &Value,
    created: &Value,
) -> impl Iterator<Item = String> {
    let on_release = match facts.version {
        Some(version) => version.note(),
        None => later::note_on_versions(checks, pod, created),
    };
    on_release.into_iter().chain(later::note_on_amounts(checks, created))
}

/// Whether the mesh gives the pod a sidecar, which has none yet.
fn gets_sidecar(injection: &Explanation) -> bool {
    let mut sidecars = injection.findings.sidecars.iter();
    injection.injects() && !sidecars.any(|sidecar| sidecar.recognised)
}

/// The note for a pod that is explained without its sidecar.
fn without_sidecar(target: &Target) -> String {
    let text = if target.workload().is_some() { HAS_PROXY } else { RUNS };
    text.to_owned()
}

/// The error for a pod about which another mesh decides than the one whose configuration is known.
fn not_known(target: &Target, mesh: &Mesh) -> CommandError {
    let (title, name) = (target.title(), mesh.product.as_str());
    let why = mesh.notes.last().map(|note| format!(": {note}")).unwrap_or_default();
    CommandError::Incomplete(format!(
        "cannot explain {title}: the webhook of {name} is called{why}"
    ))
}

/// Why the webhook is not called, or what is not known of it.
fn text_of(missed: Option<&Missed>, is_doubt: bool) -> Option<String> {
    missed.filter(|missed| missed.is_doubt() == is_doubt).map(|missed| missed.text.clone())
}

/// A note if the injectors of several products are called.
fn several(steps: &[Step<'_>]) -> Option<String> {
    let called = injectors::called(steps).filter(|(product, _)| product.is_known());
    let called = called.map(|(product, _)| product.as_str());
    let products: BTreeSet<_> = called.collect();
    let names: Vec<_> = products.iter().copied().collect();
    (names.len() > 1)
        .then(|| format!("the webhooks of several products are called: {}", names.join(", ")))
}

/// Labels and annotations of a namespace; those that it counts with if it is in no file and no cluster; `None`
/// if it does not exist.
fn metadata_of(
    namespace: Option<&Value>,
    source: Source,
    assumed: &[(&str, &str)],
) -> Option<Arc<Metadata>> {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    match (namespace, source) {
        (Some(object), _) => {
            let entries = |field| texts(Some(object), field).map(owned).collect();
            let (labels, annotations) = (entries("labels"), entries("annotations"));
            Some(Arc::new(Metadata { labels, annotations }))
        }
        (None, Source::Files) => Some(Metadata::annotated(assumed.iter().copied().map(owned))),
        (None, Source::Objects | Source::Cluster) => None,
    }
}
