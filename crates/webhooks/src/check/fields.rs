//! The fields of a configuration, one by one.

use std::collections::BTreeSet;

use injectd_k8s::names;
use serde_json::Value;

use super::{
    Finding, Findings, Place, STATIC_SUFFIX, Severity, client, name, rules, selectors, shape,
};

/// Maximum number of match conditions (`ValidateMatchConditions`).
const MAX_CONDITIONS: usize = 64;
/// Labels that the name of a webhook has at least.
// `IsFullyQualifiedName`: "should be a domain with at least three segments separated by dots".
const MIN_LABELS: usize = 3;
// Seconds: `validateWebhook`.
const TIMEOUTS: std::ops::RangeInclusive<i64> = 1..=30;

pub(super) fn configuration(object: &Value, found: &mut Vec<Finding>) {
    let is_mutating = object["kind"] == "MutatingWebhookConfiguration";
    let place = Place { configuration: name(object), webhook: None, is_mutating };
    let mut at = Findings { place: place.clone(), all: found };
    if shape::configuration(object, &mut at) {
        check_metadata(&object["metadata"], &mut at);
    }
    if at.place.is_static() {
        let problem = format!(
            "names that end in {STATIC_SUFFIX} are for files that an API server of 1.36 or later \
             loads itself; 1.37 rejects them through its API"
        );
        let advice = "Put the file into its staticManifestsDir, or rename the configuration.";
        at.add(Severity::Warning, "metadata.name", problem, advice);
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

fn check_metadata(metadata: &Value, at: &mut Findings<'_>) {
    let text = |key: &str| metadata[key].as_str().unwrap_or_default();
    let field = |key: &str| format!("metadata.{key}");
    // The API server adds a suffix to generateName.
    let generated = text("generateName").trim_end_matches('-');
    match (text("name"), generated) {
        ("", "") => at.error(field("name"), "the name is missing", "Name the configuration."),
        ("", name) | (name, _) if names::is_dns_subdomain(name) => {}
        (name, _) => {
            let advice = "Use lower case letters, digits, '-' and '.'.";
            at.error(field("name"), format!("{name:?} is not the name of an object"), advice);
        }
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if !names::is_qualified_name(key) || !names::is_label_value(value) {
            let problem = format!("{key}: {value:?} is not a label");
            at.error(field("labels"), problem, "Correct the key or the value.");
        }
    }
    for key in metadata["annotations"].as_object().into_iter().flat_map(|all| all.keys()) {
        if !names::is_qualified_name(&key.to_lowercase()) {
            let problem = format!("{key:?} is not the key of an annotation");
            at.error(field("annotations"), problem, "Correct the key.");
        }
    }
}

fn check_webhook(webhook: &Value, name: &str, at: &mut Findings<'_>) {
    if !shape::webhook(webhook, at) {
        return;
    }
    check_name(name, at);
    client::check(&webhook["clientConfig"], at);
    rules::check(&webhook["rules"], at);
    selectors::check(webhook, at);
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
    if !timeout.is_null() && !timeout.as_i64().is_some_and(|seconds| TIMEOUTS.contains(&seconds)) {
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
    if !names::is_dns_subdomain(name) || name.split('.').count() < MIN_LABELS {
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
    for version in versions.iter().filter(|version| !names::is_dns1035_label(version)) {
        at.error(field, format!("{version:?} is not a version"), "Use [v1].");
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
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let field = |name: &str| format!("matchConditions[{index}].{name}");
        let text = |name: &str| condition[name].as_str().unwrap_or_default();
        if text("name").is_empty() {
            at.error(field("name"), "the name is missing", "Name the condition.");
        } else if !names::is_qualified_name(text("name")) {
            let problem = format!("{:?} is not a qualified name", text("name"));
            at.error(field("name"), problem, "Use a name such as not-on-the-host-network.");
        } else if !seen.insert(text("name")) {
            at.error(field("name"), "another condition has the same name", "Rename one.");
        }
        if text("expression").trim().is_empty() {
            at.error(field("expression"), "it is missing", "Write a CEL expression.");
        }
    }
}
