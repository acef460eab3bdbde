//! `injectd manifest audit`: the permissions of `serve --audit`.

use injectd_command::{
    CommandError,
    format::{Format, formats},
};
use injectd_controllers::{audit, restart};
use injectd_k8s::rbac::Rule;
use serde_json::{Value, json};

use super::output;

/// Name of the objects.
const NAME: &str = "injectd-audit";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Print the permissions that serve --audit needs: two roles and their bindings
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Namespace of the ServiceAccount and of the Lease
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: String,
    /// ServiceAccount of the process that runs serve --audit
    #[arg(long, value_name = "NAME", default_value = "injectd")]
    service_account: String,
    /// Without the permission to restart workloads: for --restart dry-run
    #[arg(long)]
    read_only: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = formats(["yaml", "json"]))]
    output: Format,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let rules = |rules: &[Rule]| rules.iter().map(rule).collect::<Vec<_>>();
    let of_restarts = if args.read_only { &[] } else { restart::RESTART_RULES };
    let cluster = [rules(audit::RULES), rules(restart::RULES), rules(of_restarts)].concat();
    let own = [rules(restart::LEASE_RULES), rules(audit::NAMESPACE_RULES)].concat();
    let namespace = &args.namespace;
    let subject = json!([{
        "kind": "ServiceAccount", "name": args.service_account, "namespace": namespace,
    }]);
    let role = |kind: &str| json!({"apiGroup": RBAC, "kind": kind, "name": NAME});
    let version = format!("{RBAC}/v1");
    let objects = [
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": NAME},
            "rules": cluster}),
        json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": NAME},
            "roleRef": role("ClusterRole"), "subjects": subject}),
        json!({"apiVersion": version, "kind": "Role",
            "metadata": {"name": NAME, "namespace": namespace}, "rules": own}),
        json!({"apiVersion": version, "kind": "RoleBinding",
            "metadata": {"name": NAME, "namespace": namespace},
            "roleRef": role("Role"), "subjects": subject}),
    ];
    output::print(&objects, args.output).map_err(CommandError::output)
}

fn rule(rule: &Rule) -> Value {
    json!({"apiGroups": [rule.api_group], "resources": rule.resources, "verbs": rule.verbs})
}
