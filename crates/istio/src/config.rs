//! The injector's configuration: the keys `config` and `values` of ConfigMap
//! `istio-sidecar-injector`.
//!
//! Templates stay texts here: parsing them is the business of the template engine.

use std::collections::BTreeMap;

use injectd_gocompat::number::format_float;
use injectd_k8s::selector::{Expression, LabelSelector};
use injectd_yaml::{Options, Problem, WholeFloats};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    document::{Document, Mistaken},
    selector::Selector,
};

mod values;

#[cfg(test)]
mod tests;

pub use values::Values;

/// The template of pods that ask for none, if the configuration has no default templates.
pub const DEFAULT_TEMPLATE: &str = "sidecar";

/// Why a document of the configuration is refused.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The text is not YAML.
    #[error("{document} cannot be parsed as YAML")]
    Yaml {
        /// `config` or `values`.
        document: &'static str,
        /// Where and why.
        #[source]
        source: Problem,
    },
    /// A key holds a value of another type.
    #[error("{place} must be {expected}, but is {found}")]
    Type {
        /// The path of the key, such as `values.global.hub`.
        place: String,
        /// The expected type, with its article.
        expected: &'static str,
        /// The type of the value, with its article.
        found: &'static str,
    },
    /// The document has no content: Istio injects no pod without a config, and denies every pod
    /// without values.
    #[error("{} is empty; expected {}", .0.key(), .0)]
    Empty(Document),
    /// The text is another document.
    #[error(transparent)]
    Mistaken(#[from] Mistaken),
}

impl ConfigError {
    pub(super) fn of_type(place: &str, expected: &'static str, value: &Value) -> Self {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "a mapping",
        };
        Self::Type { place: place.to_owned(), expected, found }
    }
}

/// What happens to pods that say nothing: key `policy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// `enabled`: they are injected.
    Enabled,
    /// `disabled`: they are not injected.
    Disabled,
    /// Another text, or none: no pod is ever injected.
    Other(String),
}

impl Default for Policy {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// Key `config` of the `ConfigMap`.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// `policy`.
    pub policy: Policy,
    /// `defaultTemplates`, or [`DEFAULT_TEMPLATE`] if it is empty.
    pub default_templates: Vec<String>,
    /// `templates`: Go templates by name. Without any, every pod is denied.
    pub templates: BTreeMap<String, String>,
    /// `aliases`: lists of template names by alias.
    pub aliases: BTreeMap<String, Vec<String>>,
    /// `neverInjectSelector`.
    pub never_inject: Vec<Selector>,
    /// `alwaysInjectSelector`.
    pub always_inject: Vec<Selector>,
    /// `injectedAnnotations`: set on each injected pod, over all others.
    pub injected_annotations: BTreeMap<String, String>,
}

impl Config {
    /// Reads the configuration as `sigs.k8s.io/yaml` does (`pkg/kube/inject/webhook.go`,
    /// `UnmarshalConfig`): keys in any case, unknown keys ignored, the last of equal keys wins, and
    /// numbers and booleans are texts where a text is expected.
    ///
    /// The key `template`, a guard for old injectors, is ignored.
    ///
    /// # Errors
    /// The text is not YAML, or is another document, or a value has the wrong type.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let options = Options { whole_floats: WholeFloats::Floats, ..Options::default() };
        let tree = injectd_yaml::parse(text, options)
            .map_err(|source| ConfigError::Yaml { document: "config", source })?;
        Document::Config.check(&tree)?;
        let mut config = Self::default();
        for (key, value) in entries("config", &tree)? {
            config.read(key, value)?;
        }
        if config.default_templates.is_empty() {
            config.default_templates.push(DEFAULT_TEMPLATE.to_owned());
        }
        Ok(config)
    }

    fn read(&mut self, key: &str, value: &Value) -> Result<(), ConfigError> {
        let place = format!("config.{key}");
        match &*key.to_ascii_lowercase() {
            "policy" if !value.is_null() => self.policy = policy(text(&place, value)?),
            "defaulttemplates" => self.default_templates = list(&place, value, text)?,
            "templates" => self.templates = map(&place, value, text)?,
            "aliases" => self.aliases = map(&place, value, |place, v| list(place, v, text))?,
            "neverinjectselector" => self.never_inject = list(&place, value, selector)?,
            "alwaysinjectselector" => self.always_inject = list(&place, value, selector)?,
            "injectedannotations" => self.injected_annotations = map(&place, value, text)?,
            _ => {}
        }
        Ok(())
    }
}

fn policy(text: String) -> Policy {
    match &*text {
        "enabled" => Policy::Enabled,
        "disabled" => Policy::Disabled,
        _ => Policy::Other(text),
    }
}

/// A `metav1.LabelSelector`; whether it makes sense is checked by [`Selector::new`].
fn selector(place: &str, value: &Value) -> Result<Selector, ConfigError> {
    let mut written = LabelSelector::default();
    for (key, value) in entries(place, value)? {
        let place = format!("{place}.{key}");
        match &*key.to_ascii_lowercase() {
            "matchlabels" => written.match_labels = map(&place, value, text)?,
            "matchexpressions" => {
                written.match_expressions = list(&place, value, expression)?;
            }
            _ => {}
        }
    }
    Ok(Selector::new(written))
}

fn expression(place: &str, value: &Value) -> Result<Expression, ConfigError> {
    let mut expression = Expression::default();
    for (key, value) in entries(place, value)? {
        let place = format!("{place}.{key}");
        match &*key.to_ascii_lowercase() {
            "key" => expression.key = text(&place, value)?,
            "operator" => expression.operator = text(&place, value)?,
            "values" => expression.values = list(&place, value, text)?,
            _ => {}
        }
    }
    Ok(expression)
}

/// The entries of a mapping, in the order in which Go reads them: by key.
fn entries<'v>(place: &str, value: &'v Value) -> Result<Vec<(&'v str, &'v Value)>, ConfigError> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    let map = match value {
        Value::Object(map) => map,
        Value::Null => &NONE,
        _ => return Err(ConfigError::of_type(place, "a mapping", value)),
    };
    let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    Ok(entries)
}

fn list<T>(
    place: &str,
    value: &Value,
    read: impl Fn(&str, &Value) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        Value::Null => &[],
        _ => return Err(ConfigError::of_type(place, "a list", value)),
    };
    let items = items.iter().enumerate();
    items.map(|(index, item)| read(&format!("{place}[{index}]"), item)).collect()
}

fn map<T>(
    place: &str,
    value: &Value,
    read: impl Fn(&str, &Value) -> Result<T, ConfigError>,
) -> Result<BTreeMap<String, T>, ConfigError> {
    let entries = entries(place, value)?.into_iter();
    entries
        .map(|(key, value)| Ok((key.to_owned(), read(&format!("{place}.{key}"), value)?)))
        .collect()
}

/// A text; `null` is empty. Go's library prints numbers and booleans into texts.
fn text(place: &str, value: &Value) -> Result<String, ConfigError> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) if number.is_f64() => {
            Ok(format_float(number.as_f64().unwrap_or_default()))
        }
        Value::Number(number) => Ok(number.to_string()),
        Value::Array(_) | Value::Object(_) => Err(ConfigError::of_type(place, "a string", value)),
    }
}
