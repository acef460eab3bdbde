//! `injectd manifest install`: the objects of the Helm chart, without Helm.
//!
//! The chart is in the binary, and its templates are rendered by the package that renders Istio's. The
//! `CustomResourceDefinition`s are not twice in it: the chart has a file with them, which is left out.

use std::path::PathBuf;

use injectd_command::{
    CommandError,
    format::{Format, formats},
    input, templates,
};
use injectd_core::yaml;
use injectd_k8s::names::is_dns_label;
use injectd_templates::ceiling::Ceiling;
use serde_json::Value;

use super::output;

mod chart;
mod schema;
mod values;

/// Print the objects that install injectd: what `helm template` prints of the chart deploy/helm/injectd
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Values are those of the chart: see deploy/helm/injectd/values.yaml, or --print-values."
)]
pub(crate) struct Args {
    /// Namespace of injectd; for Linkerd, the namespace of its control plane
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        required_unless_present = "print_values",
        default_value = "",
        hide_default_value = true
    )]
    namespace: String,
    /// Name of the release, of its Deployment and of its Service
    #[arg(long, value_name = "NAME", default_value = "injectd")]
    name: String,
    /// Sidecars that are injected: of linkerd, of istio, of your templates, or several of them, separated
    /// by commas. Sets linkerd.enabled, istio.enabled and templates.enabled
    #[arg(long, value_name = "MESH", value_delimiter = ',')]
    mesh: Vec<Mesh>,
    /// Highest level of the Pod Security Standards that a SidecarTemplate may need; off: none is served.
    /// Sets templates.namespacedTemplates
    #[arg(long, value_name = "LEVEL", value_parser = templates::ceilings())]
    namespaced_templates: Option<Ceiling>,
    /// Whether injectd writes which pods the webhook of templates is called for. Sets
    /// templates.manageWebhook
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    manage_webhook: Option<bool>,
    /// YAML file with values, as in Helm; later files win
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// One value, such as replicas=3 or istio.tags[0].tag=canary; wins over files
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = formats(["yaml", "json"]))]
    output: Format,
    /// Print the default values of the chart, with comments
    #[arg(long, conflicts_with_all = ["files", "set", "mesh", "namespaced_templates", "manage_webhook"])]
    print_values: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mesh {
    Linkerd,
    Istio,
    Templates,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    if args.print_values {
        return output::text(chart::VALUES).map_err(CommandError::output);
    }
    // The chart refuses other names of releases.
    for (flag, name) in [("--namespace", &args.namespace), ("--name", &args.name)] {
        if !is_dns_label(name) {
            let text = format!("{flag} {name:?}: expected a name such as my-injector-1");
            return Err(CommandError::Usage(text));
        }
    }
    let objects = chart::render(&args.name, &args.namespace, &args.values()?)?;
    output::print(&objects, args.output).map_err(CommandError::output)
}

impl Args {
    /// The values of the chart under those of the files and flags.
    fn values(&self) -> Result<Value, CommandError> {
        let mut values = chart::default_values();
        for path in &self.files {
            let name = path.display();
            let text = input::utf8(&name.to_string(), input::read(path)?)?;
            let failed = |error: String| CommandError::failed(format!("--values {name}"), error);
            let over = yaml::parse(&text).map_err(failed)?;
            if !over.is_object() && !over.is_null() {
                return Err(failed("expected a mapping of values".to_owned()));
            }
            if let Some(Value::String(kind)) = over.get("kind") {
                let text = format!("expected values of the chart, not the manifest of a {kind}");
                return Err(failed(text));
            }
            values::merge(&mut values, over);
            schema::check(&values).map_err(failed)?;
        }
        self.set_flags(&mut values);
        for set in &self.set {
            let failed = |error: String| CommandError::Usage(format!("--set {set}: {error}"));
            values::set(&mut values, set).map_err(failed)?;
        }
        schema::check(&values).map_err(|error| CommandError::Usage(format!("--set: {error}")))?;
        Ok(values)
    }

    /// Sets the values of flags of their own.
    fn set_flags(&self, values: &mut Value) {
        if !self.mesh.is_empty() {
            let meshes = [
                ("linkerd", Mesh::Linkerd),
                ("istio", Mesh::Istio),
                ("templates", Mesh::Templates),
            ];
            for (key, mesh) in meshes {
                values[key]["enabled"] = self.mesh.contains(&mesh).into();
            }
        }
        if let Some(level) = self.namespaced_templates {
            values["templates"]["namespacedTemplates"] = level.as_str().into();
        }
        if let Some(is_managed) = self.manage_webhook {
            values["templates"]["manageWebhook"] = is_managed.into();
        }
    }
}
