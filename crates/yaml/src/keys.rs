//! The entries of a mapping while it is read: keys as strings, merge keys, keys written twice.

use std::collections::{HashMap, HashSet};

use granit_parser::Marker;
use injectd_gocompat::number;
use serde_json::{Map, Value};

use crate::{DuplicateKeys, scalar::Scalar};

/// The entries so far, and the key whose value comes next.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) map: Map<String, Value>,
    pub(crate) key: Option<Key>,
    /// Where the last key is.
    pub(crate) key_mark: Option<Marker>,
    /// The types of keys that are not text.
    kinds: HashMap<String, Kind>,
    /// Keys that only merge keys brought.
    merged: HashSet<String>,
}

#[derive(Debug)]
pub(crate) enum Key {
    /// `<<`
    Merge,
    Name(String, Kind),
}

/// What a key was before it became a string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Text,
    Int,
    Float(u64),
    Bool,
}

/// Why a key cannot be added.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is there, before it became a string with another type.
    TwoTypes(String),
    /// It is there.
    Duplicate(String),
}

impl Refused {
    pub(crate) fn message(&self) -> String {
        match self {
            Self::TwoTypes(name) => format!("two keys of different types become {name}"),
            Self::Duplicate(name) => format!("duplicate mapping key: {name}"),
        }
    }
}

impl Key {
    /// As `convertToJSONableObject` of sigs.k8s.io/yaml converts keys.
    pub(crate) fn of(scalar: Scalar<'_>) -> Result<Self, &'static str> {
        Ok(match scalar {
            Scalar::Text(text) => Self::Name(text.into_owned(), Kind::Text),
            Scalar::Bool(flag) => Self::Name(flag.to_string(), Kind::Bool),
            Scalar::Int(number) => Self::Name(number.to_string(), Kind::Int),
            Scalar::Float(number) => Self::Name(float_key(number), Kind::Float(number.to_bits())),
            Scalar::Null => return Err("expected a string as key, found null; quote the key"),
            Scalar::Uint(_) => return Err("the key is a number of more than 63 bits; quote it"),
        })
    }
}

/// Go: `strconv.FormatFloat(number, 'g', -1, 32)`, so only seven digits or so.
fn float_key(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "Go cuts it off as well")]
    let narrow = number as f32;
    if narrow.is_nan() {
        return ".nan".to_owned();
    }
    if narrow.is_infinite() {
        return if narrow > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let shortest = format!("{narrow:e}");
    number::format_float(shortest.parse().unwrap_or(number))
}

impl Entries {
    /// Adds the value of the key `name`.
    pub(crate) fn add(
        &mut self,
        name: String,
        kind: Kind,
        value: Value,
        duplicates: DuplicateKeys,
    ) -> Result<(), Refused> {
        if let Some(earlier) = self.map.get_mut(&name) {
            if self.kinds.get(&name).copied().unwrap_or(Kind::Text) != kind {
                return Err(Refused::TwoTypes(name));
            }
            let is_duplicate = !self.merged.remove(&name);
            match duplicates {
                DuplicateKeys::Error if is_duplicate => return Err(Refused::Duplicate(name)),
                DuplicateKeys::Kept if is_duplicate => {
                    let name = format!("{name}\0{}", self.map.len());
                    self.map.insert(name, value);
                }
                _ => *earlier = value,
            }
            return Ok(());
        }
        if kind != Kind::Text {
            self.kinds.insert(name.clone(), kind);
        }
        self.map.insert(name, value);
        Ok(())
    }

    /// Merges the value of a merge key; `aliased` if that value is an alias.
    pub(crate) fn merge(&mut self, value: Value, aliased: bool) -> Result<(), &'static str> {
        const WANTED: &str = "a merge key needs a mapping or a list of mappings";
        match value {
            Value::Object(map) => self.merge_map(map),
            Value::Array(items) if !aliased => {
                // The first of a list wins.
                for item in items.into_iter().rev() {
                    let Value::Object(map) = item else {
                        return Err(WANTED);
                    };
                    self.merge_map(map);
                }
            }
            _ => return Err(WANTED),
        }
        Ok(())
    }

    /// Entries of the merged mapping win over those before.
    fn merge_map(&mut self, map: Map<String, Value>) {
        for (name, value) in map {
            if !self.map.contains_key(&name) {
                self.merged.insert(name.clone());
            }
            self.map.insert(name, value);
        }
    }
}
