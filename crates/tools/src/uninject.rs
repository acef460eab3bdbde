//! `injectd uninject`: removes the sidecar from manifests.

use std::path::PathBuf;

use injectd_command::{CommandError, config};
use injectd_core::{
    linkerd::{
        snapshot::Snapshot,
        uninject::{Removed, uninject},
    },
    object::Kind,
};
use serde_json::Value;

use super::{
    inject::{kind_of, without_injector},
    manifests::{self, Action, Edited, Entry, ManifestArgs},
    sidecars::TemplateFiles,
};

mod templates;

/// Remove the sidecar from the pods and pod templates of manifests
///
/// Removes Linkerd's containers, volumes, labels and annotations, except linkerd.io/inject: disabled
/// and the settings config.linkerd.io/...; they may be the author's. Changes only these places, so
/// that a manifest that injectd injected comes out as it was.
///
/// With --templates, removes what these sidecar templates added instead: the containers that the mark
/// injectd.dev/templates names, and what the templates would add to the pod just so. A value that a
/// template replaced is lost. With --by-mark, removes only the containers of all templates.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    manifests: ManifestArgs,
    /// YAML file with the values of the Linkerd installation, whose opaque ports injection writes
    /// into annotations [default: the chart's defaults of the newest release]
    #[arg(long, value_name = "FILE", env = "INJECTD_VALUES")]
    values: Option<PathBuf>,
    #[command(flatten)]
    templates: TemplateFiles,
    /// Remove the containers that sidecar templates added, without the templates
    #[arg(long, conflicts_with_all = ["templates", "values"])]
    by_mark: bool,
    /// Namespace of manifests that do not set one, for --templates
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// YAML or JSON file with Namespaces, service accounts and owners of pods, for --templates [default:
    /// every namespace exists]
    #[arg(long, value_name = "FILE", requires = "templates")]
    objects: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: &Args) -> Result<(), CommandError> {
    if args.templates.is_set() {
        return templates::run(args);
    }
    if args.by_mark {
        return templates::run_by_mark(args);
    }
    let snapshot = config::snapshot_of_values(args.values.as_deref())?;
    let inputs = args.manifests.read(&manifests::runtime()?);
    args.manifests.run(inputs, "uninjected", |object, name| Ok(edit(&snapshot, object, name)))
}

fn edit(snapshot: &Snapshot, object: &Value, name: &str) -> Edited {
    let kind = kind_of(object, name);
    if kind == Kind::Other {
        return Edited { object: None, entry: without_injector(object, name) };
    }
    let has_pods = matches!(kind, Kind::Pod | Kind::Workload(_) | Kind::CronJob);
    let entry = |action| Entry { has_pods, ..Entry::of(object, name, action) };
    let mut left = object.clone();
    let removed = uninject(snapshot, &mut left, kind);
    if removed.is_nothing() {
        let entry = if has_pods {
            let note = templates::note(object, kind.path_prefix());
            let note = note.map(|note| format!("; {note}")).unwrap_or_default();
            entry(Action::Skipped).because(format!("nothing of Linkerd is in it{note}"))
        } else {
            entry(Action::Unchanged)
        };
        return Edited { object: None, entry };
    }
    let entry = entry(Action::Uninjected);
    let entry = match unknown(&removed) {
        Some(message) => entry.because(message),
        None => entry,
    };
    Edited { object: Some(left), entry }
}

/// What the manifest does not show: whether its author or the injection wrote it.
fn unknown(removed: &Removed) -> Option<String> {
    let inject = removed.inject.as_ref().map(|value| {
        format!("removed linkerd.io/inject: {value}; set it again if the author had set it")
    });
    let opaque = removed.opaque_ports.as_ref().map(|ports| {
        format!("removed config.linkerd.io/opaque-ports: {ports}, the default for its ports")
    });
    let kept = (!removed.kept.is_empty()).then(|| {
        let what = if removed.kept.len() == 1 {
            "it if a flag of inject had set it"
        } else {
            "each that a flag of inject had set"
        };
        format!("kept {}; remove {what}", removed.kept.join(", "))
    });
    let parts: Vec<String> = inject.into_iter().chain(opaque).chain(kept).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
