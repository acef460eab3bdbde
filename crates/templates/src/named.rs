//! Lists whose entries have names: what Kubernetes merges by a key.

use std::{borrow::Cow, collections::BTreeSet};

use injectd_merge::schema::{Field, Kind, Merge, Struct};
use serde_json::Value;

/// A list of a Pod whose entries have names.
#[derive(Debug, Clone, Copy)]
pub struct NamedList {
    /// The key of an entry that has its name.
    pub key: &'static str,
    /// The type of an entry.
    pub types: &'static Struct,
}

impl NamedList {
    /// The list in a field, if its entries have names.
    #[must_use]
    pub fn of(field: &'static Field) -> Option<Self> {
        match (&field.kind, field.merge) {
            (Kind::List(element), Merge::ByKey(key)) => {
                Some(Self { key, types: element.as_struct()? })
            }
            _ => None,
        }
    }

    /// The name of an entry. Two keys where Kubernetes' API has two: a port is its number and protocol.
    #[must_use]
    pub fn name(self, entry: &Value) -> Option<String> {
        self.identity(entry).map(Cow::into_owned)
    }

    /// The same, borrowed where it is one text.
    #[must_use]
    pub fn identity(self, entry: &Value) -> Option<Cow<'_, str>> {
        let key: Cow<'_, str> = match member(entry, self.key)? {
            Value::String(text) => text.into(),
            other => other.to_string().into(),
        };
        let second =
            |key: &str| member(entry, key).and_then(Value::as_str).filter(|t| !t.is_empty());
        match self.types.name {
            "ContainerPort" => {
                Some(format!("{key}/{}", second("protocol").unwrap_or("TCP")).into())
            }
            "TopologySpreadConstraint" => {
                Some(format!("{key}/{}", second("whenUnsatisfiable").unwrap_or_default()).into())
            }
            _ => Some(key),
        }
    }

    /// Where the entry of a name is. If there are several, the last one counts, as it does for variables.
    #[must_use]
    pub fn position(self, list: &[Value], name: &str) -> Option<usize> {
        list.iter().rposition(|entry| self.identity(entry).as_deref() == Some(name))
    }

    /// Whether entries are variables.
    #[must_use]
    pub fn is_env(self) -> bool {
        self.types.name == "EnvVar"
    }
}

/// Names that are compared one by one: a set costs more.
const FEW_NAMES: usize = 16;

/// Whether a list has a name twice.
#[must_use]
pub fn has_twice<T: Ord>(names: &[T]) -> bool {
    if names.len() > FEW_NAMES {
        return names.iter().collect::<BTreeSet<_>>().len() < names.len();
    }
    names.iter().enumerate().any(|(at, name)| names[..at].contains(name))
}

/// Members that are compared one by one: a hash costs more.
const FEW: usize = 12;

/// A member of an object.
#[must_use]
pub fn member<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    let fields = value.as_object()?;
    if fields.len() > FEW {
        return fields.get(key);
    }
    fields.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
}
