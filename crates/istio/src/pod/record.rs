//! Structs of Kubernetes and pointers to them.

use std::{
    any::Any,
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use injectd_gotemplate::{Object, Shape, Signature, Text, Value};
use injectd_merge::schema::Struct;

use super::{
    Holder,
    layout::{Content, Layout, Row},
    marshal, object_meta, of_field,
    place::{Place, Step},
    text,
};
use crate::go_json::go_json;

/// The fields whose values are kept.
const MAPS: [&str; 2] = ["Labels", "Annotations"];

/// A struct, or a pointer to one.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Its own fields.
    layout: &'static Layout,
    /// The types of its keys; of an embedded struct those of the struct around it.
    of: &'static Struct,
    place: Place,
    holder: Holder,
    /// Labels and annotations, which templates read many times.
    maps: [OnceLock<Value>; 2],
}

impl Record {
    /// A struct at a place.
    pub(super) fn new(
        layout: &'static Layout,
        of: &'static Struct,
        place: Place,
        holder: Holder,
    ) -> Self {
        Self { layout, of, place, holder, maps: Default::default() }
    }

    /// The value of a field.
    fn value(&self, row: &Row) -> Option<Value> {
        let Some(map) = MAPS.iter().position(|name| *name == row.name) else {
            return self.made(row);
        };
        let made = || self.made(row).unwrap_or_default();
        Some(self.maps.get(map)?.get_or_init(made).clone())
    }

    fn made(&self, row: &Row) -> Option<Value> {
        match row.content {
            Content::Key(key) => {
                let field = self.of.field(key)?;
                Some(of_field(field, self.place.below(Step::Key(field.name))))
            }
            Content::Embedded(name) => Some(Value::Object(Arc::new(self.embedded(name)))),
        }
    }

    /// An embedded struct.
    fn embedded(&self, name: &str) -> Self {
        Self::new(Layout::of(name), self.of, self.place.clone(), Holder::InPlace)
    }

    /// What the method `String` of a pointer to it returns.
    fn pointer_text(&self) -> String {
        let Self { layout, of, place, .. } = self;
        text::of_pointer(self.holder, text::Printed { layout, of, place })
    }

    fn is_object_meta(&self) -> bool {
        self.layout.name == "ObjectMeta"
    }
}

impl Object for Record {
    fn type_name(&self) -> Cow<'static, str> {
        self.holder.type_name(&format!("v1.{}", self.layout.name)).into()
    }

    fn shape(&self) -> Shape {
        self.holder.shape()
    }

    fn field(&self, name: &str) -> Option<Value> {
        if let Some(row) = self.layout.field(name) {
            return self.value(row);
        }
        // The template of a claim embeds its metadata under a key.
        match self.value(self.layout.field("ObjectMeta")?)? {
            Value::Object(metadata) => metadata.field(name),
            _ => None,
        }
    }

    fn fields(&self) -> Vec<(Cow<'static, str>, Value)> {
        let rows = self.layout.rows(self.place.kubernetes);
        rows.filter_map(|row| Some((row.name.into(), self.value(row)?))).collect()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let is_known = matches!(name, "String" | "DeepCopy")
            || self.is_object_meta() && object_meta::getter(name).is_some();
        is_known.then_some(Signature::NONE)
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        let pointer = || Value::Object(Arc::new(Self { holder: Holder::Pointer, ..self.clone() }));
        match (name, self.holder) {
            ("String", _) => Ok(self.pointer_text().into()),
            ("DeepCopy", Holder::Nil) => Ok(Value::Object(Arc::new(self.clone()))),
            ("DeepCopy" | "GetObjectMeta", _) => Ok(pointer()),
            _ => object_meta::getter(name)
                .and_then(|field| self.field(field))
                .ok_or_else(|| format!("{name} is not a method")),
        }
    }

    fn text(&self) -> Option<Text> {
        let is_pointer = matches!(self.holder, Holder::Nil | Holder::Pointer);
        is_pointer.then(|| self.pointer_text().into())
    }

    fn text_in_place(&self) -> Option<Text> {
        (self.holder == Holder::InPlace).then(|| self.pointer_text().into())
    }

    fn json(&self) -> Result<String, String> {
        if self.holder == Holder::Nil {
            return Ok("null".to_owned());
        }
        let (json, kubernetes) = (self.place.json(), self.place.kubernetes);
        Ok(go_json(&marshal::of_struct(json, self.of, self.layout, kubernetes)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
