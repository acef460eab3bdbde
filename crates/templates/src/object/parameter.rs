//! Parameters of a template as they are written.

use serde::Deserialize;

use super::KeyPlace;

/// Gives every parameter with a key the sources prefix + key.
#[derive(Debug, Clone, Deserialize)]
pub struct ParameterKeys {
    /// The prefix, such as `secrets.example.com/`.
    pub prefix: String,
    /// Where prefix + key is looked up, in this order.
    pub r#in: Vec<KeyPlace>,
}

/// A value that a pod, its namespace or its ServiceAccount may set.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// A CEL identifier: `params.NAME`.
    pub name: String,
    /// The type of its values.
    pub r#type: ParameterType,
    /// The key behind the prefix of `parameterKeys`.
    pub key: Option<String>,
    /// Where it is looked up, in this order, before `parameterKeys`.
    #[serde(default)]
    pub from: Vec<ParameterSource>,
    /// Its value if no source has one, as a source would write it.
    pub default: Option<String>,
    /// Whether a pod without a value is denied.
    #[serde(default)]
    pub required: bool,
    /// What an empty source is.
    #[serde(default)]
    pub empty: Empty,
    /// What a value that cannot be read, or is out of bounds, does.
    #[serde(default)]
    pub on_invalid: OnInvalid,
    /// The bounds of the value.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// Bounds of the items of a List.
    pub items: Option<Scalar>,
    /// Bounds of the values of a Map.
    pub values: Option<Scalar>,
    /// What separates the items of a List.
    #[serde(default = "Parameter::separator")]
    pub separator: String,
}

impl Parameter {
    fn separator() -> String {
        ",".to_owned()
    }
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ParameterType {
    /// A text.
    String,
    /// A signed integer of 64 bits.
    Integer,
    /// A boolean.
    Boolean,
    /// A quantity of Kubernetes.
    Quantity,
    /// A duration of Go.
    Duration,
    /// A list of scalars.
    List,
    /// A map of scalars.
    Map,
}

/// The type and bounds of items and values.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scalar {
    /// The type: neither List nor Map.
    pub r#type: ParameterType,
    /// The bounds.
    #[serde(flatten)]
    pub bounds: Bounds,
}

/// Bounds of a value. Each belongs to some types.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bounds {
    /// The least Integer, Quantity or Duration, as a source would write it.
    pub minimum: Option<String>,
    /// The greatest Integer, Quantity or Duration, as a source would write it.
    pub maximum: Option<String>,
    /// The least number of characters of a String.
    pub min_length: Option<u32>,
    /// The greatest number of characters of a String.
    pub max_length: Option<u32>,
    /// A regular expression (RE2, not anchored) of a String.
    pub pattern: Option<String>,
    /// The values that are allowed, as a source would write them.
    pub r#enum: Option<Vec<String>>,
    /// The least number of items or entries.
    pub min_items: Option<u32>,
    /// The greatest number of items or entries.
    pub max_items: Option<u32>,
}

/// Where a parameter is looked up: a place and a key, or a prefix of keys for a Map.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ParameterSource {
    /// An annotation of the pod.
    PodAnnotation(String),
    /// All annotations of the pod with a prefix.
    PodAnnotationPrefix(String),
    /// A label of the pod.
    PodLabel(String),
    /// An annotation of the namespace.
    NamespaceAnnotation(String),
    /// All annotations of the namespace with a prefix.
    NamespaceAnnotationPrefix(String),
    /// A label of the namespace.
    NamespaceLabel(String),
    /// An annotation of the ServiceAccount.
    ServiceAccountAnnotation(String),
}

/// What a source with an empty value is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Empty {
    /// Absent: the next source counts.
    #[default]
    Absent,
    /// A value: it hides the sources behind it.
    Value,
}

/// What an invalid value does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum OnInvalid {
    /// It denies the pod.
    #[default]
    Deny,
    /// The next source counts, with a warning.
    NextSource,
    /// The default counts, with a warning.
    UseDefault,
    /// The item or entry is dropped, with a warning.
    DropItem,
}
