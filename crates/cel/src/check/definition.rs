//! Types as callers write and read them: of variables, and of what an expression gives.

use std::{fmt, sync::Arc};

use injectd_merge::schema::{Kind, StructRef};

use super::types::{Field, Record, Type};

/// A type of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeDef {
    /// Any value: its type is known when the expression is evaluated.
    Dyn,
    /// `null`.
    Null,
    /// True or false.
    Bool,
    /// A signed whole number.
    Int,
    /// A whole number without a sign.
    Uint,
    /// A number with a fraction.
    Double,
    /// A text.
    String,
    /// Bytes.
    Bytes,
    /// A quantity of Kubernetes.
    Quantity,
    /// A duration.
    Duration,
    /// A point in time.
    Timestamp,
    /// A list.
    List(Box<Self>),
    /// A map whose keys are texts.
    Map(Box<Self>),
    /// A value that may be missing.
    Optional(Box<Self>),
    /// An object with these fields.
    Object {
        /// How errors name it.
        name: String,
        /// Its fields.
        fields: Vec<FieldDef>,
    },
    /// A Pod, or a part of one, such as a container.
    PodPart(StructRef),
    /// Another type, such as `ip`, as [`TypeDef::from`] reads it.
    Other(String),
}

/// A field of an object type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDef {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub of: TypeDef,
    /// Whether an object may lack it: `has(…)` and `.?` say whether it does.
    pub may_be_absent: bool,
}

impl FieldDef {
    /// A field that every object has.
    #[must_use]
    pub fn required(name: &str, of: TypeDef) -> Self {
        Self { name: name.to_owned(), of, may_be_absent: false }
    }

    /// A field that an object may lack.
    #[must_use]
    pub fn optional(name: &str, of: TypeDef) -> Self {
        Self { name: name.to_owned(), of, may_be_absent: true }
    }
}

impl TypeDef {
    /// A list of such values.
    #[must_use]
    pub fn list(self) -> Self {
        Self::List(Box::new(self))
    }

    /// A map from texts to such values.
    #[must_use]
    pub fn map(self) -> Self {
        Self::Map(Box::new(self))
    }

    /// Such a value, or none.
    #[must_use]
    pub fn optional(self) -> Self {
        Self::Optional(Box::new(self))
    }

    /// An object with fields.
    #[must_use]
    pub fn object(name: &str, fields: Vec<FieldDef>) -> Self {
        Self::Object { name: name.to_owned(), fields }
    }

    /// A whole Pod.
    #[must_use]
    pub fn pod() -> Self {
        Self::from(&Type::pod())
    }

    /// A container of a Pod.
    #[must_use]
    pub fn container() -> Self {
        Self::from("Container")
    }

    /// The type of what a place in a Pod holds. Quantities and `IntOrString` are [`TypeDef::Dyn`].
    #[must_use]
    pub fn of_place(kind: &Kind) -> Self {
        Self::from(&Type::of_kind(kind))
    }
}

impl From<&str> for TypeDef {
    /// Reads a type that is written as `map<string,list<int>>`. Names of types are those of CEL, of
    /// Kubernetes' functions (`quantity`, `ip`) and of parts of a Pod (`Pod`, `Container`); unknown
    /// ones are [`TypeDef::Dyn`].
    fn from(text: &str) -> Self {
        Self::from(&Type::read(text))
    }
}

impl From<&Type> for TypeDef {
    fn from(of: &Type) -> Self {
        let boxed = |of: &Type| Box::new(Self::from(of));
        match of {
            Type::Var(_) | Type::Dyn | Type::Any(_) => Self::Dyn,
            Type::Named(name) => match *name {
                "null" => Self::Null,
                "bool" => Self::Bool,
                "int" => Self::Int,
                "uint" => Self::Uint,
                "double" => Self::Double,
                "string" => Self::String,
                "bytes" => Self::Bytes,
                "quantity" => Self::Quantity,
                "duration" => Self::Duration,
                "timestamp" => Self::Timestamp,
                other => Self::Other(other.to_owned()),
            },
            Type::List(item) => Self::List(boxed(item)),
            Type::Optional(item) => Self::Optional(boxed(item)),
            Type::Map(pair) if pair.0.is_open() || pair.0 == Type::named("string") => {
                Self::Map(boxed(&pair.1))
            }
            Type::Map(_) | Type::Of(_) => Self::Other(of.written()),
            Type::Object(object) => {
                let fields = object.fields().map(|(name, field)| FieldDef {
                    name: name.to_owned(),
                    of: (&field).into(),
                    may_be_absent: of.may_lack(name, 0) != Some(false),
                });
                Self::object(object.name(), fields.collect())
            }
            Type::Record(record) => {
                let fields = record.fields.iter().map(|field| FieldDef {
                    name: field.name.to_string(),
                    of: (&field.of).into(),
                    may_be_absent: field.may_be_absent,
                });
                Self::object(&record.name, fields.collect())
            }
            Type::Pod(of) => Self::PodPart(*of),
        }
    }
}

impl From<&TypeDef> for Type {
    fn from(of: &TypeDef) -> Self {
        Self::named(match of {
            TypeDef::Dyn => return Self::Dyn,
            TypeDef::List(item) => return Self::list_of((&**item).into()),
            TypeDef::Map(item) => {
                return Self::Map(Arc::new((Self::named("string"), (&**item).into())));
            }
            TypeDef::Optional(item) => return Self::optional_of((&**item).into()),
            TypeDef::Object { name, fields } => return Self::Record(record(name, fields)),
            TypeDef::PodPart(of) => return Self::Pod(*of),
            TypeDef::Other(text) => return Self::read(text),
            TypeDef::Null => "null",
            TypeDef::Bool => "bool",
            TypeDef::Int => "int",
            TypeDef::Uint => "uint",
            TypeDef::Double => "double",
            TypeDef::String => "string",
            TypeDef::Bytes => "bytes",
            TypeDef::Quantity => "quantity",
            TypeDef::Duration => "duration",
            TypeDef::Timestamp => "timestamp",
        })
    }
}

fn record(name: &str, fields: &[FieldDef]) -> Arc<Record> {
    let field = |field: &FieldDef| {
        Arc::new(Field {
            name: field.name.as_str().into(),
            of: (&field.of).into(),
            may_be_absent: field.may_be_absent,
        })
    };
    let mut fields: Vec<_> = fields.iter().map(field).collect();
    // A binary search finds the fields.
    fields.sort_by(|one, other| one.name.cmp(&other.name));
    Arc::new(Record { name: name.into(), fields })
}

/// As Kubernetes prints types.
impl fmt::Display for TypeDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Type::from(self).fmt(f)
    }
}
