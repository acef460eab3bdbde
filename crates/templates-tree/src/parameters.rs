//! Values that a pod, its namespace or its ServiceAccount sets.
//!
//! No text of this module has a value: it names the parameter and the source.

use std::collections::BTreeMap;

use injectd_core::text::printable;
use injectd_templates::{
    object::{Empty, OnInvalid, Parameter, ParameterSource, ParameterType, Spec},
    parameters::{Form, ScalarValue, sources},
};

use self::{family::Families, warnings::Warnings};
use crate::layers::Layers;
use serde_json::Value;

mod family;
mod unknown;
mod warnings;

#[cfg(test)]
mod tests;

/// Characters of a key of a cluster, at most: a prefix of 253, a slash and a name of 63.
const MOST_SHOWN: usize = 317;

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamValue {
    /// A text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A boolean.
    Boolean(bool),
    /// A quantity as its author wrote it, without blanks around it.
    Quantity(String),
    /// A duration as Go prints it.
    Duration(String),
    /// Items, in the order of the text.
    List(Vec<ScalarValue>),
    /// Entries by key.
    Map(BTreeMap<String, ScalarValue>),
}

impl From<ScalarValue> for ParamValue {
    fn from(value: ScalarValue) -> Self {
        match value {
            ScalarValue::Text(text) => Self::Text(text),
            ScalarValue::Integer(value) => Self::Integer(value),
            ScalarValue::Boolean(value) => Self::Boolean(value),
            ScalarValue::Quantity(text) => Self::Quantity(text),
            ScalarValue::Duration(text) => Self::Duration(text),
        }
    }
}

impl From<ParamValue> for Value {
    /// As JSON: quantities and durations are texts.
    fn from(value: ParamValue) -> Self {
        match value {
            ParamValue::Text(text) | ParamValue::Quantity(text) | ParamValue::Duration(text) => {
                Self::String(text)
            }
            ParamValue::Integer(value) => value.into(),
            ParamValue::Boolean(value) => value.into(),
            ParamValue::List(items) => {
                items.into_iter().map(|item| Self::from(ParamValue::from(item))).collect()
            }
            ParamValue::Map(entries) => entries
                .into_iter()
                .map(|(key, value)| (key, Self::from(ParamValue::from(value))))
                .collect(),
        }
    }
}

/// The values of the parameters of a template for a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The values by the names of the parameters. Optional parameters without a value are left out; a Map is
    /// always there.
    pub values: BTreeMap<String, ParamValue>,
    /// Where the values come from, by the names of all parameters: a source, the default, or nothing.
    pub origins: BTreeMap<String, String>,
    /// What was left out or replaced, and annotations that no parameter has.
    pub warnings: Vec<String>,
}

/// Reads the parameters of a template, in these forms.
///
/// # Errors
/// Why the pod is denied: the parameter and the source, never the value.
pub fn read(spec: &Spec, forms: &[Form], layers: &Layers) -> Result<Parameters, String> {
    let (mut values, mut origins) = (BTreeMap::new(), BTreeMap::new());
    let mut warnings = Warnings::default();
    let families = Families::of(&spec.parameters);
    for (parameter, form) in spec.parameters.iter().zip(forms) {
        let found = match form {
            Form::Entries { reader, count } => {
                let entries = families.read(parameter, reader, layers, &mut warnings)?;
                let (name, from) = (named(parameter), joined(&parameter.from));
                let must = |reason| format!("{name}: the Map of {from} {reason}");
                count.check(entries.len()).map_err(must)?;
                let origin = if entries.is_empty() { "no annotation".to_owned() } else { from };
                Some(Found { value: ParamValue::Map(entries), origin })
            }
            form => {
                let sources = sources(parameter, spec.parameter_keys.as_ref());
                Single { parameter, form, sources: &sources }.value(layers, &mut warnings)?
            }
        };
        let name = || parameter.name.clone();
        let origin = found.as_ref().map(|found| found.origin.clone());
        let origin = origin.unwrap_or_else(|| "not set".to_owned());
        origins.insert(name(), origin);
        if let Some(found) = found {
            values.insert(name(), found.value);
        }
    }
    unknown::warn(spec, layers, &mut warnings);
    Ok(Parameters { values, origins, warnings: warnings.into_texts() })
}

/// A value, and where it comes from.
struct Found {
    value: ParamValue,
    origin: String,
}

/// The parameter in a message.
fn named(parameter: &Parameter) -> String {
    format!("parameter {}", parameter.name)
}

/// The key of an annotation in a message. A file may have longer ones than a cluster.
fn shown(key: &str) -> String {
    let first: String = key.chars().take(MOST_SHOWN).collect();
    let end = if first.len() < key.len() { "…" } else { "" };
    format!("{}{end}", printable(&first))
}

fn joined(sources: &[ParameterSource]) -> String {
    sources.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// Whether a text is empty for a type. A String is not trimmed.
fn is_empty(of: ParameterType, text: &str) -> bool {
    match of {
        ParameterType::String => text.is_empty(),
        _ => text.trim().is_empty(),
    }
}

/// A parameter with one value or a list of them.
struct Single<'t> {
    parameter: &'t Parameter,
    form: &'t Form,
    sources: &'t [ParameterSource],
}

impl Single<'_> {
    /// The value of the first source that has one, or the default.
    fn value(&self, layers: &Layers, warnings: &mut Warnings) -> Result<Option<Found>, String> {
        let Self { parameter, sources, .. } = *self;
        let mut invalid = None;
        for source in sources {
            let Some(text) = layers.text(source) else { continue };
            if is_empty(parameter.r#type, text) {
                match (parameter.empty, parameter.r#type) {
                    (Empty::Absent, _) => continue,
                    (Empty::Value, ParameterType::String) => {}
                    (Empty::Value, _) => return self.hidden(source),
                }
            }
            let reason = match self.read(text, &source.to_string(), warnings) {
                Ok(value) => return Ok(Some(Found { value, origin: source.to_string() })),
                Err(reason) => format!("{}: {reason}", named(parameter)),
            };
            match parameter.on_invalid {
                OnInvalid::Deny | OnInvalid::DropItem => return Err(reason),
                OnInvalid::NextSource => {
                    warnings.add(format!("{reason}; the next source counts instead"));
                    invalid = Some(reason);
                }
                OnInvalid::UseDefault => {
                    warnings.add(format!("{reason}; the default counts instead"));
                    invalid = Some(reason);
                    break;
                }
            }
        }
        match invalid {
            Some(reason) if parameter.required => Err(reason),
            _ => self.default(warnings),
        }
    }

    /// An empty source hides those behind it, and the default.
    fn hidden(&self, source: &ParameterSource) -> Result<Option<Found>, String> {
        if self.parameter.required {
            let name = named(self.parameter);
            return Err(format!("{name} is required, and {source} is empty; set it to a value"));
        }
        Ok(None)
    }

    fn default(&self, warnings: &mut Warnings) -> Result<Option<Found>, String> {
        let parameter = self.parameter;
        if let Some(default) = &parameter.default {
            // Defaults are checked when a template is read.
            let checked = match self.form {
                Form::One(reader) => ScalarValue::read(reader.of(), default),
                _ => None,
            };
            let value = match checked {
                Some(value) => Ok(value.into()),
                None => self.read(default, "the default", warnings),
            };
            let value = value.map_err(|reason| format!("{}: {reason}", named(parameter)))?;
            return Ok(Some(Found { value, origin: "the default".to_owned() }));
        }
        if parameter.required {
            return Err(format!("{} is required; set {}", named(parameter), joined(self.sources)));
        }
        Ok(None)
    }

    /// Reads a text. The error has the subject, and what it must be.
    fn read(
        &self,
        text: &str,
        subject: &str,
        warnings: &mut Warnings,
    ) -> Result<ParamValue, String> {
        let must = |reason| format!("{subject} {reason}");
        let items = match self.form {
            Form::One(reader) => return reader.read(text).map(Into::into).map_err(must),
            Form::Items(items) => items,
            // No text is a Map.
            Form::Entries { .. } => return Ok(ParamValue::Map(BTreeMap::new())),
        };
        let read = items.read(text);
        if let Some(invalid) = read.invalid {
            let problem = format!("item {} of {subject} {}", invalid.first, invalid.reason);
            if self.parameter.on_invalid != OnInvalid::DropItem {
                return Err(problem);
            }
            let dropped = match invalid.count {
                1 => "it is dropped".to_owned(),
                count => format!("it is dropped, and so are {} more", count - 1),
            };
            warnings.add(format!("{}: {problem}; {dropped}", named(self.parameter)));
        }
        items.count().check(read.values.len()).map_err(must)?;
        Ok(ParamValue::List(read.values))
    }
}
