//! Which field a key of the patch means, and what the base has there.

use serde_json::{Map, Value};

use super::Base;
use crate::{
    error::MergeError,
    schema::{Field, Kind, Merge, POD},
};

/// The type of an object that is merged; unknown inside unknown fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Types(pub(super) Option<&'static Kind>);

/// How a list is merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListType {
    pub(super) merge: Merge,
    /// What the elements are.
    pub(super) element: Option<&'static Kind>,
}

/// What the base has in a field.
#[derive(Debug)]
pub(super) enum Current<'a> {
    Absent,
    Null,
    Here(&'a mut Value),
}

impl Types {
    pub(super) fn pod() -> Self {
        Self(Some(&POD))
    }

    /// The field of a key, whatever its case.
    pub(super) fn find(self, key: &str) -> Option<&'static Field> {
        self.0?.as_struct()?.field_ignoring_case(key)
    }

    /// Whether the key is a field but for its case.
    pub(super) fn differs_in_case(self, key: &str) -> bool {
        self.find(key).is_some_and(|field| field.name != key)
    }

    /// Go: `LookupPatchMetadataForStruct`.
    fn field(self, key: &str, reading: Base) -> Result<Option<&'static Field>, MergeError> {
        let go_struct = match self.0 {
            None => return Ok(None),
            Some(Kind::Struct(inner)) => inner.get().name,
            Some(Kind::IntOrString) => "IntOrString",
            Some(Kind::Quantity) => "Quantity",
            Some(Kind::Time) => "Time",
            Some(Kind::Any) => "FieldsV1",
            Some(kind) => return Err(MergeError::NotAStruct { kind: kind.go_kind() }),
        };
        let field = self.find(key);
        if field.is_none() && reading == Base::Json {
            return Err(MergeError::UnknownField { go_struct, field: key.to_owned() });
        }
        Ok(field)
    }

    /// The type of a field.
    pub(super) fn inside(self, key: &str, reading: Base) -> Result<Self, MergeError> {
        Ok(Self(self.field(key, reading)?.map(|field| &field.kind)))
    }

    /// How the list in a field is merged.
    ///
    /// Go: `LookupPatchMetadataForSlice`.
    pub(super) fn list(self, key: &str, reading: Base) -> Result<ListType, MergeError> {
        let Some(field) = self.field(key, reading)? else {
            return Ok(ListType { merge: Merge::Replace, element: None });
        };
        match &field.kind {
            Kind::List(element) => Ok(ListType { merge: field.merge, element: Some(element) }),
            kind if field.pointer => Ok(ListType { merge: Merge::Replace, element: Some(kind) }),
            _ => Err(MergeError::NotAList),
        }
    }
}

/// What the base has in a field. In a Pod, values that Go does not write count as absent.
pub(super) fn current<'a>(
    base: &'a mut Map<String, Value>,
    key: &str,
    field: Option<&Field>,
    reading: Base,
) -> Current<'a> {
    let vanishes = match (base.get(key), field) {
        _ if reading == Base::Json => false,
        (None | Some(Value::Null), Some(field)) if is_written_as_null(field) => {
            return Current::Null;
        }
        (Some(Value::Null), _) => true,
        (Some(Value::Array(list)), Some(field)) => list.is_empty() && is_omitted(field),
        (Some(Value::Object(map)), Some(field)) => map.is_empty() && is_omitted(field),
        _ => false,
    };
    match base.get_mut(key) {
        _ if vanishes => Current::Absent,
        None => Current::Absent,
        Some(Value::Null) => Current::Null,
        Some(value) => Current::Here(value),
    }
}

fn is_written_as_null(field: &Field) -> bool {
    field.written && (field.pointer || matches!(field.kind, Kind::List(_) | Kind::Map(..)))
}

fn is_omitted(field: &Field) -> bool {
    !field.written && matches!(field.kind, Kind::List(_) | Kind::Map(..))
}

/// Go always writes some structs, so a Pod has them.
pub(super) fn add_implied_struct(
    base: &mut Map<String, Value>,
    key: &str,
    field: Option<&Field>,
    reading: Base,
) {
    let implied = |field: &Field| {
        field.name == key && field.written && !field.pointer && field.kind.as_struct().is_some()
    };
    let absent = base.get(key).is_none_or(Value::is_null);
    if reading == Base::Pod && absent && field.is_some_and(implied) {
        base.insert(key.to_owned(), Value::Object(Map::new()));
    }
}
