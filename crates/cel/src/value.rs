//! Values of an evaluation.

use std::{net::IpAddr, rc::Rc};

use injectd_gocompat::duration;

use super::{ast::Literal, data::Datum, work::Work};

mod equal;
mod format;
mod json;
mod list;
mod map;
mod net;
mod quantity;
mod semver;
mod time;
pub(super) mod url;

pub(super) use self::{
    equal::{compare, equal, order, weight},
    format::Format,
    json::{json, text as json_text},
    list::List,
    map::{Made, Map},
    net::{Cidr, address},
    quantity::Quantity,
    semver::Semver,
    time::{InvalidTime, Time},
    url::Url,
};

pub(super) use super::fault::{Fault, Res};

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Val<'d> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'d>),
    Bytes(Bytes<'d>),
    List(List<'d>),
    Map(Map<'d>),
    Optional(Option<Rc<Self>>),
    /// A type, by its name.
    Type(&'static str),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Time),
    Ip(IpAddr),
    Cidr(Rc<Cidr>),
    Quantity(Rc<Quantity<'d>>),
    Semver(Rc<Semver>),
    Url(Rc<Url>),
    Format(&'static Format),
}

/// A text of the data or of the expression, or one that was made. Both are the same to a map.
#[derive(Debug, Clone)]
pub(super) enum Text<'d> {
    Borrowed(&'d str),
    Made(Rc<str>),
}

/// Bytes of the expression, or such that were made.
#[derive(Debug, Clone)]
pub(super) enum Bytes<'d> {
    Borrowed(&'d [u8]),
    Made(Rc<[u8]>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl std::hash::Hash for Text<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

impl<'d> From<&'d Literal> for Val<'d> {
    fn from(literal: &'d Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Int(value) => Self::Int(*value),
            Literal::Uint(value) => Self::Uint(*value),
            Literal::Double(value) => Self::Double(*value),
            Literal::Text(text) => Self::Text(Text::Borrowed(text)),
            Literal::Bytes(bytes) => Self::Bytes(Bytes::Borrowed(bytes)),
        }
    }
}

impl<'d> Val<'d> {
    /// A value of the data.
    pub(super) fn of(datum: Datum<'d>) -> Res<Self> {
        Ok(match datum {
            Datum::Null => Self::Null,
            Datum::Bool(value) => Self::Bool(value),
            Datum::Int(value) => Self::Int(value),
            Datum::Uint(value) => Self::Uint(value),
            Datum::Double(value) => Self::Double(value),
            Datum::Text(text) => Self::Text(Text::Borrowed(text)),
            Datum::Bytes(bytes) => Self::Bytes(Bytes::Borrowed(bytes)),
            Datum::List(items) => Self::List(List::Data(items)),
            Datum::Map(fields) => Self::Map(Map::Data(fields)),
            Datum::ListAt(source, at) => Self::List(List::At(source, at)),
            Datum::MapAt(source, at) => Self::Map(Map::At(source, at)),
            Datum::TextAt(source, at) => Self::Text(Text::Made(source.text(at))),
            Datum::Quantity(text) => Self::Quantity(Rc::new(Quantity::read(Text::Borrowed(text))?)),
            Datum::Duration(text) => match duration::parse(text) {
                Some(nanos) => Self::Duration(nanos),
                None => return Fault::error("invalid duration"),
            },
            Datum::Absent => Self::Optional(None),
            Datum::Present(value) => Self::some(Self::of(*value)?),
            Datum::OptionalAt(source, at) => {
                let value = source.item(at, 0).map(Self::of).transpose()?;
                Self::Optional(value.map(Rc::new))
            }
            Datum::Failed(reason) => return Fault::error(reason),
            Datum::Unknown(reason) => return Fault::unknown(reason),
        })
    }

    pub(super) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub(super) fn list(items: Vec<Self>) -> Self {
        Self::List(List::Made(Rc::new(items)))
    }

    pub(super) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// The sum of no elements of a type.
    pub(super) fn zero(of: &str) -> Self {
        match of {
            "uint" => Self::Uint(0),
            "double" => Self::Double(0.0),
            "google.protobuf.Duration" => Self::Duration(0),
            _ => Self::Int(0),
        }
    }

    /// Whether a constant of this type may stand in brackets (`newQualifier` of cel-go).
    pub(super) fn is_qualifier(&self) -> bool {
        matches!(
            self,
            Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Double(_) | Self::Text(_)
        )
    }

    /// The name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Url(_) => "kubernetes.URL",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }
}

impl Work {
    /// Counts elements of a list that are copied.
    ///
    /// # Errors
    /// They are more than allowed.
    pub(super) fn spend_items(&mut self, items: usize) -> Res<()> {
        self.spend(items.saturating_mul(std::mem::size_of::<Val<'_>>()))
    }
}
