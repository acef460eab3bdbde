//! `injectd manifest guard`: a `ValidatingAdmissionPolicy` that reports pods without their sidecar.
//!
//! The API server evaluates the policy after all mutating webhooks, so it sees a pod as it is
//! stored. The rules repeat the decision of the injection in CEL. They are not for the injection. For sidecar
//! templates they are those of the templates of files, and the policy also reports marks that injectd did not
//! write.

#![expect(clippy::doc_markdown, reason = "help texts have no backticks")]

use injectd_command::{
    CommandError,
    config::MeshName,
    first_set,
    format::{Format, formats},
    print::print_line,
};
use injectd_k8s::{
    names::{is_dns_label, is_dns_subdomain},
    selector::Requirement,
};

use super::output;

mod istio;
mod linkerd;
mod objects;
mod selector;
mod templates;

/// Print a ValidatingAdmissionPolicy that reports pods without the sidecar that they ask for
///
/// Prints a ValidatingAdmissionPolicy and its ValidatingAdmissionPolicyBinding. The API server
/// evaluates them when a pod is created, after the webhooks. They report pods that the webhook would
/// inject and that have no sidecar, as when the webhook failed and its failure policy is Ignore. With
/// --mesh templates, they also report a mark that injectd did not write.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Mesh whose sidecars pods must have, or templates for those of your templates
    #[arg(long, value_name = "MESH", default_value = "linkerd")]
    mesh: MeshName,
    /// Actions for pods without their sidecar, with commas between: deny refuses the pod, warn sends
    /// a warning to the client, audit adds an annotation to the audit event
    #[arg(long, value_name = "ACTIONS", value_delimiter = ',', default_value = "warn")]
    action: Vec<Action>,
    /// Result for a pod if the API server cannot evaluate the policy: Ignore lets the pod in, Fail
    /// takes the actions
    #[arg(long, value_name = "POLICY", default_value = "Ignore")]
    failure_policy: FailurePolicy,
    /// Label selector of the namespaces to guard, as kubectl -l reads it [default: all]
    #[arg(long, value_name = "SELECTOR")]
    namespace_selector: Option<String>,
    /// Namespace to leave out; may be repeated
    #[arg(long, value_name = "NAMESPACE")]
    exclude_namespace: Vec<String>,
    /// Name of both objects [default: injectd-guard-MESH]
    #[arg(long)]
    name: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = formats(["yaml", "json"]))]
    output: Format,
    #[command(flatten)]
    linkerd: linkerd::LinkerdArgs,
    #[command(flatten)]
    istio: istio::IstioArgs,
    #[command(flatten)]
    templates: templates::TemplateArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Action {
    Deny,
    Warn,
    Audit,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
enum FailurePolicy {
    Ignore,
    Fail,
}

/// An expression of CEL with its name.
struct Named {
    name: &'static str,
    expression: String,
}

/// What must be true of a pod.
struct Check {
    /// Whether a pod is as it should be.
    expression: String,
    message: String,
    /// CEL that gives the message.
    message_expression: String,
}

/// The rules of a mesh.
struct Rules {
    /// Which namespaces and pods the webhook is called for, as far as selectors express it.
    namespaces: Vec<Requirement>,
    pods: Vec<Requirement>,
    conditions: Vec<Named>,
    /// Of a mesh, the variable `asksBy` names the label or annotation that asks for the sidecar; it is
    /// empty if there is none.
    variables: Vec<Named>,
    checks: Vec<Check>,
    /// What the policy lacks, for a person.
    notes: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    args.check()?;
    let rules = args.rules()?;
    for note in &rules.notes {
        print_line(&format!("note: {note}"));
    }
    output::print(&objects::of(args, &rules)?, args.output).map_err(CommandError::output)
}

/// What stands behind each message.
const PROBLEM: &str = "The webhook failed, did not answer or is missing";
const ADVICE: &str = "injectd explain says why. Check the MutatingWebhookConfiguration and the \
                      log of the injector, then create the pod again";

// === impl Check ===

impl Check {
    /// A pod that asks for the sidecar of a mesh has it.
    fn sidecar(mesh: &str, expression: String) -> Self {
        Self {
            expression,
            message: format!(
                "the pod has no {mesh} sidecar, but asks for one. {PROBLEM}. {ADVICE}"
            ),
            message_expression: format!(
                "'pod ' + variables.podName + ' has no {mesh} sidecar, but ' +\n\
                 variables.asksBy + ' asks for one. ' +\n'{PROBLEM}. ' +\n'{ADVICE}'"
            ),
        }
    }
}

// === impl Args ===

impl Args {
    fn rules(&self) -> Result<Rules, CommandError> {
        match self.mesh {
            MeshName::Linkerd => Ok(linkerd::rules(&self.linkerd)),
            MeshName::Istio => istio::rules(&self.istio),
            MeshName::Templates => self.templates.rules(),
        }
    }

    fn check(&self) -> Result<(), CommandError> {
        let meshes = [
            (MeshName::Linkerd, first_set(self.linkerd.set()), "linkerd"),
            (MeshName::Istio, first_set(self.istio.set()), "istio"),
            (MeshName::Templates, first_set(self.templates.set()), "templates"),
        ];
        for (mesh, flag, name) in meshes {
            if let Some(flag) = flag.filter(|_| self.mesh != mesh) {
                return Err(CommandError::Usage(format!("{flag} needs --mesh {name}")));
            }
        }
        self.check_actions()?;
        let excluded = self.exclude_namespace.iter().map(|name| ("--exclude-namespace", name));
        let linkerd = self.linkerd.namespace.iter().map(|name| ("--linkerd-namespace", name));
        for (flag, name) in excluded.chain(linkerd) {
            if !is_dns_label(name) {
                let problem = format!("{flag}: {name:?} is not the name of a namespace");
                return Err(CommandError::Usage(problem));
            }
        }
        self.name.as_ref().map_or(Ok(()), |name| must_be_object_name("--name", name))
    }

    /// Refuses what the API server refuses in `validationActions`.
    fn check_actions(&self) -> Result<(), CommandError> {
        let has = |action| self.action.contains(&action);
        let is_repeated = |action| self.action.iter().filter(|other| **other == action).count() > 1;
        let problem = if has(Action::Deny) && has(Action::Warn) {
            "deny and warn exclude each other: the message of a refused pod is shown anyway"
        } else if self.action.iter().any(|action| is_repeated(*action)) {
            "an action is repeated"
        } else {
            return Ok(());
        };
        Err(CommandError::Usage(format!("--action: {problem}")))
    }

    fn name(&self) -> String {
        let mesh = match self.mesh {
            MeshName::Linkerd => "linkerd",
            MeshName::Istio => "istio",
            MeshName::Templates => "templates",
        };
        self.name.clone().unwrap_or_else(|| format!("injectd-guard-{mesh}"))
    }
}

fn must_be_object_name(flag: &str, name: &str) -> Result<(), CommandError> {
    if is_dns_subdomain(name) {
        return Ok(());
    }
    let expected = "expected lower-case letters, digits, - and .";
    Err(CommandError::Usage(format!("{flag}: {name:?} is not the name of an object: {expected}")))
}

#[cfg(test)]
mod agree;
#[cfg(test)]
mod tests;
