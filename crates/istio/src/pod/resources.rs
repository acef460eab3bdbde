//! Lists of resources: `v1.ResourceList`, a map with methods.

use std::{any::Any, borrow::Cow, sync::Arc};

use injectd_gotemplate::{Element, Entries, Map, Object, Param, Shape, Signature, Value};
use injectd_merge::schema::Kind;
use serde_json::Value as Json;

use super::{Holder, marshal, quantity::Quantity};
use crate::go_json::go_json;

#[derive(Debug)]
pub(super) struct Resources {
    type_name: &'static str,
    /// Null if the map is nil.
    json: Json,
    map: Map,
}

impl Resources {
    pub(super) fn of(type_name: &'static str, json: &Json) -> Value {
        const QUANTITY: Element = Element::Other("resource.Quantity", || Value::Nil);
        let map = match json.as_object() {
            None => Map::nil(QUANTITY),
            Some(entries) => {
                let quantity = |json| Value::Object(Arc::new(Quantity::of(json, Holder::Copy)));
                let entries =
                    entries.iter().map(|(key, json)| (key.as_str().into(), quantity(json)));
                Map::of("v1.ResourceName", QUANTITY, entries.collect::<Entries>())
            }
        };
        let json = if json.is_object() { json.clone() } else { Json::Null };
        Value::Object(Arc::new(Self { type_name, json, map }))
    }

    /// A pointer to the quantity of this name, or to a zero of the notation.
    fn quantity(&self, name: &str, format: &str) -> Value {
        let zero = Json::from(if format == "BinarySI" { "0Ki" } else { "0" });
        let json = self.json.get(name).unwrap_or(&zero);
        Value::Object(Arc::new(Quantity::of(json, Holder::Pointer)))
    }
}

/// What the method `String` of a struct prints of a list.
pub(super) fn shown(json: &Json) -> String {
    let mut entries: Vec<_> = json.as_object().into_iter().flatten().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    let entry = |(key, json): (&String, &Json)| {
        format!("{key}: {},", Quantity::of(json, Holder::Copy).shown_fields())
    };
    format!("ResourceList{{{}}}", entries.into_iter().map(entry).collect::<String>())
}

impl Object for Resources {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn shape(&self) -> Shape {
        Shape::Named(self.map.clone().into())
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Cpu" | "Memory" | "Storage" | "Pods" | "StorageEphemeral" => Some(Signature::NONE),
            "Name" => Some(Signature { params: &[Param::Text, Param::Text], variadic: None }),
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Value]) -> Result<Value, String> {
        let arg = |index: usize| match args.get(index) {
            Some(Value::Text(text)) => text.lossy(),
            _ => Cow::default(),
        };
        Ok(match name {
            "Cpu" => self.quantity("cpu", "DecimalSI"),
            "Memory" => self.quantity("memory", "BinarySI"),
            "Storage" => self.quantity("storage", "BinarySI"),
            "Pods" => self.quantity("pods", "DecimalSI"),
            "StorageEphemeral" => self.quantity("ephemeral-storage", "BinarySI"),
            _ => self.quantity(&arg(0), &arg(1)),
        })
    }

    fn json(&self) -> Result<String, String> {
        let json = self.json.as_object();
        Ok(go_json(&json.map_or(Json::Null, |map| marshal::of_map(&Kind::Quantity, map))))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
