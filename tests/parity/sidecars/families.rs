//! The families: which templates stand for the settings and the resources of a webhook.

mod azure;
mod cloud_sql;
mod dapr;
mod eks;
mod generic;
mod otel_java;
mod otel_sidecar;
mod sidecarset;
mod tailer;
mod vault;

use serde_json::Value;

use super::{case::Case, example::Example};
pub(crate) use generic::configuration;

/// A family of cases.
pub(crate) struct Family {
    /// The directory, and the name of the example.
    pub(crate) name: &'static str,
    /// Of a hundred cases, how many may be explained at most.
    pub(crate) most_explained: usize,
    fit: fn(&Case, &Example) -> Vec<Value>,
}

impl Family {
    /// The templates for a case.
    pub(crate) fn templates(&self, case: &Case) -> Vec<Value> {
        (self.fit)(case, &Example::read(self.name))
    }
}

/// All families.
pub(crate) const ALL: &[Family] = &[
    Family { name: "azure-workload-identity", most_explained: 15, fit: azure::fit },
    Family { name: "cloud-sql-proxy", most_explained: 15, fit: cloud_sql::fit },
    Family { name: "dapr", most_explained: 30, fit: dapr::fit },
    Family { name: "eks-pod-identity", most_explained: 15, fit: eks::fit },
    Family { name: "generic-named", most_explained: 15, fit: generic::fit },
    Family { name: "log-tailer", most_explained: 15, fit: tailer::fit },
    Family { name: "otel-java", most_explained: 15, fit: otel_java::fit },
    Family { name: "otel-sidecar", most_explained: 15, fit: otel_sidecar::fit },
    Family { name: "sidecarset", most_explained: 30, fit: sidecarset::fit },
    Family { name: "vault-agent", most_explained: 15, fit: vault::fit },
];

/// A text of the settings; empty if it is absent.
fn text<'v>(settings: &'v Value, field: &str) -> &'v str {
    settings[field].as_str().unwrap_or_default()
}

/// A boolean of the settings; false if it is absent.
fn flag(settings: &Value, field: &str) -> bool {
    settings[field].as_bool().unwrap_or_default()
}

/// The items of a list; none if it is absent.
fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Text that a template keeps as it is: `${` is no expression.
fn constant(value: &Value) -> Value {
    let text = value.to_string().replace("${", "$${");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{value}: {error}"))
}
