//! The fields of a configuration, one by one.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Finding, Findings, Place, Severity, client, name, rules};

/// Maximum number of match conditions (`ValidateMatchConditions`).
const MAX_CONDITIONS: usize = 64;
/// Labels that the name of a webhook has at least.
const MIN_LABELS: usize = 3;
const TIMEOUTS: std::ops::RangeInclusive<i64> = 1..=30;

/// The fields of a webhook; those at the end only of mutating ones.
const FIELDS: [&str; 12] = [
    "name",
    "clientConfig",
    "rules",
    "failurePolicy",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "matchConditions",
    "reinvocationPolicy",
];

pub(super) fn configuration(object: &Value, found: &mut Vec<Finding>) {
    let is_mutating = object["kind"] == "MutatingWebhookConfiguration";
    let place = Place { configuration: name(object), webhook: None, is_mutating };
    let mut at = Findings { place: place.clone(), all: found };
    if place.configuration.is_empty() {
        at.error("metadata.name", "the name is missing", "Name the configuration.");
    }
    if object["apiVersion"] != "admissionregistration.k8s.io/v1" {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let problem = format!("{version:?} is not served by Kubernetes 1.22 and later");
        at.error("apiVersion", problem, "Use admissionregistration.k8s.io/v1.");
    }
    let webhooks = match &object["webhooks"] {
        Value::Array(webhooks) => webhooks.as_slice(),
        Value::Null => &[],
        _ => return at.error("webhooks", "it is not a list", "Make it a list of webhooks."),
    };
    if webhooks.is_empty() {
        let advice = "Add a webhook, or delete the configuration.";
        at.add(Severity::Warning, "webhooks", "there is no webhook", advice);
    }
    let mut names = BTreeSet::new();
    for (index, webhook) in webhooks.iter().enumerate() {
        let name = webhook["name"].as_str().unwrap_or_default();
        let shown = if name.is_empty() { format!("webhooks[{index}]") } else { name.to_owned() };
        let mut at =
            Findings { place: Place { webhook: Some(shown), ..place.clone() }, all: &mut *at.all };
        if !name.is_empty() && !names.insert(name) {
            at.error("name", "another webhook has the same name", "Names must be unique.");
        }
        check_webhook(webhook, name, &mut at);
    }
}

fn check_webhook(webhook: &Value, name: &str, at: &mut Findings<'_>) {
    let Some(fields) = webhook.as_object() else {
        return at.error(
            "",
            "it is not a mapping",
            "Make it a webhook with name and clientConfig.",
        );
    };
    for field in fields.keys() {
        let is_other = field == "reinvocationPolicy" && !at.place.is_mutating;
        if !FIELDS.contains(&field.as_str()) || is_other {
            let problem = "the API does not have this field";
            at.error(field.clone(), problem, "Remove it, or correct its spelling.");
        }
    }
    check_name(name, at);
    client::check(&webhook["clientConfig"], at);
    rules::check(&webhook["rules"], at);
    for (field, allowed, default) in [
        ("failurePolicy", &["Fail", "Ignore"][..], "Fail"),
        ("matchPolicy", &["Equivalent", "Exact"], "Equivalent"),
        ("reinvocationPolicy", &["Never", "IfNeeded"], "Never"),
    ] {
        let value = &webhook[field];
        if !value.is_null() && !value.as_str().is_some_and(|value| allowed.contains(&value)) {
            let advice = format!("Use {} (default {default}).", allowed.join(" or "));
            at.error(field, format!("{value} is not known"), advice);
        }
    }
    check_side_effects(&webhook["sideEffects"], at);
    let timeout = &webhook["timeoutSeconds"];
    if !timeout.is_null() && !timeout.as_i64().is_some_and(|it| TIMEOUTS.contains(&it)) {
        let problem = format!("{timeout} is out of range");
        at.error("timeoutSeconds", problem, "Use 1 to 30 seconds (default 10).");
    }
    check_versions(&webhook["admissionReviewVersions"], at);
    check_conditions(&webhook["matchConditions"], at);
}

fn check_name(name: &str, at: &mut Findings<'_>) {
    if name.is_empty() {
        return at.error("name", "the name is missing", "Use a name such as injector.example.com.");
    }
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        label.len() <= 63
            && label.bytes().next().is_some_and(is_inner)
            && label.bytes().last().is_some_and(is_inner)
            && label.bytes().all(|byte| is_inner(byte) || byte == b'-')
    };
    let labels: Vec<_> = name.split('.').collect();
    if labels.len() < MIN_LABELS || !labels.iter().all(|label| is_label(label)) {
        let advice = "Use at least three DNS labels, such as injector.example.com.";
        at.error("name", format!("{name:?} is not a fully qualified name"), advice);
    }
}

fn check_side_effects(value: &Value, at: &mut Findings<'_>) {
    let advice = "Use None, or NoneOnDryRun if the webhook has none for dry runs.";
    match value.as_str() {
        Some("None" | "NoneOnDryRun") => {}
        Some(value @ ("Some" | "Unknown")) => {
            let problem = format!("{value} is not allowed in v1: dry runs would fail");
            at.error("sideEffects", problem, advice);
        }
        Some(value) => at.error("sideEffects", format!("{value:?} is not known"), advice),
        None => at.error("sideEffects", "it is required", advice),
    }
}

fn check_versions(value: &Value, at: &mut Findings<'_>) {
    let field = "admissionReviewVersions";
    let versions: Vec<_> =
        value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let has = |version| versions.contains(&version);
    if versions.is_empty() {
        at.error(field, "it is required", "Use [v1].");
    } else if !has("v1") && !has("v1beta1") {
        let problem = format!("API servers send none of {versions:?}");
        at.error(field, problem, "Use [v1].");
    } else if !has("v1") {
        let problem = "v1 is missing: later releases may send only that";
        at.add(Severity::Warning, field, problem, "Add v1, if the webhook reads it.");
    }
    let unique: BTreeSet<_> = versions.iter().collect();
    if unique.len() < versions.len() {
        at.error(field, "a version is there twice", "Name each version once.");
    }
}

/// That each expression compiles is checked where it is compiled.
fn check_conditions(value: &Value, at: &mut Findings<'_>) {
    let conditions = value.as_array().map(Vec::as_slice).unwrap_or_default();
    if conditions.len() > MAX_CONDITIONS {
        let problem = format!("{} conditions; {MAX_CONDITIONS} are allowed", conditions.len());
        at.error("matchConditions", problem, "Join conditions with &&.");
    }
    let mut names = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let field = |name: &str| format!("matchConditions[{index}].{name}");
        let text = |name: &str| condition[name].as_str().unwrap_or_default();
        if text("name").is_empty() {
            at.error(field("name"), "the name is missing", "Name the condition.");
        } else if !names.insert(text("name")) {
            at.error(field("name"), "another condition has the same name", "Rename one.");
        }
        if text("expression").trim().is_empty() {
            at.error(field("expression"), "it is missing", "Write a CEL expression.");
        }
    }
}
