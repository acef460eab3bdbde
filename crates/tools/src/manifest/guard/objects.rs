//! The two objects: the policy has the rules of the mesh, the binding what the flags choose.

use injectd_k8s::selector::{Operator, Requirement};
use serde_json::{Value, json};

use super::{Action, Args, Check, CommandError, FailurePolicy, Named, Rules, selector::parse};

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The API server writes a name that it generates before it evaluates the policy.
const POD_NAME: &str = "object.metadata.?name.orValue(object.metadata.?generateName.orValue(''))";

/// The policy and the binding.
pub(super) fn of(args: &Args, rules: &Rules) -> Result<[Value; 2], CommandError> {
    Ok([policy(args, rules), binding(args)?])
}

fn policy(args: &Args, rules: &Rules) -> Value {
    let failure_policy = match args.failure_policy {
        FailurePolicy::Ignore => "Ignore",
        FailurePolicy::Fail => "Fail",
    };
    let pod_name = Named::new("podName", POD_NAME);
    let variables = rules.variables.iter().chain([&pod_name]);
    json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": args.name()},
        "spec": {
            "failurePolicy": failure_policy,
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }],
                "namespaceSelector": selector(&rules.namespaces),
                "objectSelector": selector(&rules.pods),
            },
            "matchConditions": rules.conditions.iter().map(Named::to_json).collect::<Value>(),
            "variables": variables.map(Named::to_json).collect::<Value>(),
            "validations": rules.checks.iter().map(Check::to_json).collect::<Value>(),
        },
    })
}

fn binding(args: &Args) -> Result<Value, CommandError> {
    let actions = args.action.iter().map(|action| match action {
        Action::Deny => "Deny",
        Action::Warn => "Warn",
        Action::Audit => "Audit",
    });
    let mut spec = json!({
        "policyName": args.name(),
        "validationActions": actions.collect::<Value>(),
    });
    let namespaces = namespaces(args)?;
    if !namespaces.is_empty() {
        spec["matchResources"] = json!({"namespaceSelector": selector(&namespaces)});
    }
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": args.name()},
        "spec": spec,
    }))
}

/// The namespaces that the flags choose.
fn namespaces(args: &Args) -> Result<Vec<Requirement>, CommandError> {
    let mut chosen = match &args.namespace_selector {
        Some(text) => parse("--namespace-selector", text)?,
        None => Vec::new(),
    };
    let excluded: Vec<_> = args.exclude_namespace.iter().map(String::as_str).collect();
    if !excluded.is_empty() {
        chosen.push(Requirement::new("kubernetes.io/metadata.name", Operator::NotIn, &excluded));
    }
    Ok(chosen)
}

fn selector(requirements: &[Requirement]) -> Value {
    json!({"matchExpressions": requirements})
}

// === impl Named ===

impl Named {
    pub(super) fn new(name: &'static str, expression: &str) -> Self {
        Self { name, expression: expression.to_owned() }
    }

    fn to_json(&self) -> Value {
        json!({"name": self.name, "expression": self.expression})
    }
}

// === impl Check ===

impl Check {
    fn to_json(&self) -> Value {
        json!({
            "expression": self.expression,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": "Forbidden",
        })
    }
}
