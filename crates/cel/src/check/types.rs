//! Types of CEL, and how they fit.

use std::{fmt, sync::Arc};

/// A type. Its parts are shared: an expression may have as many deep types as it has names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    /// Not known yet, such as the elements of an empty list: it fits everything.
    Unknown,
    /// Known only when the expression is evaluated.
    Dyn,
    /// Any type, the same wherever it stands in an overload.
    Any(char),
    /// One of the base types, or of Kubernetes' types that have functions only.
    Named(&'static str),
    List(Arc<Self>),
    Map(Arc<(Self, Self)>),
    Optional(Arc<Self>),
    /// A type with these fields.
    Object(&'static Object),
}

/// An object type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(super) name: &'static str,
    /// Names and types, as [`Type::read`] reads them; a type may be the name of another object.
    fields: &'static [(&'static str, &'static str)],
}

/// The objects of `pkg/admission/plugin/cel/compile.go`.
static OBJECTS: [Object; 8] = [
    Object {
        name: "AdmissionRequest",
        fields: &[
            ("kind", "GroupVersionKind"),
            ("resource", "GroupVersionResource"),
            ("subResource", "string"),
            ("requestKind", "GroupVersionKind"),
            ("requestResource", "GroupVersionResource"),
            ("requestSubResource", "string"),
            ("name", "string"),
            ("namespace", "string"),
            ("operation", "string"),
            ("userInfo", "UserInfo"),
            ("dryRun", "bool"),
            ("options", "dyn"),
        ],
    },
    Object {
        name: "GroupVersionKind",
        fields: &[("group", "string"), ("version", "string"), ("kind", "string")],
    },
    Object {
        name: "GroupVersionResource",
        fields: &[("group", "string"), ("version", "string"), ("resource", "string")],
    },
    Object {
        name: "UserInfo",
        fields: &[
            ("username", "string"),
            ("uid", "string"),
            ("groups", "list<string>"),
            ("extra", "map<string,list<string>>"),
        ],
    },
    Object {
        name: "Namespace",
        fields: &[
            ("metadata", "NamespaceMetadata"),
            ("spec", "NamespaceSpec"),
            ("status", "NamespaceStatus"),
        ],
    },
    Object {
        name: "NamespaceMetadata",
        fields: &[
            ("name", "string"),
            ("generateName", "string"),
            ("namespace", "string"),
            ("labels", "map<string,string>"),
            ("annotations", "map<string,string>"),
            ("UID", "string"),
            ("creationTimestamp", "timestamp"),
            ("deletionGracePeriodSeconds", "int"),
            ("deletionTimestamp", "timestamp"),
            ("generation", "int"),
            ("resourceVersion", "string"),
            ("finalizers", "list<string>"),
        ],
    },
    Object { name: "NamespaceSpec", fields: &[("finalizers", "list<string>")] },
    Object { name: "NamespaceStatus", fields: &[("conditions", "list<dyn>"), ("phase", "string")] },
];
/// Types with literals, and that of types: no value of theirs is null. Null itself is.
const LITERALS: [&str; 7] = ["bool", "int", "uint", "double", "string", "bytes", "type"];
/// Types without fields.
const NAMES: [&str; 22] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "null",
    "duration",
    "timestamp",
    "type",
    "url",
    "ip",
    "cidr",
    "quantity",
    "semver",
    "format",
    "authorizer",
    "path",
    "group",
    "check",
    "decision",
    "message",
];

impl Type {
    pub(crate) fn named(name: &str) -> Self {
        match NAMES.iter().find(|known| **known == name) {
            Some(name) => Self::Named(name),
            None => OBJECTS
                .iter()
                .find(|object| object.name == name)
                .map_or(Self::Unknown, Self::Object),
        }
    }

    /// Reads a type, such as `map<string,list<A>>`.
    pub(crate) fn read(text: &str) -> Self {
        let argument = |text: &str, name: &str| {
            let rest = text.strip_prefix(name)?.strip_prefix('<')?.strip_suffix('>')?;
            Some(Self::list(rest))
        };
        if let Some(items) = argument(text, "list") {
            return Self::list_of(items.into_iter().next().unwrap_or(Self::Dyn));
        }
        if let Some(items) = argument(text, "optional") {
            return Self::optional_of(items.into_iter().next().unwrap_or(Self::Dyn));
        }
        if let Some(items) = argument(text, "map") {
            let mut items = items.into_iter();
            let pair = (items.next().unwrap_or(Self::Dyn), items.next().unwrap_or(Self::Dyn));
            return Self::Map(Arc::new(pair));
        }
        match text {
            "dyn" => Self::Dyn,
            "A" | "B" => Self::Any(if text == "A" { 'A' } else { 'B' }),
            name => Self::named(name),
        }
    }

    /// Reads types between commas.
    pub(super) fn list(text: &str) -> Vec<Self> {
        let mut depth = 0;
        let parts = text.split(|character| {
            depth += i32::from(character == '<') - i32::from(character == '>');
            character == ',' && depth == 0
        });
        parts.filter(|part| !part.is_empty()).map(Self::read).collect()
    }

    pub(crate) fn list_of(item: Self) -> Self {
        Self::List(Arc::new(item))
    }

    pub(crate) fn optional_of(item: Self) -> Self {
        Self::Optional(Arc::new(item))
    }

    /// Whether values of a type may be anything.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Unknown | Self::Dyn | Self::Any(_))
    }

    /// Whether a part of it is not known yet.
    pub(super) fn is_free(&self) -> bool {
        match self {
            Self::Unknown | Self::Any(_) => true,
            Self::List(item) | Self::Optional(item) => item.is_free(),
            Self::Map(pair) => pair.0.is_free() || pair.1.is_free(),
            Self::Dyn | Self::Named(_) | Self::Object(_) => false,
        }
    }

    /// Whether it is the same type, where both are known.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown | Self::Any(_), _) | (_, Self::Unknown | Self::Any(_)) => true,
            (Self::List(one), Self::List(other)) | (Self::Optional(one), Self::Optional(other)) => {
                one.is_same(other)
            }
            (Self::Map(one), Self::Map(other)) => {
                one.0.is_same(&other.0) && one.1.is_same(&other.1)
            }
            (one, other) => one == other,
        }
    }

    /// The type of a field; `Err` if there is none.
    pub(super) fn field(&self, name: &str) -> Result<Self, String> {
        match self {
            Self::Dyn => Ok(Self::Dyn),
            Self::Unknown | Self::Any(_) => Ok(Self::Unknown),
            Self::Map(pair) => Ok(pair.1.clone()),
            Self::Optional(item) => Ok(Self::optional_of(item.field(name)?)),
            Self::Object(object) => {
                let field = object.fields.iter().find(|(known, _)| *known == name);
                let found = field.map(|(_, text)| Self::read(text));
                found.ok_or_else(|| format!("{} has no field {name:?}", object.name))
            }
            other => Err(format!("a {other} has no fields, such as {name:?}")),
        }
    }
}

/// What `A` and `B` stand for in one call.
#[derive(Debug, Default)]
pub(super) struct Bindings(Vec<(char, Type)>);

impl Bindings {
    /// Whether an argument fits a parameter.
    pub(super) fn fit(&mut self, parameter: &Type, argument: &Type) -> bool {
        match (parameter, argument) {
            (Type::Any(name), argument) => self.bind(*name, argument),
            (parameter, argument) if parameter.is_open() || argument.is_open() => true,
            // What has no literals may be null.
            (Type::Object(_) | Type::Optional(_), Type::Named("null")) => true,
            (Type::Named(name), Type::Named("null")) => !LITERALS.contains(name),
            (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
                self.fit(one, other)
            }
            (Type::Map(one), Type::Map(other)) => {
                self.fit(&one.0, &other.0) & self.fit(&one.1, &other.1)
            }
            (one, other) => one == other,
        }
    }

    fn bind(&mut self, name: char, argument: &Type) -> bool {
        let Some(index) = self.0.iter().position(|(of, _)| *of == name) else {
            self.0.push((name, argument.clone()));
            return true;
        };
        let bound = self.0[index].1.clone();
        let fits = Self::default().fit(&bound, argument) || Self::default().fit(argument, &bound);
        // A type that is open at first is as the next one, but for one that stays open.
        if bound == Type::Unknown || *argument == Type::Dyn {
            self.0[index].1 = argument.clone();
        }
        fits
    }

    /// A result type, with what was bound.
    pub(super) fn resolve(&self, result: &Type) -> Type {
        match result {
            Type::Any(name) => {
                let bound = self.0.iter().find(|(of, _)| of == name);
                bound.map_or(Type::Unknown, |(_, bound)| bound.clone())
            }
            Type::List(item) => Type::list_of(self.resolve(item)),
            Type::Optional(item) => Type::optional_of(self.resolve(item)),
            Type::Map(pair) => Type::Map(Arc::new((self.resolve(&pair.0), self.resolve(&pair.1)))),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown | Self::Dyn | Self::Any(_) => f.write_str("dyn"),
            Self::Named("null") => f.write_str("null_type"),
            Self::Named(name) => f.write_str(name),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(pair) => write!(f, "map({}, {})", pair.0, pair.1),
            Self::Optional(item) => write!(f, "optional({item})"),
            Self::Object(object) => f.write_str(object.name),
        }
    }
}
