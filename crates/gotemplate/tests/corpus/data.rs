//! The data of a template, as far as the battery's expressions need it.

use std::{any::Any, borrow::Cow, sync::Arc};

use injectd_gotemplate::{Element, IntKind, List, Map, Object, Shape, Text, Value};
use serde_json::Value as Json;

/// A struct with its fields.
#[derive(Debug)]
struct Record {
    type_name: &'static str,
    fields: Vec<(&'static str, Value)>,
}

impl Object for Record {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn shape(&self) -> Shape {
        if self.type_name.starts_with('*') { Shape::Pointer } else { Shape::Struct }
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn fields(&self) -> Vec<(Cow<'static, str>, Value)> {
        self.fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A string of a named type.
#[derive(Debug)]
struct Named(&'static str, Text);

impl Object for Named {
    fn type_name(&self) -> Cow<'static, str> {
        self.0.into()
    }

    fn shape(&self) -> Shape {
        Shape::Named(Value::Text(self.1.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn record(type_name: &'static str, fields: Vec<(&'static str, Value)>) -> Value {
    Value::Object(Arc::new(Record { type_name, fields }))
}

fn text(json: &Json) -> Value {
    json.as_str().unwrap_or_default().into()
}

fn texts(json: &Json) -> Value {
    let Some(entries) = json.as_object() else { return Map::nil(Element::Text).into() };
    let text = |(key, value): (&String, &Json)| {
        (Text::from(key.as_str()), Text::from(value.as_str().unwrap_or_default()))
    };
    Map::of_texts(entries.iter().map(text)).into()
}

fn list(json: &Json, element: Element, item: fn(&Json) -> Value) -> Value {
    match json.as_array() {
        Some(items) => List::of(element, items.iter().map(item).collect()).into(),
        None => List::nil(element).into(),
    }
}

fn port(json: &Json) -> Value {
    let protocol = json["protocol"].as_str().unwrap_or_default().into();
    let number = Value::Int(json["containerPort"].as_i64().unwrap_or(0), IntKind::Int32);
    record(
        "v1.ContainerPort",
        vec![
            ("Name", text(&json["name"])),
            ("HostPort", Value::Int(json["hostPort"].as_i64().unwrap_or(0), IntKind::Int32)),
            ("ContainerPort", number),
            ("Protocol", Value::Object(Arc::new(Named("v1.Protocol", protocol)))),
            ("HostIP", text(&json["hostIP"])),
        ],
    )
}

fn container(json: &Json) -> Value {
    let ports = list(&json["ports"], Element::Other("v1.ContainerPort", || Value::Nil), port);
    record(
        "v1.Container",
        vec![("Name", text(&json["name"])), ("Image", text(&json["image"])), ("Ports", ports)],
    )
}

/// The data of a pod.
pub(crate) fn root(pod: &Json, values: &Json, revision: &str) -> Value {
    let (meta, spec) = (&pod["metadata"], &pod["spec"]);
    let element = Element::Other("v1.Container", || Value::Nil);
    let object_meta = record(
        "v1.ObjectMeta",
        vec![
            ("Name", text(&meta["name"])),
            ("GenerateName", text(&meta["generateName"])),
            ("Namespace", text(&meta["namespace"])),
            ("Labels", texts(&meta["labels"])),
            ("Annotations", texts(&meta["annotations"])),
        ],
    );
    let containers = list(&spec["containers"], element, container);
    record(
        "*inject.SidecarTemplateData",
        vec![
            ("ObjectMeta", object_meta),
            ("Spec", record("v1.PodSpec", vec![("Containers", containers)])),
            ("Values", Value::from_json(values)),
            ("Revision", revision.into()),
        ],
    )
}
