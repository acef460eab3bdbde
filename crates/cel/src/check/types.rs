//! Types of CEL, and how they fit.

use std::sync::Arc;

use injectd_merge::schema::{Kind, POD, StructRef};

/// A type. Its parts are shared: an expression may have as many deep types as it has names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    /// Not known yet, such as that of the elements of an empty list: what it is compared with decides.
    Var(u32),
    /// Known only when the expression is evaluated.
    Dyn,
    /// Any type, the same wherever it stands in an overload.
    Any(char),
    /// One of the base types, or of Kubernetes' types that have functions only.
    Named(&'static str),
    List(Arc<Self>),
    Map(Arc<(Self, Self)>),
    Optional(Arc<Self>),
    /// The type of a type, such as `type(int)`.
    Of(Arc<Self>),
    /// A type with these fields.
    Object(&'static Object),
    /// A type that the caller declares.
    Record(Arc<Record>),
    /// A part of a Pod.
    Pod(StructRef),
}

/// An object type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(super) name: &'static str,
    /// Names and types, as [`Type::read`] reads them; a type may be the name of another object.
    fields: &'static [(&'static str, &'static str)],
}

/// An object type of the caller.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: Box<str>,
    /// Sorted by name. Types with more and more fields share them.
    pub(crate) fields: Vec<Arc<Field>>,
}

/// A field of such a type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) of: Type,
    pub(crate) may_be_absent: bool,
}

/// The objects of `pkg/admission/plugin/cel/compile.go`, and those of sidecar templates.
static OBJECTS: [Object; 13] = [
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
    Object { name: "NamespaceObject", fields: &[("metadata", "NamespaceMetadata")] },
    Object { name: "ServiceAccount", fields: &[("metadata", "ObjectMeta")] },
    Object {
        name: "Owner",
        fields: &[
            ("apiVersion", "string"),
            ("kind", "string"),
            ("name", "string"),
            ("uid", "string"),
            ("labels", "map<string,string>"),
        ],
    },
    Object {
        name: "Variable",
        fields: &[
            ("isSet", "bool"),
            ("value", "string"),
            ("fromSource", "bool"),
            ("entry", "optional<EnvVar>"),
        ],
    },
    Object {
        name: "Image",
        fields: &[
            ("registry", "string"),
            ("repository", "string"),
            ("tag", "string"),
            ("digest", "string"),
        ],
    },
];
/// Those of them that belong to templates: each has all of its fields.
const OF_TEMPLATES: [&str; 5] = ["NamespaceObject", "ServiceAccount", "Owner", "Variable", "Image"];
/// Types with literals, and that of types: no value of theirs is null. Null itself is.
const LITERALS: [&str; 7] = ["bool", "int", "uint", "double", "string", "bytes", "type"];
/// Types without fields.
const NAMES: [&str; 23] = [
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
    "optional_type",
];

impl Type {
    pub(crate) fn named(name: &str) -> Self {
        if let Some(name) = NAMES.iter().find(|known| **known == name) {
            return Self::Named(name);
        }
        let object = OBJECTS.iter().find(|object| object.name == name).map(Self::Object);
        object.or_else(|| StructRef::named(name).map(Self::Pod)).unwrap_or(Self::Dyn)
    }

    /// The type as [`Type::read`] reads it; objects of a caller are `dyn`.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::Var(_) | Self::Dyn | Self::Any(_) | Self::Record(_) => "dyn".to_owned(),
            Self::Named(name) => (*name).to_owned(),
            Self::Of(of) => format!("type<{}>", of.written()),
            Self::List(item) => format!("list<{}>", item.written()),
            Self::Optional(item) => format!("optional<{}>", item.written()),
            Self::Map(pair) => format!("map<{},{}>", pair.0.written(), pair.1.written()),
            Self::Object(object) => object.name.to_owned(),
            Self::Pod(of) => of.get().name.to_owned(),
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
        if let Some(items) = argument(text, "type") {
            return Self::Of(Arc::new(items.into_iter().next().unwrap_or(Self::Dyn)));
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

    /// The type of Pods.
    pub(crate) fn pod() -> Self {
        Self::of_kind(&POD)
    }

    /// What values of a Pod are in JSON. A quantity and an `IntOrString` may be texts or numbers.
    pub(crate) fn of_kind(kind: &Kind) -> Self {
        match kind {
            Kind::Text(_) | Kind::Time => Self::named("string"),
            Kind::Boolean => Self::named("bool"),
            Kind::Int32 | Kind::Int64 => Self::named("int"),
            Kind::IntOrString | Kind::Quantity | Kind::Any => Self::Dyn,
            Kind::Struct(of) => Self::Pod(*of),
            Kind::List(item) => Self::list_of(Self::of_kind(item)),
            Kind::Map(_, value) => {
                Self::Map(Arc::new((Self::named("string"), Self::of_kind(value))))
            }
        }
    }

    /// Whether values of a type may be anything.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Var(_) | Self::Dyn | Self::Any(_))
    }

    /// Whether `null` is a value of it.
    pub(super) fn is_nullable(&self) -> bool {
        match self {
            Self::Named(name) => !LITERALS.contains(name),
            Self::Object(_) | Self::Pod(_) | Self::Optional(_) | Self::Record(_) => true,
            _ => false,
        }
    }

    /// Whether a value may lack a field or key; `None` if that is not known. Kubernetes leaves out what
    /// is empty, but for some fields.
    pub(crate) fn may_lack(&self, name: &str, release: u32) -> Option<bool> {
        match self {
            Self::Map(_) => Some(true),
            Self::Pod(of) => of.get().field_at(name, release).map(|field| !field.written),
            Self::Record(of) => of.field(name).map(|field| field.may_be_absent),
            Self::Object(of) if of.name == "NamespaceMetadata" => Some(name != "name"),
            Self::Object(of) => OF_TEMPLATES.contains(&of.name).then_some(false),
            _ => None,
        }
    }

    /// The type of a field; `Err` if there is none in this minor version of Kubernetes.
    pub(crate) fn field(&self, name: &str, release: u32) -> Result<Self, String> {
        let found = match self {
            Self::Map(pair) => return Ok(pair.1.clone()),
            open if open.is_open() => return Ok(Self::Dyn),
            Self::Object(object) => {
                let field = object.fields.iter().find(|(known, _)| *known == name);
                (object.name, field.map(|(_, text)| Self::read(text)))
            }
            Self::Pod(of) => {
                let of = of.get();
                let field = of.field_at(name, release);
                if field.is_none()
                    && let Some(other) = of.field_of_any_release(name)
                {
                    return Err(other_release(of.name, other));
                }
                (of.name, field.map(|field| Self::of_kind(&field.kind)))
            }
            Self::Record(of) => (&*of.name, of.field(name).map(|field| field.of.clone())),
            other => return Err(format!("a {other} has no fields, such as {name:?}")),
        };
        found.1.ok_or_else(|| format!("{} has no field {name:?}", found.0))
    }
}

/// Why a release has no such field.
fn other_release(of: &str, field: &injectd_merge::schema::Field) -> String {
    let name = field.name;
    match (field.since, field.until) {
        (Some(since), _) => format!("field {name:?} of {of} exists from Kubernetes 1.{since}"),
        (None, until) => {
            let last = until.unwrap_or_default().saturating_sub(1);
            format!("field {name:?} of {of} exists up to Kubernetes 1.{last}")
        }
    }
}

impl Object {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, Type)> {
        self.fields.iter().map(|(name, text)| (*name, Type::read(text)))
    }
}

impl Record {
    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(self.place(name).ok()?).map(|field| &**field)
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.fields.binary_search_by(|field| (*field.name).cmp(name))
    }

    /// The type with a field more, which every object has.
    pub(super) fn with(&self, name: &str, of: Type) -> Self {
        let field = Arc::new(Field { name: name.into(), of, may_be_absent: false });
        let mut fields = Vec::with_capacity(self.fields.len() + 1);
        fields.extend(self.fields.iter().cloned());
        match self.place(name) {
            Ok(at) => fields[at] = field,
            Err(at) => fields.insert(at, field),
        }
        Self { name: self.name.clone(), fields }
    }
}
