//! Values of a pod that change other fields than their own, as text in what templates write.

use serde::Serialize;

/// The values of a pod, and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tainted {
    /// The values.
    pub values: Vec<TaintedValue>,
    /// What happens to the pod in each mode of the mesh.
    pub modes: Vec<TaintedMode>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintedValue {
    /// Where the pod has it, such as `annotation sidecar.istio.io/logLevel`.
    pub value: String,
    /// The names of the templates in which it changes other fields.
    pub templates: Vec<String>,
}

/// What happens in a mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintedMode {
    /// Its name, such as `warn`.
    pub mode: &'static str,
    /// Whether it is the mode of the configuration.
    pub is_in_use: bool,
    /// What happens to the pod.
    pub outcome: String,
}
