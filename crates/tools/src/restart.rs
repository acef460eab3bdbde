//! `injectd restart`: restarts workloads from a terminal.

use std::{path::PathBuf, time::Duration};

use injectd_command::{
    CommandError,
    cluster_config::ClusterArgs,
    format::{Format, formats},
    restart_policy::PolicyArgs,
    units::parse_duration,
};
use injectd_controllers::restart::{Mode, Restarter};

use self::{
    effect::{Chosen, Include},
    session::Session,
};
use super::manifests;

mod effect;
mod input;
mod progress;
mod report;
mod session;

/// Restart workloads, so that their pods are injected anew
///
/// Restarts Deployments, StatefulSets and DaemonSets as kubectl rollout restart does, a few at a
/// time and one of a namespace, and waits for their rollouts. A workload waits while a
/// PodDisruptionBudget of its pods allows no disruption, outside of the maintenance windows, and for
/// an hour after its last restart. A rollout that does not finish stops further restarts of its
/// namespace.
///
/// Nothing is restarted without --yes: the command prints what it would do, and what would happen to
/// the sidecar. Workloads of a file whose pods would lose their sidecar are left out. The exit code is
/// 3 if some workloads are left, and 1 if a rollout does not finish, a workload does not exist, or the
/// API server reports an error.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Workloads: KIND/NAME, such as deploy/web, sts/db or daemonset/agent; or a kind and names, as in
    /// kubectl
    #[arg(value_name = "WORKLOAD", required_unless_present = "file")]
    workloads: Vec<String>,
    /// JSON file with workloads, such as the output of audit -o json; - reads stdin
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with = "workloads")]
    file: Option<PathBuf>,
    /// Findings of the file that are restarted as well
    #[arg(long, value_name = "FINDING", value_delimiter = ',')]
    include: Vec<Include>,
    /// Namespace of the workloads [default: that of the context]
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "file")]
    namespace: Option<String>,
    /// Restart the workloads; without it, only print what would be done
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Time after which the command ends, with some workloads left
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_duration)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, default_value = "text", value_parser = formats(["text", "json"]))]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// The variant decides the exit code.
pub fn run(args: Args) -> Result<(), CommandError> {
    // clap does not report this beside workloads, which exclude the file.
    if args.file.is_none() && !args.include.is_empty() {
        let text = "--include needs --filename: it is about the findings of a file";
        return Err(CommandError::Usage(text.to_owned()));
    }
    manifests::runtime()?.block_on(restart(args))
}

async fn restart(args: Args) -> Result<(), CommandError> {
    // Before the cluster is asked: wrong input needs no cluster.
    let named = input::named(&args.workloads)?;
    let listed = args.file.as_deref().map(input::listed).transpose()?;
    let Some(client) = args.cluster.client(true).await? else { return Ok(()) };
    let namespace = args.namespace.as_deref().unwrap_or_else(|| client.default_namespace());
    let mut chosen = match listed {
        Some(rows) => Chosen::of(rows, &args.include),
        None => Chosen::named(input::in_namespace(named, namespace)?),
    };
    let policy = args.policy.policy(if args.yes { Mode::On } else { Mode::DryRun });
    let mut restarter = Restarter::new(client, policy);
    let left_out = restarter.set_findings(std::mem::take(&mut chosen.findings));
    if left_out > 0 {
        let problem = format!("{left_out} workloads are over the limit; restart them afterwards");
        injectd_command::print::print_line(&problem);
    }
    Session::new(restarter, chosen, args.output, !args.yes)?.run(args.timeout).await
}
