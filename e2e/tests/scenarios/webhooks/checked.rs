//! What `manifest check` calls an error, against what the API server rejects: each configuration of a
//! table, and random match conditions. Requests are dry runs.

use injectd_harness::{
    api::{Api, WEBHOOK_CONFIGURATIONS},
    expect::{Outcome, failed},
    scenario::note,
};
use injectd_webhooks::check::{Severity, check};
use serde_json::{Value, json};

mod values;

use super::expressions;

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The least number of configurations.
const CONFIGURATIONS: usize = 500;
/// Random expressions in the short and in the long run.
const RANDOM: [usize; 2] = [300, 5000];
/// Differences that are printed.
const SHOWN: usize = 20;

/// Asks the API server about each configuration.
pub(super) async fn all(api: &Api, is_long: bool) -> Outcome {
    let mut configurations = table();
    let random = expressions::random(RANDOM[usize::from(is_long)]);
    let expressions =
        expressions::TABLE.iter().map(|expression| (*expression).to_owned()).chain(random);
    configurations.extend(expressions.map(|expression| {
        let conditions = json!([{"name": "one", "expression": expression}]);
        with("MutatingWebhookConfiguration", "/webhooks/0/matchConditions", conditions)
    }));
    let (mut rejected, mut differences) = (0, Vec::new());
    for (name, object) in &configurations {
        let problem = problem(api, object).await?;
        let errors = check([object]);
        let errors: Vec<_> =
            errors.iter().filter(|finding| finding.severity == Severity::Error).collect();
        rejected += usize::from(problem.is_some());
        if problem.is_some() == errors.is_empty() {
            let found: Vec<_> =
                errors.iter().map(|finding| (&*finding.field, &*finding.problem)).collect();
            let answer = problem.unwrap_or_else(|| "accepts it".to_owned());
            differences.push(format!("{name}: found {found:?}; the API server: {answer}"));
        }
    }
    let count = differences.len();
    if count > 0 {
        differences.truncate(SHOWN);
        return Err(failed(format!("{count} differ:\n  {}", differences.join("\n  "))));
    }
    if configurations.len() < CONFIGURATIONS || rejected < CONFIGURATIONS / 4 {
        return Err(failed(format!("only {rejected} of {} rejected", configurations.len())));
    }
    note(&format!("{} configurations, {rejected} rejected", configurations.len()));
    Ok(())
}

/// Why the API server rejects an object; `None` if it accepts it.
async fn problem(api: &Api, object: &Value) -> Outcome<Option<String>> {
    let collection = match object["kind"].as_str() {
        Some("ValidatingWebhookConfiguration") => VALIDATING,
        _ => WEBHOOK_CONFIGURATIONS,
    };
    let path = format!("{collection}?dryRun=All&fieldValidation=Strict");
    let answer = api.call(hyper::Method::POST, &path, Some(object.to_string())).await?;
    match answer.status {
        201 => Ok(None),
        400 | 422 => Ok(Some(answer.body["message"].to_string())),
        status => Err(failed(format!("status {status}: {}", answer.body["message"]))),
    }
}

/// An accepted configuration.
fn base(kind: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "webhooks-checked"},
        "webhooks": [{
            "name": "one.example.com",
            "clientConfig": {"service": {"namespace": "a", "name": "b", "path": "/c"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"], "scope": "Namespaced"}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            // Nothing is called even if it were stored.
            "objectSelector": {"matchLabels": {"webhooks-checked": "nothing"}},
        }],
    })
}

/// The base with one value changed, and what was changed.
fn with(kind: &str, pointer: &str, value: Value) -> (String, Value) {
    let mut object = base(kind);
    let name = format!("{kind} {pointer} {value}");
    let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
    match object.pointer_mut(parent) {
        Some(Value::Array(items)) => items.push(value),
        Some(parent) => parent[key] = value,
        None => {}
    }
    (name, object)
}

fn table() -> Vec<(String, Value)> {
    let kinds = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let mut all: Vec<_> = kinds.iter().map(|kind| ((*kind).to_owned(), base(kind))).collect();
    for (pointer, values) in values::all() {
        for value in values {
            all.extend(kinds.iter().map(|kind| with(kind, pointer, value.clone())));
        }
    }
    all
}
