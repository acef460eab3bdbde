//! A Pod as templates see it: Kubernetes' structs under Go's names, with Go's zero values, Go's
//! methods and the texts that Go prints.
//!
//! Types of values are those of `injectd_merge::schema`, names and order of fields those of
//! [`layout`]. JSON of another type than Kubernetes' is the zero value, since a Pod is checked before.
//! Values are made when a template reads them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use injectd_gotemplate::{Element, Entries, IntKind, List, Map, Shape, Text, Value};
use injectd_merge::schema::{Field, Kind, POD};
use serde_json::{Value as Json, json};

mod layout;
mod marshal;
mod names;
mod object_meta;
mod place;
mod quantity;
mod record;
mod resources;
mod scalar;
mod text;

#[cfg(test)]
mod tests;

use self::{
    layout::Layout,
    names::NamespacedName,
    place::{Place, Step},
    quantity::Quantity,
    record::Record,
    resources::Resources,
    scalar::{IntOrString, Pointer, Scalar, Time},
};
use crate::{
    object::MANAGED_FIELDS,
    owner::Owner,
    release::{Delta, Release},
};

/// How Go holds a value, which decides about its methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// A nil pointer.
    Nil,
    /// A pointer.
    Pointer,
    /// A field or an item, which has the methods of its pointer.
    InPlace,
    /// A value of a map, or a result: it has no methods of its pointer.
    Copy,
}

impl Holder {
    fn shape(self) -> Shape {
        match self {
            Self::Nil => Shape::NilPointer,
            Self::Pointer => Shape::Pointer,
            Self::InPlace | Self::Copy => Shape::Struct,
        }
    }

    fn type_name(self, name: &str) -> String {
        match self {
            Self::Nil | Self::Pointer => format!("*{name}"),
            Self::InPlace | Self::Copy => name.to_owned(),
        }
    }
}

/// `.ObjectMeta` of a Pod.
#[must_use]
pub fn object_meta(pod: &Arc<Json>, release: Release) -> Value {
    part(pod, "metadata", release)
}

/// `.Spec` of a Pod.
#[must_use]
pub fn spec(pod: &Arc<Json>, release: Release) -> Value {
    part(pod, "spec", release)
}

/// `.TypeMeta`: what the workload is.
#[must_use]
pub fn type_meta(owner: &Owner, release: Release) -> Value {
    let Some(of) = POD.as_struct() else { return Value::Nil };
    let json = json!({"kind": owner.kind, "apiVersion": owner.api_version});
    let place = Place::new(Arc::new(json), release);
    let layout = Layout::of("TypeMeta");
    Value::Object(Arc::new(Record::new(layout, of, place, Holder::InPlace)))
}

/// `.DeploymentMeta`: the name of the workload. Releases up to 1.21 have the whole metadata of the
/// Pod under that name.
#[must_use]
pub fn deployment_meta(owner: &Owner, pod: &Json, release: Release) -> Value {
    if release.has(Delta::BareOwner) {
        let (namespace, name) = (owner.namespace.clone(), owner.name.clone());
        return Value::Object(Arc::new(NamespacedName { namespace, name }));
    }
    let mut metadata = pod.get("metadata").and_then(Json::as_object).cloned().unwrap_or_default();
    // Istio clears both fields in its copy of the metadata.
    metadata.shift_remove(MANAGED_FIELDS);
    metadata.shift_remove("ownerReferences");
    metadata.insert("name".to_owned(), owner.name.as_str().into());
    metadata.insert("namespace".to_owned(), owner.namespace.as_str().into());
    object_meta(&Arc::new(json!({"metadata": metadata})), release)
}

fn part(pod: &Arc<Json>, key: &str, release: Release) -> Value {
    let field = POD.as_struct().and_then(|pod| pod.field(key));
    let pod = Place::new(Arc::clone(pod), release);
    field.map_or(Value::Nil, |field| of_field(field, pod.below(Step::Key(field.name))))
}

fn of_field(field: &'static Field, place: Place) -> Value {
    if !field.pointer {
        return of_kind(&field.kind, place, Holder::InPlace);
    }
    let is_set = !place.json().is_null();
    let holder = if is_set { Holder::Pointer } else { Holder::Nil };
    match &field.kind {
        Kind::Struct(_) | Kind::Quantity | Kind::Time | Kind::IntOrString => {
            of_kind(&field.kind, place, holder)
        }
        kind => {
            let value = is_set.then(|| of_kind(kind, place, Holder::Copy));
            Value::Object(Arc::new(Pointer { type_name: type_name(kind), value }))
        }
    }
}

fn of_kind(kind: &'static Kind, place: Place, holder: Holder) -> Value {
    let json = place.json();
    match kind {
        Kind::Text("string") => json.as_str().unwrap_or_default().into(),
        Kind::Text(name) => {
            let text = json.as_str().unwrap_or_default();
            Value::Object(Arc::new(Scalar { type_name: name, text: text.into() }))
        }
        Kind::Boolean => json.as_bool().unwrap_or_default().into(),
        Kind::Int32 => Value::Int(json.as_i64().unwrap_or_default(), IntKind::Int32),
        Kind::Int64 => Value::Int(json.as_i64().unwrap_or_default(), IntKind::Int64),
        Kind::IntOrString => Value::Object(Arc::new(IntOrString::of(json, holder))),
        Kind::Quantity => Value::Object(Arc::new(Quantity::of(json, holder))),
        Kind::Time => Value::Object(Arc::new(Time::of(json, holder))),
        Kind::Any => Value::from_json(json),
        Kind::Struct(of) => {
            let of = of.get();
            let layout = Layout::of(of.name);
            Value::Object(Arc::new(Record::new(layout, of, place, holder)))
        }
        Kind::List(inner) => {
            let element = element(inner);
            match json.as_array() {
                None => List::nil(element).into(),
                Some(items) => {
                    let item =
                        |index| of_kind(inner, place.below(Step::Item(index)), Holder::InPlace);
                    List::of(element, (0..items.len()).map(item).collect()).into()
                }
            }
        }
        Kind::Map(name, inner) if matches!(**inner, Kind::Quantity) => Resources::of(name, json),
        Kind::Map(_, inner) => {
            let element = element(inner);
            let Some(entries) = json.as_object() else { return Map::nil(element).into() };
            let entries = entries.iter().map(|(key, value)| {
                (Text::from(key.as_str()), Value::from(value.as_str().unwrap_or_default()))
            });
            Map::of("string", element, entries.collect::<Entries>()).into()
        }
    }
}

/// The name of a type in Go. The one of the schema is for errors of decoding.
fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Time => "v1.Time".to_owned(),
        Kind::IntOrString => "intstr.IntOrString".to_owned(),
        Kind::List(inner) => format!("[]{}", type_name(inner)),
        kind => kind.go_type(),
    }
}

/// The type of the items of a list. Its name lives as long as the program: there are as many as types.
fn element(kind: &Kind) -> Element {
    static NAMES: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());
    if matches!(kind, Kind::Text("string")) {
        return Element::Text;
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let name = names.entry(type_name(kind)).or_insert_with_key(|name| name.clone().leak());
    Element::Other(name, || Value::Nil)
}

/// The key in JSON of a field of one of Kubernetes' structs; `None` if it has no such field or the
/// field is an embedded struct.
pub(crate) fn json_key(of: &str, field: &str) -> Option<&'static str> {
    match Layout::of(of).field(field)?.content {
        layout::Content::Key(key) => Some(key),
        layout::Content::Embedded(_) => None,
    }
}
