//! What is wrong or dangerous in webhook configurations, before an API server has them.
//!
//! The errors are those of Kubernetes' validation (`pkg/apis/admissionregistration/validation`). Not
//! for certificates, which need the time and a connection.

use injectd_cel::absent::Work;
use serde::Serialize;
use serde_json::Value;

use crate::Configurations;

pub(crate) mod builtin;
mod client;
mod danger;
mod failing;
mod fields;
mod nothing;
mod overlap;
mod parts;
mod requests;
mod rules;
mod selectors;
mod shape;
mod url;

/// The end of the names of configurations that an API server of 1.36 or later loads from its own files
/// (`ManifestBasedAdmissionControlConfig`). Its API shows none of them, and rejects them from 1.37 on.
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The API server rejects the configuration.
    Error,
    /// It works until something fails, and then more fails.
    Danger,
    /// Probably not what is meant.
    Warning,
    /// It works; this is better.
    Suggestion,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Name of the configuration.
    pub configuration: String,
    /// Name of the webhook; `None` for the configuration itself.
    pub webhook: Option<String>,
    /// The field, such as `rules[0].operations`.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub advice: String,
}

/// The place of a finding.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    configuration: String,
    webhook: Option<String>,
    is_mutating: bool,
}

impl Place {
    /// Whether the configuration is for a file of the API server.
    fn is_static(&self) -> bool {
        self.configuration.ends_with(STATIC_SUFFIX)
    }
}

/// Findings of one place.
#[derive(Debug)]
pub(crate) struct Findings<'f> {
    place: Place,
    all: &'f mut Vec<Finding>,
}

/// Whether an object is a webhook configuration.
#[must_use]
pub fn is_configuration(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    matches!(kind, "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration")
}

/// Checks webhook configurations, alone and together; other objects are skipped.
#[must_use]
pub fn check<'c>(objects: impl IntoIterator<Item = &'c Value>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut usable = Vec::new();
    let mut work = Work::of_run();
    for object in objects.into_iter().filter(|object| is_configuration(object)) {
        fields::configuration(object, &mut found);
        // What cannot be read has findings already.
        if let Ok(read) = Configurations::read([object]) {
            danger::conditions(&read, &mut found);
            failing::check(object, &read, &mut work, &mut found);
            usable.push(object);
        }
    }
    if let Ok(all) = Configurations::read(usable) {
        danger::all(&all, &mut found);
        overlap::all(&all, &mut found);
    }
    found.sort_by_key(|finding| finding.severity);
    found
}

fn name(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Findings<'_> {
    fn add(
        &mut self,
        severity: Severity,
        field: impl Into<String>,
        problem: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.all.push(Finding {
            severity,
            configuration: self.place.configuration.clone(),
            webhook: self.place.webhook.clone(),
            field: field.into(),
            problem: problem.into(),
            advice: advice.into(),
        });
    }

    fn error(
        &mut self,
        field: impl Into<String>,
        problem: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Severity::Error, field, problem, advice);
    }
}

#[cfg(test)]
mod tests;
