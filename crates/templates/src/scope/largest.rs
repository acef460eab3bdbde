//! What a condition costs for the largest pod that an API server takes.
//!
//! No author writes such a pod: each list and each text has the room of the whole, and lists in a list share it.
//! Not for the costs of usual pods, which [`crate::costs`] shows.

use std::{iter, sync::LazyLock};

use injectd_cel::{Datum, Fields, Items, Program, Variables};
use injectd_merge::schema::{Kind, NEWEST_RELEASE, POD};

use crate::limits::MAX_COST;

/// Bytes of the pod. etcd stores no larger object, and a pod that is not stored needs no sidecar.
const POD_BYTES: usize = 3 << 19;
/// A smaller pod is measured, with a smaller limit. What goes through a list once costs as many times less; what
/// goes through lists in lists is above the limit in both.
const PART: usize = 64;
/// Units that authors' conditions in an entry may cost for it. A quarter of the limit is for all else that an entry
/// asks of a pod, whose costs do not grow with it.
pub(super) const MAX_UNITS: u64 = MAX_COST * 3 / 4 / PART as u64;

/// Bytes of the shortest elements as they are stored, with the defaults of an API server: a container with a name
/// and an image, a key with an empty value, and another object with an empty text.
const CONTAINER_BYTES: usize = 60;
const KEY_BYTES: usize = 9;
const ELEMENT_BYTES: usize = 4;
/// Characters of names, of values of labels, and of all annotations (`k8s.io/apimachinery`).
const NAME_LENGTH: usize = 253;
const LABEL_LENGTH: usize = 63;
const ANNOTATIONS_LENGTH: usize = 256 << 10;

/// What each list and each text of a generated pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Many elements with short texts.
    Many,
    /// Many elements whose fields cannot be read: what ends a list early by them goes through all of it.
    ManyUnread,
    /// One element with a long text.
    Long,
}

/// A value of a generated pod. Lists and maps have one value for all of their elements.
#[derive(Debug)]
enum Node {
    Bool,
    Number,
    Text(usize),
    Unread,
    List(Elements),
    Map(Entries),
    Object(Object),
}

#[derive(Debug)]
struct Elements {
    count: usize,
    of_each: Box<Node>,
}

#[derive(Debug)]
struct Entries {
    count: usize,
    of_each: Box<Node>,
}

#[derive(Debug)]
struct Object(Vec<(&'static str, Node)>);

/// A generated pod.
#[derive(Debug)]
struct Pod {
    object: Node,
    request: Object,
}

/// The longest text; others begin as it does.
static TEXT: LazyLock<String> = LazyLock::new(|| "a".repeat(POD_BYTES / PART));
/// The keys of the largest map; others have the first of them.
static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let count = POD_BYTES / PART / KEY_BYTES;
    (0..count).map(|at| format!("key-{at}")).collect()
});
static PODS: LazyLock<[Pod; 3]> =
    LazyLock::new(|| [Of::Many, Of::ManyUnread, Of::Long].map(Pod::new));

/// Units that an expression costs for the pod, of [`MAX_UNITS`].
pub(super) fn units(program: &Program) -> u64 {
    let [many, unread, long] = PODS.each_ref().map(|pod| program.cost_for(pod));
    many.max(unread).saturating_add(long)
}

impl Pod {
    fn new(of: Of) -> Self {
        let object = of.node(&POD, POD_BYTES, POD_BYTES / PART);
        Self { object, request: Object(vec![("namespace", Node::Text(1))]) }
    }
}

impl Of {
    /// A value whose texts have so many characters, and which has so many bytes.
    fn node(self, kind: &Kind, length: usize, bytes: usize) -> Node {
        match kind {
            Kind::List(item) => {
                let count = self.count(bytes, shortest(item));
                let of_each = self.node(item, length, bytes / count).into();
                Node::List(Elements { count, of_each })
            }
            Kind::Map(_, value) => {
                let count = self.count(bytes, KEY_BYTES);
                let of_each = self.node(value, length, bytes / count).into();
                Node::Map(Entries { count, of_each })
            }
            Kind::Struct(of) => {
                let of = of.get();
                let fields = of.fields_at(NEWEST_RELEASE).map(|field| {
                    let length = longest(of.name, field.name, &field.kind);
                    (field.name, self.node(&field.kind, length, bytes))
                });
                Node::Object(Object(fields.collect()))
            }
            _ if self == Self::ManyUnread => Node::Unread,
            Kind::Boolean => Node::Bool,
            Kind::Int32 | Kind::Int64 => Node::Number,
            _ if self == Self::Many => Node::Text(1),
            _ => Node::Text(length.div_ceil(PART)),
        }
    }

    fn count(self, bytes: usize, of_each: usize) -> usize {
        if self == Self::Long { 1 } else { (bytes / of_each).max(1) }
    }
}

/// Bytes of the shortest element.
fn shortest(item: &Kind) -> usize {
    match item {
        Kind::Struct(of) if of.get().name.ends_with("Container") => CONTAINER_BYTES,
        _ => ELEMENT_BYTES,
    }
}

/// Characters of the longest text in a field.
fn longest(object: &str, field: &str, kind: &Kind) -> usize {
    match (object, field, kind) {
        (_, "labels", _) => LABEL_LENGTH,
        (_, "annotations", _) => ANNOTATIONS_LENGTH,
        ("ObjectMeta" | "PodSpec", _, Kind::Text(_)) | ("Container", "name", _) => NAME_LENGTH,
        _ => POD_BYTES,
    }
}

impl Node {
    fn datum(&self) -> Datum<'_> {
        match self {
            Self::Bool => Datum::Bool(true),
            Self::Number => Datum::Int(1),
            Self::Text(length) => Datum::Text(&TEXT[..*length]),
            Self::Unread => Datum::Failed("not read"),
            Self::List(elements) => Datum::List(elements),
            Self::Map(entries) => Datum::Map(entries),
            Self::Object(object) => Datum::Map(object),
        }
    }
}

impl Items for Elements {
    fn count(&self) -> usize {
        self.count
    }

    fn get(&self, index: usize) -> Option<Datum<'_>> {
        (index < self.count).then(|| self.of_each.datum())
    }
}

impl Fields for Entries {
    fn count(&self) -> usize {
        self.count
    }

    /// Each key that an expression names is there.
    fn get(&self, _: &str) -> Option<Datum<'_>> {
        Some(self.of_each.datum())
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Datum<'_>)> + '_> {
        let values = iter::repeat_with(|| self.of_each.datum());
        Box::new(KEYS.iter().take(self.count).map(String::as_str).zip(values))
    }
}

impl Fields for Object {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, name: &str) -> Option<Datum<'_>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, node)| node.datum())
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Datum<'_>)> + '_> {
        Box::new(self.0.iter().map(|(name, node)| (*name, node.datum())))
    }
}

impl Variables for Pod {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        match name {
            "object" => Some(self.object.datum()),
            "request" => Some(Datum::Map(&self.request)),
            _ => None,
        }
    }
}
