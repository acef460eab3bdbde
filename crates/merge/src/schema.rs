//! The types of a Pod: what each field holds, and how a list is merged.
//!
//! They come from `pod.txt`, which the program in `tests/go` prints from the Go types of Kubernetes
//! 1.36 (`k8s.io/api/core/v1`), with what 1.37 has in addition. A test compares the file with them.
//! Merges know the fields of 1.36 only; [`Struct::field_at`] knows both releases.

mod parse;
mod places;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use places::Places;

static STRUCTS: LazyLock<Vec<Struct>> =
    LazyLock::new(|| parse::structs(include_str!("schema/pod.txt")));

/// The minor version of Kubernetes whose fields [`Struct::fields`] are.
pub const RELEASE: u32 = 36;
/// The newest minor version of Kubernetes in the table.
pub const NEWEST_RELEASE: u32 = 37;

/// The type of a whole Pod, which is the first in the table.
pub static POD: Kind = Kind::Struct(StructRef(0));

/// A struct of Go: an object of JSON with known fields.
#[derive(Debug)]
pub struct Struct {
    /// Go's name without the package, such as `Container`.
    pub name: &'static str,
    /// Sorted by name.
    fields: Vec<Field>,
    /// Fields of later releases.
    newer: Vec<Field>,
    places: Places,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The key in JSON.
    pub name: &'static str,
    /// What the value is.
    pub kind: Kind,
    /// Whether the value is a pointer in Go, so that its zero differs from its absence.
    pub pointer: bool,
    /// Whether Go writes the field even if it is empty or unset.
    pub written: bool,
    /// How a list in it is merged.
    pub merge: Merge,
    /// Names of the structs that hold the field without a key of their own, such as `VolumeSource`.
    /// Go shows them in type errors. Usually empty.
    pub embedded_in: &'static str,
    /// The minor version of Kubernetes from which on there is the field, if that is after [`RELEASE`].
    pub since: Option<u32>,
    /// The minor version from which on there is no such field.
    pub until: Option<u32>,
}

/// How two lists become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The list of the patch replaces the other one.
    Replace,
    /// Elements are objects, and those with the same value of this key are merged.
    ByKey(&'static str),
    /// Elements are strings, and each occurs once.
    Set,
}

/// What a value is.
#[derive(Debug)]
pub enum Kind {
    /// A string; the name is Go's for its type, such as `v1.PullPolicy`.
    Text(&'static str),
    /// A boolean.
    Boolean,
    /// A signed integer of 32 bits.
    Int32,
    /// A signed integer of 64 bits.
    Int64,
    /// A signed integer of 32 bits or a string (`intstr.IntOrString`).
    IntOrString,
    /// A quantity: a string or a number (`resource.Quantity`).
    Quantity,
    /// A time of RFC 3339 (`metav1.Time`).
    Time,
    /// Any value (`metav1.FieldsV1`).
    Any,
    /// An object with known fields.
    Struct(StructRef),
    /// A list.
    List(Box<Kind>),
    /// An object with any keys; the name is Go's for its type, such as `map[string]string`.
    Map(&'static str, Box<Kind>),
}

/// A reference to one of the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructRef(usize);

impl StructRef {
    /// The type of a name, such as `Container`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        STRUCTS.iter().position(|of| of.name == name).map(Self)
    }

    /// The type.
    ///
    /// # Panics
    ///
    /// Never: a reference is made for a struct of the embedded types only.
    #[must_use]
    pub fn get(self) -> &'static Struct {
        STRUCTS.get(self.0).expect("a reference must be to one of the types")
    }
}

/// Structs whose fields of a struct are kinds of a thing: an object has one of them, and an empty one says which.
// Kubernetes: "must not specify more than 1 …" of `pkg/apis/core/validation`.
const UNIONS: [&str; 6] = [
    "VolumeSource",
    "ProbeHandler",
    "LifecycleHandler",
    "VolumeProjection",
    "EnvVarSource",
    "EnvFromSource",
];

impl Struct {
    /// The field of exactly this key.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.indexed(key).map(|(_, field)| field)
    }

    /// The field of exactly this key, and its place among [`Struct::fields`].
    #[must_use]
    #[inline]
    pub fn indexed(&self, key: &str) -> Option<(usize, &Field)> {
        self.places.get(&self.fields, key)
    }

    /// The field of exactly this key in a minor version of Kubernetes.
    #[must_use]
    pub fn field_at(&self, key: &str, release: u32) -> Option<&Field> {
        self.field_of_any_release(key).filter(|field| field.is_in(release))
    }

    /// All fields in a minor version of Kubernetes.
    pub fn fields_at(&self, release: u32) -> impl Iterator<Item = &Field> {
        self.fields.iter().chain(&self.newer).filter(move |field| field.is_in(release))
    }

    /// The field of exactly this key in any version of the table.
    #[must_use]
    pub fn field_of_any_release(&self, key: &str) -> Option<&Field> {
        self.field(key).or_else(|| self.newer.iter().find(|field| field.name == key))
    }

    /// The field of this key as Go finds it: the exact one, else one that differs in case only.
    ///
    /// Go: `encoding/json` and `third_party/forked/golang/json` of k8s.io/apimachinery.
    #[must_use]
    pub fn field_ignoring_case(&self, key: &str) -> Option<&Field> {
        let same = |field: &&Field| key.chars().map(folded).eq(field.name.chars().map(folded));
        self.field(key).or_else(|| self.fields.iter().find(same))
    }

    /// The union that a field is a member of, by the name of its struct.
    #[must_use]
    pub fn union_of(&self, field: &Field) -> Option<&'static str> {
        let names = |union: &&&str| **union == self.name || **union == field.embedded_in;
        let union = UNIONS.iter().find(names)?;
        field.kind.as_struct().map(|_| *union)
    }

    /// All fields, sorted by name.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }
}

impl Field {
    fn is_in(&self, release: u32) -> bool {
        self.since.is_none_or(|since| release >= since)
            && self.until.is_none_or(|until| release < until)
    }
}

/// Unicode has two letters outside of ASCII that equal one of ASCII but for case.
fn folded(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => letter.to_ascii_lowercase(),
    }
}

/// The field of a list in any of the types that a key differs from in case only.
#[must_use]
pub fn list_in_other_case(key: &str) -> Option<&'static str> {
    let fields = || STRUCTS.iter().flat_map(Struct::fields);
    let lists = fields().filter(|field| matches!(field.kind, Kind::List(_)));
    let mut names = lists.map(|field| field.name);
    let found = names.find(|name| name.eq_ignore_ascii_case(key))?;
    let is_exact = fields().any(|field| field.name == key);
    (!is_exact).then_some(found)
}

impl Kind {
    /// The fields, if there are known ones.
    #[must_use]
    pub fn as_struct(&self) -> Option<&'static Struct> {
        match self {
            Self::Struct(inner) => Some(inner.get()),
            _ => None,
        }
    }

    /// Go's name of the type, as it prints it in type errors.
    #[must_use]
    pub fn go_type(&self) -> String {
        match self {
            Self::Text(name) | Self::Map(name, _) => (*name).to_owned(),
            Self::Boolean => "bool".to_owned(),
            Self::Int32 | Self::IntOrString => "int32".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::Quantity => "resource.Quantity".to_owned(),
            Self::Time => "string".to_owned(),
            Self::Any => "v1.FieldsV1".to_owned(),
            Self::Struct(inner) => format!("v1.{}", inner.get().name),
            Self::List(inner) => format!("[]{}", inner.go_type()),
        }
    }

    /// Go's word for the kind of the type: `reflect.Kind`.
    #[must_use]
    pub fn go_kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Boolean => "bool",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::List(_) => "slice",
            Self::Map(..) => "map",
            Self::IntOrString | Self::Quantity | Self::Time | Self::Any | Self::Struct(_) => {
                "struct"
            }
        }
    }
}
