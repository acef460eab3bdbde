//! What expressions read: values with the kinds of JSON, behind traits, so that a value may be a tree
//! or the text that it is written in.

use std::{borrow::Cow, rc::Rc};

use serde_json::{Map, Value};

use super::ast::{Constant, Literal};

/// The variables of an expression. `authorizer` is missing: its answers come from an API server.
#[derive(Debug, Clone, Copy)]
pub struct Data<'d> {
    /// The variable `object`.
    pub object: Datum<'d>,
    /// The variable `oldObject`.
    pub old_object: Datum<'d>,
    /// The variable `request`.
    pub request: Datum<'d>,
    /// The variable `namespaceObject`.
    pub namespace_object: Datum<'d>,
}

/// A value of the data.
#[derive(Debug, Clone, Copy)]
pub enum Datum<'d> {
    /// `null`.
    Null,
    /// True or false.
    Bool(bool),
    /// A signed whole number.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(&'d str),
    /// Bytes.
    Bytes(&'d [u8]),
    /// A list.
    List(&'d dyn Items),
    /// A map.
    Map(&'d dyn Fields),
    /// A list of a source.
    ListAt(&'d dyn Source, Place),
    /// A map of a source.
    MapAt(&'d dyn Source, Place),
    /// A text of a source, which is made when it is read.
    TextAt(&'d dyn Source, Place),
    /// A quantity, as its author wrote it.
    Quantity(&'d str),
    /// A duration in Go's form, such as `1m30s`.
    Duration(&'d str),
    /// An optional without a value.
    Absent,
    /// An optional with a value.
    Present(&'d Datum<'d>),
    /// An optional of a source: its value is the first element, if it has one.
    OptionalAt(&'d dyn Source, Place),
    /// It has no value, for this reason: an expression that needs it fails.
    Failed(&'d str),
    /// It is not known here, for this reason.
    Unknown(&'static str),
}

/// A list of the data.
pub trait Items: std::fmt::Debug + Sync {
    /// The number of elements.
    fn count(&self) -> usize;

    /// An element; `None` beyond the last one.
    fn get(&self, index: usize) -> Option<Datum<'_>>;
}

/// A map of the data.
pub trait Fields: std::fmt::Debug + Sync {
    /// The number of fields.
    fn count(&self) -> usize;

    /// The value of a field.
    fn get(&self, name: &str) -> Option<Datum<'_>>;

    /// The fields in their order.
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Datum<'_>)> + '_>;
}

/// Where a value is in its source.
pub type Place = u32;

/// Lists, maps and texts that have places and no objects of their own, such as those of a JSON text.
pub trait Source: std::fmt::Debug + Sync {
    /// The number of elements of a list, or of keys of a map.
    fn count(&self, at: Place) -> usize;

    /// An element, or the value of an optional; `None` beyond the last one.
    fn item(&self, at: Place, index: usize) -> Option<Datum<'_>>;

    /// The elements of a list.
    fn items(&self, at: Place) -> Box<dyn Iterator<Item = Datum<'_>> + '_>;

    /// The value of a key.
    fn field(&self, at: Place, name: &str) -> Option<Datum<'_>>;

    /// The keys and values of a map, each key once.
    fn fields(&self, at: Place) -> Vec<(Cow<'_, str>, Datum<'_>)>;

    /// A text.
    fn text(&self, at: Place) -> Rc<str>;
}

/// The variables of an expression.
pub trait Variables {
    /// The value of a variable; `None` if it is not known.
    fn get(&self, name: &str) -> Option<Datum<'_>>;
}

impl Variables for Data<'_> {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        match name {
            "object" => Some(self.object),
            "oldObject" => Some(self.old_object),
            "request" => Some(self.request),
            "namespaceObject" => Some(self.namespace_object),
            _ => None,
        }
    }
}

impl<'d> From<&'d Value> for Datum<'d> {
    /// Whole numbers are signed, as the API server reads JSON.
    fn from(json: &'d Value) -> Self {
        match json {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Int(whole),
                None => Self::Double(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items),
            Value::Object(fields) => Self::Map(fields),
        }
    }
}

impl Items for Vec<Value> {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, index: usize) -> Option<Datum<'_>> {
        self.as_slice().get(index).map(Datum::from)
    }
}

/// Fields that are compared one by one: a hash costs more.
const FEW: usize = 12;

impl Fields for Map<String, Value> {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, name: &str) -> Option<Datum<'_>> {
        if self.len() > FEW {
            return self.get(name).map(Datum::from);
        }
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Datum<'_>)> + '_> {
        Box::new(self.iter().map(|(name, value)| (&**name, value.into())))
    }
}

impl<'d> From<&'d Constant> for Datum<'d> {
    fn from(constant: &'d Constant) -> Self {
        match constant {
            Constant::Literal(literal) => literal.into(),
            Constant::List(items) => Self::List(items),
            Constant::Map(entries) => Self::Map(entries),
        }
    }
}

impl<'d> From<&'d Literal> for Datum<'d> {
    fn from(literal: &'d Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Int(value) => Self::Int(*value),
            Literal::Uint(value) => Self::Uint(*value),
            Literal::Double(value) => Self::Double(*value),
            Literal::Text(text) => Self::Text(text),
            Literal::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

impl Items for Vec<Constant> {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, index: usize) -> Option<Datum<'_>> {
        self.as_slice().get(index).map(Datum::from)
    }
}

/// The keys are in their order, as `Constant::Map` has them.
impl Fields for Vec<(Box<str>, Constant)> {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, name: &str) -> Option<Datum<'_>> {
        let place = self.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        self.as_slice().get(place).map(|(_, value)| value.into())
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Datum<'_>)> + '_> {
        Box::new(self.iter().map(|(key, value)| (&**key, value.into())))
    }
}
