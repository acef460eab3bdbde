//! `injectd inject`: adds the sidecar to manifests, or the annotation that asks for it.
//!
//! Each object goes through the same review as in a cluster; this command applies the patch.

use injectd_command::{
    CommandError,
    cluster_config::ClusterArgs,
    config::{ConfigArgs, Purpose},
};
use injectd_core::linkerd::annotations::Annotation;

use super::{
    manifests::{self, ManifestArgs},
    sidecars::TemplateArgs,
};

mod injection;
mod istio;
mod namespaces;
mod pods;
mod review;
mod settings;
mod templates;
mod validity;

pub(super) use self::istio::with_pod;
pub(super) use self::pods::{kind_of, must_have_spec, template_of, without_injector};
use self::{injection::Injection, review::Reviewer, settings::SettingArgs};

/// The annotation that enables or disables injection.
const INJECT: &str = Annotation::Inject.key();

/// Inject the sidecar into the pods and pod templates of manifests
///
/// Reads YAML or JSON: single objects, Lists and files with several documents. Changes only the
/// places that injection changes: comments, order and style stay, and documents without pods are
/// printed byte for byte. Prints on stderr one line with the result for each pod, each workload, and
/// each Service and Namespace that gets an annotation. Objects with Linkerd's sidecar are injected
/// anew. If an object fails, no manifest is printed.
///
/// For Linkerd without --objects, every namespace counts as enabled for injection, so that only pods
/// that opt out are skipped. Namespaces in the input count with their annotations.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    manifests: ManifestArgs,
    /// Add the full sidecar (the default)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true, conflicts_with = "annotate")]
    manual: Option<bool>,
    /// Add only the annotations that ask the injector in the cluster for the sidecar, to pods, pod
    /// templates and Namespaces: what `linkerd inject` does without --manual
    #[arg(long)]
    annotate: bool,
    /// Namespace of manifests that do not set one
    #[arg(short, long, default_value = "default", value_parser = settings::namespace)]
    namespace: String,
    /// Do not read the configuration from a cluster (the default)
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ignore_cluster: Option<bool>,
    #[command(flatten)]
    templates: TemplateArgs,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    settings: SettingArgs,
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(mut args: Args) -> Result<(), CommandError> {
    if args.templates.is_set() {
        return templates::run(&args);
    }
    args.config.must_suit_the_mesh()?;
    if args.config.is_istio() {
        return istio::run(&args);
    }
    let runtime = manifests::runtime()?;
    if let Some(found) = runtime.block_on(args.cluster.read(args.config.linkerd_namespace()))? {
        args.config.use_found(found);
    }
    let inputs = args.manifests.read(&runtime);
    let sources = namespaces::sources(&inputs, args.config.objects(Purpose::Inject)?);
    let injector = args.config.injector(sources.into(), Purpose::Inject)?;
    if !args.annotate {
        args.config.warn_of_example_trust_roots();
    }
    let settings = args.settings.annotations(&injector.mesh());
    let injection = Injection {
        reviewer: Reviewer { runtime, injector, namespace: &args.namespace },
        settings,
        annotate: args.annotate,
        ingress: args.settings.ingress,
        keeps_inject: args.config.has_objects(),
    };
    args.manifests.run(inputs, "injected", |object, kind| injection.edit(object, kind))
}
