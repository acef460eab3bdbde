//! The keywords of `OpenAPI` that the schemas use. A schema with another one is not read, so that none is left out
//! of the check.

use std::{collections::BTreeMap, sync::LazyLock};

use injectd_cel::{Environment, Program};
use regex::Regex;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value};

/// A structural schema.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Schema {
    /// `None`: any.
    pub(super) r#type: Option<Type>,
    #[serde(rename = "description")]
    _description: String,
    #[serde(rename = "format")]
    _format: Option<String>,
    pub(super) default: Option<Value>,
    // Of an object.
    #[serde(default)]
    pub(super) properties: BTreeMap<String, Self>,
    #[serde(default)]
    pub(super) required: Vec<String>,
    pub(super) additional_properties: Option<Box<Self>>,
    pub(super) max_properties: Option<usize>,
    /// Exactly one of these fields is set.
    #[serde(default)]
    pub(super) one_of: Vec<Alternative>,
    #[serde(default, rename = "x-kubernetes-preserve-unknown-fields")]
    pub(super) keeps_unknown_fields: bool,
    #[serde(rename = "x-kubernetes-map-type")]
    _map_type: Option<String>,
    // Of a list.
    pub(super) items: Option<Box<Self>>,
    pub(super) min_items: Option<usize>,
    pub(super) max_items: Option<usize>,
    #[serde(rename = "x-kubernetes-list-type")]
    _list_type: Option<String>,
    /// The field whose value no two items share.
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(super) list_map_keys: Option<[String; 1]>,
    // Of a text.
    pub(super) r#enum: Option<Vec<String>>,
    pub(super) min_length: Option<usize>,
    pub(super) max_length: Option<usize>,
    #[serde(default, deserialize_with = "pattern")]
    pub(super) pattern: Option<Regex>,
    // Of a number.
    pub(super) minimum: Option<i64>,
    pub(super) maximum: Option<i64>,
    #[serde(default, rename = "x-kubernetes-validations")]
    pub(super) rules: Vec<Rule>,
}

/// One of several fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Alternative {
    required: [String; 1],
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Type {
    Object,
    Array,
    String,
    Integer,
    Boolean,
}

/// An expression over `self` that must be true.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    #[serde(deserialize_with = "program")]
    pub(super) rule: Program,
    pub(super) message: String,
}

static OF_RULES: LazyLock<Environment> =
    LazyLock::new(|| Environment::conditions().clone().with("self", "dyn"));

fn pattern<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Regex>, D::Error> {
    let text = String::deserialize(from)?;
    Regex::new(&text).map(Some).map_err(D::Error::custom)
}

fn program<'de, D: Deserializer<'de>>(from: D) -> Result<Program, D::Error> {
    let text = String::deserialize(from)?;
    Program::compile_in(&OF_RULES, &text).map_err(D::Error::custom)
}

// === impl Schema ===

impl Schema {
    /// One of the files.
    pub(super) fn of(written: Value) -> Self {
        serde_json::from_value(written).expect("the files of crds must have known keywords only")
    }

    /// What is expected, for a person.
    pub(super) fn type_text(&self) -> &'static str {
        self.r#type.map_or("a value", Type::text)
    }

    /// The fields of which exactly one is set.
    pub(super) fn alternatives(&self) -> impl Iterator<Item = &str> {
        self.one_of.iter().map(|Alternative { required: [name] }| &**name)
    }

    /// A value with the defaults of the schema, and without fields that are null, as an API server reads it.
    pub(super) fn filled(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => Value::Object(self.filled_fields(fields)),
            Value::Array(items) => match &self.items {
                Some(schema) => items.iter().map(|item| schema.filled(item)).collect(),
                None => value.clone(),
            },
            other => other.clone(),
        }
    }

    fn filled_fields(&self, fields: &Map<String, Value>) -> Map<String, Value> {
        let mut filled = Map::new();
        for (name, value) in fields {
            let schema = self.properties.get(name).or(self.additional_properties.as_deref());
            match schema {
                // An API server drops nulls of fields that are not nullable; no field here is.
                Some(_) if value.is_null() => {}
                Some(schema) => drop(filled.insert(name.clone(), schema.filled(value))),
                None => drop(filled.insert(name.clone(), value.clone())),
            }
        }
        for (name, schema) in &self.properties {
            if let (Some(default), false) = (&schema.default, filled.contains_key(name)) {
                filled.insert(name.clone(), default.clone());
            }
        }
        filled
    }
}

impl Type {
    /// Whether a value has this type.
    pub(super) fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Integer => {
                let is_whole = |number: f64| number.fract() == 0.0;
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(is_whole)
            }
            Self::Boolean => value.is_boolean(),
        }
    }

    /// The type for a person.
    fn text(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "a list",
            Self::String => "a string",
            Self::Integer => "an integer",
            Self::Boolean => "true or false",
        }
    }
}
