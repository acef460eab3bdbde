//! What the method `String` of Kubernetes' structs returns: `&Container{Name:web,…}`.
//!
//! Kubernetes: `generated.pb.go` of `k8s.io/api/core/v1` and `k8s.io/apimachinery/pkg/apis/meta/v1`.
//! Fields are in the order of their numbers in protobuf.

use injectd_gotemplate::Object as _;
use injectd_merge::schema::{Field, Kind, Struct as Fields};
use serde_json::Value as Json;

use super::{
    Holder,
    layout::{Content, Layout},
    place::{Place, Step},
    quantity::Quantity,
    resources,
    scalar::{self, IntOrString, Time},
};

/// Structs of the package `meta/v1`. Those of `core/v1` print them with the package.
const META: [&str; 6] = [
    "FieldsV1",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
];

/// A struct that is printed.
#[derive(Clone, Copy)]
pub(super) struct Printed<'p> {
    /// Its own fields.
    pub(super) layout: &'static Layout,
    /// The types of its keys; of an embedded struct those of the struct around it.
    pub(super) of: &'static Fields,
    pub(super) place: &'p Place,
}

/// The text of a pointer: `&Container{…}`, or `nil`.
pub(super) fn of_pointer(holder: Holder, printed: Printed<'_>) -> String {
    if holder == Holder::Nil {
        return "nil".to_owned();
    }
    format!("&{}", of_struct(printed))
}

/// `Container{Name:web,…}`.
fn of_struct(printed: Printed<'_>) -> String {
    let Printed { layout, of, place } = printed;
    let mut text = format!("{}{{", layout.name);
    for row in layout.numbered(place.kubernetes) {
        let value = match row.content {
            Content::Embedded(name) => of_struct(Printed { layout: Layout::of(name), ..printed }),
            Content::Key(key) => match of.field(key) {
                Some(field) => of_field(field, &place.below(Step::Key(field.name)), layout),
                None => continue,
            },
        };
        text = text + row.name + ":" + &value + ",";
    }
    text + "}"
}

fn of_field(field: &'static Field, place: &Place, around: &Layout) -> String {
    let json = place.json();
    let is_nil = field.pointer && json.is_null();
    match &field.kind {
        // They are printed by `fmt`, which finds a nil pointer.
        Kind::Quantity | Kind::Time if is_nil => "<nil>".to_owned(),
        _ if is_nil => "nil".to_owned(),
        Kind::Quantity if field.pointer => Quantity::of(json, Holder::Pointer).shown(),
        // `fmt` prints it too, and then the first mark of a pointer, if any, is removed.
        Kind::Struct(of) if of.get().name == "ObjectMeta" => {
            let metadata = super::of_kind(&field.kind, place.clone(), Holder::Copy);
            injectd_gotemplate::shown(&metadata).replacen('&', "", 1)
        }
        Kind::Struct(_) if field.pointer => format!("&{}", of_kind(&field.kind, place, around)),
        Kind::Time | Kind::Any => of_kind(&field.kind, place, around),
        _ if field.pointer => format!("*{}", of_kind(&field.kind, place, around)),
        _ => of_kind(&field.kind, place, around),
    }
}

fn of_kind(kind: &'static Kind, place: &Place, around: &Layout) -> String {
    let json = place.json();
    match kind {
        Kind::Text(_) => json.as_str().unwrap_or_default().to_owned(),
        Kind::Boolean => json.as_bool().unwrap_or_default().to_string(),
        Kind::Int32 | Kind::Int64 => json.as_i64().unwrap_or_default().to_string(),
        Kind::IntOrString => IntOrString::of(json, Holder::Copy).shown_fields(),
        Kind::Quantity => Quantity::of(json, Holder::Copy).shown_fields(),
        Kind::Time => Time::of(json, Holder::Copy).text().unwrap_or_default().lossy().into_owned(),
        Kind::Any => scalar::shown(json),
        Kind::Struct(of) => {
            let of = of.get();
            let layout = Layout::of(of.name);
            let is_meta = |name| META.contains(&name);
            let package = if is_meta(of.name) && !is_meta(around.name) { "v1." } else { "" };
            format!("{package}{}", of_struct(Printed { layout, of, place }))
        }
        Kind::List(inner) => {
            let items = 0..json.as_array().map_or(0, Vec::len);
            let items = items.map(|index| of_kind(inner, &place.below(Step::Item(index)), around));
            match inner.as_struct() {
                Some(of) => {
                    let items: String = items.map(|item| item + ",").collect();
                    format!("[]{}{{{items}}}", of.name)
                }
                None => format!("[{}]", items.collect::<Vec<_>>().join(" ")),
            }
        }
        Kind::Map(_, inner) if matches!(**inner, Kind::Quantity) => resources::shown(json),
        Kind::Map(name, _) => {
            let mut entries: Vec<_> = json.as_object().into_iter().flatten().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let entry = |(key, value): (&String, &Json)| {
                format!("{key}: {},", value.as_str().unwrap_or_default())
            };
            format!("{name}{{{}}}", entries.into_iter().map(entry).collect::<String>())
        }
    }
}
