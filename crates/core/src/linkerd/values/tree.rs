//! Reading a values tree as upstream's structs read it (`docs/spec/linkerd/injection.md` §2.7-1).
//!
//! Keys match in any case, unknown keys are ignored, and scalars become strings where a string is
//! expected. A missing or `null` key has Go's zero value.

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use serde_json::{Map, Value};

use super::ValuesError;
use crate::linkerd::release::{Delta, Release};

type Result<T> = std::result::Result<T, ValuesError>;

/// A map of the values, with its path.
#[derive(Debug)]
pub(crate) struct Section<'v> {
    path: String,
    pub(super) map: Option<&'v Map<String, Value>>,
    pub(super) release: Release,
}

impl<'v> Section<'v> {
    /// The whole tree; `null` is an empty one.
    pub(crate) fn root(tree: &'v Value, release: Release) -> Result<Self> {
        Self::nested(String::new(), Some(tree), release)
    }

    /// A section below this one.
    pub(crate) fn section(&self, key: &str) -> Result<Self> {
        Self::nested(self.path_of(key), self.get(key), self.release)
    }

    /// A section below this one, if it is present.
    pub(crate) fn optional(&self, key: &str) -> Result<Option<Self>> {
        Ok(Some(self.section(key)?).filter(|section| section.map.is_some()))
    }

    /// A required section below this one.
    pub(crate) fn required(&self, key: &str) -> Result<Self> {
        self.optional(key)?.ok_or_else(|| ValuesError::Missing(self.path_of(key)))
    }

    /// This section, but empty if the release is older than the change: it ignores the keys.
    pub(super) fn since(&self, delta: Delta) -> Self {
        self.only_if(self.release.has(delta))
    }

    /// This section, but empty if the release has the change: it ignores the keys.
    pub(super) fn until(&self, delta: Delta) -> Self {
        self.only_if(!self.release.has(delta))
    }

    /// A list.
    pub(super) fn list(&self, key: &str) -> Result<&'v [Value]> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(value) => Err(self.mismatch(key, "a list", value)),
        }
    }

    /// The entries of this section.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'v String, &'v Value)> {
        self.map.into_iter().flatten()
    }

    /// Whether the key is present and not `null`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The path of a key, joined with dots.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The error for a value of the wrong type at `key`.
    pub(crate) fn mismatch(&self, key: &str, expected: &'static str, found: &Value) -> ValuesError {
        ValuesError::Type { key: self.path_of(key), expected, found: described(found) }
    }

    fn nested(path: String, value: Option<&'v Value>, release: Release) -> Result<Self> {
        let map = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            // The file may be another one than was meant, such as a private key.
            Some(value) if path.is_empty() => {
                let found = if value.is_array() { "a list" } else { "a single value" };
                let (key, found) = ("the whole file".to_owned(), found.to_owned());
                return Err(ValuesError::Type { key, expected: "a map", found });
            }
            Some(value) => {
                let found = described(value);
                return Err(ValuesError::Type { key: path, expected: "a map", found });
            }
        };
        Ok(Self { path, map, release })
    }

    fn only_if(&self, is_known: bool) -> Self {
        Self { path: self.path.clone(), map: self.map.filter(|_| is_known), release: self.release }
    }

    /// The value of a key, unless it is `null`. The exact spelling wins over other cases.
    pub(super) fn get(&self, key: &str) -> Option<&'v Value> {
        let map = self.map?;
        map.get(key)
            .or_else(|| map.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v))
            .filter(|value| !value.is_null())
    }
}

fn described(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Array(_) => return "a list".to_owned(),
        Value::Object(_) => return "a map".to_owned(),
        Value::Bool(_) => "the boolean",
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
    };
    format!("{kind} {value}")
}
