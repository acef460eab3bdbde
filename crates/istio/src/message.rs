//! Messages as templates see them, and the functions that read them.

mod duration;
mod otel;
mod text;

#[cfg(test)]
mod tests;

use std::{any::Any, borrow::Cow, sync::Arc};

use injectd_gotemplate::{
    Element, Entries, Hooks, IntKind, List, Map, Object, Shape, Signature, Text, UintKind, Value,
};

use injectd_gocompat::number::format_float;

use self::duration::Duration;
use crate::{
    go_json::go_json,
    proto::{FieldError, Message, Pointer, View, elide::proto_to_json, schema::MessageRef},
    release::Release,
};

/// A message, as a pointer in Go.
#[must_use]
pub fn of(message: Arc<Message>) -> Value {
    Value::Object(Arc::new(Messages { of: message.of(), target: Some(message) }))
}

/// What functions need that read messages.
#[derive(Debug, Clone, Copy)]
pub struct MessageHooks {
    /// The release, whose defaults are left out.
    pub release: Release,
}

impl Hooks for MessageHooks {
    fn proto_to_json(&self, message: &Value) -> Result<Text, String> {
        let Value::Object(object) = message else { return Ok("{}".into()) };
        let message = target(object.as_ref());
        Ok(message.map_or("{}".into(), |message| proto_to_json(message, self.release).into()))
    }

    fn otel_reads(&self, mesh: &Value) -> Option<[&'static [&'static str]; 2]> {
        otel::reads(mesh)
    }

    fn otel_resource_attributes(&self, args: &[Value]) -> Result<Text, String> {
        Ok(otel::resource_attributes(args).into())
    }
}

/// The message that an object points to.
fn target(object: &dyn Object) -> Option<&Arc<Message>> {
    object.as_any().downcast_ref::<Messages>()?.target.as_ref()
}

#[derive(Debug)]
struct Messages {
    of: MessageRef,
    target: Option<Arc<Message>>,
}

impl Messages {
    fn pointer(&self) -> Pointer<'_> {
        Pointer { of: self.of, target: self.target.as_deref() }
    }
}

impl Object for Messages {
    fn type_name(&self) -> Cow<'static, str> {
        format!("*{}", self.of.get().go_name()).into()
    }

    fn shape(&self) -> Shape {
        if self.target.is_some() { Shape::Pointer } else { Shape::NilPointer }
    }

    fn field(&self, name: &str) -> Option<Value> {
        match self.pointer().field(name) {
            Ok(view) => Some(value(view)),
            Err(FieldError::Nil { .. }) => Some(Value::Nil),
            Err(FieldError::Unknown { .. }) => None,
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String" || self.pointer().getter(name).is_some()).then_some(Signature::NONE)
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        if name == "String" {
            return Ok(self.text().unwrap_or_default().into());
        }
        let view = self.pointer().getter(name);
        view.map(value).ok_or_else(|| format!("{name} is not a method"))
    }

    fn text(&self) -> Option<Text> {
        let text = self.target.as_ref().map(|message| text::of_message(message));
        Some(text.unwrap_or_else(|| "<nil>".to_owned()).into())
    }

    fn json(&self) -> Result<String, String> {
        Ok(self.target.as_ref().map_or_else(|| "null".to_owned(), |message| message.to_json()))
    }

    fn implements(&self, interface: &str) -> bool {
        interface == "protoreflect.ProtoMessage"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An enum, a wrapper or a group: a type with fields, getters and a text.
#[derive(Debug)]
struct Small {
    type_name: Cow<'static, str>,
    shape: Shape,
    fields: Vec<(String, Value)>,
    text: Option<Text>,
}

impl Object for Small {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.clone()
    }

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn field(&self, name: &str) -> Option<Value> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.clone())
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let field = name.strip_prefix("Get").and_then(|name| self.field(name));
        (name == "String" || field.is_some()).then_some(Signature::NONE)
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        if name == "String" {
            return Ok(self.text.clone().unwrap_or_default().into());
        }
        let field = name.strip_prefix("Get").and_then(|name| self.field(name));
        field.ok_or_else(|| format!("{name} is not a method"))
    }

    fn text(&self) -> Option<Text> {
        self.text.clone()
    }

    /// As `json.Marshal` writes the struct of Go, which is not Protobuf's JSON.
    fn json(&self) -> Result<String, String> {
        match &self.shape {
            Shape::Named(number) => json_of(number),
            Shape::NilPointer => Ok("null".to_owned()),
            _ => {
                let is_wrapper = self.type_name.starts_with("*wrapperspb.");
                let fields = self.fields.iter().filter(|(_, value)| !is_wrapper || !is_zero(value));
                let field = |(name, value): &(String, Value)| {
                    let name = if is_wrapper { "value" } else { name };
                    Ok(format!("\"{name}\":{}", json_of(value)?))
                };
                let fields: Vec<_> = fields.map(field).collect::<Result<_, String>>()?;
                Ok(format!("{{{}}}", fields.join(",")))
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The JSON of a scalar or an object.
fn json_of(value: &Value) -> Result<String, String> {
    match value {
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Int(number, _) => Ok(number.to_string()),
        Value::Uint(number, _) => Ok(number.to_string()),
        Value::Float(number) => Ok(format_float(*number)),
        Value::Text(text) => Ok(go_json(&text.lossy())),
        Value::Object(object) => object.json(),
        _ => Ok("null".to_owned()),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::Int(number, _) => *number == 0,
        Value::Uint(number, _) => *number == 0,
        Value::Float(number) => number.to_bits() == 0,
        Value::Text(text) => text.lossy().is_empty(),
        _ => false,
    }
}

fn small(
    type_name: impl Into<Cow<'static, str>>,
    shape: Shape,
    fields: Vec<(String, Value)>,
    text: Option<String>,
) -> Value {
    let text = text.map(Text::from);
    Value::Object(Arc::new(Small { type_name: type_name.into(), shape, fields, text }))
}

fn value(view: View<'_>) -> Value {
    let (text, go_type) = (view.to_string(), view.go_type());
    let pointer = |is_set| if is_set { Shape::Pointer } else { Shape::NilPointer };
    match view {
        View::Text(text) => text.into(),
        View::Bool(flag) => flag.into(),
        View::Int32(number) => Value::Int(number.into(), IntKind::Int32),
        View::Uint32(number) => Value::Uint(number.into(), UintKind::Uint32),
        View::Int64(number) => Value::Int(number, IntKind::Int64),
        View::Double(number) => number.into(),
        View::Enum { number, .. } => {
            let number = Value::Int(number.into(), IntKind::Int32);
            small(go_type, Shape::Named(number), Vec::new(), Some(text))
        }
        View::Message(Pointer { of, target }) => {
            let target = target.map(|message| Arc::new(message.clone()));
            Value::Object(Arc::new(Messages { of, target }))
        }
        View::Wrapper { value: inner, .. } => {
            let held = view.wrapped().map(value).unwrap_or_default();
            let fields = vec![("Value".to_owned(), held)];
            small(go_type, pointer(inner.is_some()), fields, Some(text))
        }
        View::Duration(nanos) => Value::Object(Arc::new(Duration { nanos, text: text.into() })),
        View::Struct(json) => json.map_or(Value::Nil, Value::from_json),
        View::List { of, items } => {
            let element = element(of);
            let items: Vec<Value> =
                items.iter().map(|item| value(View::of(of, Some(item)))).collect();
            if items.is_empty() {
                List::nil(element).into()
            } else {
                List::of(element, items).into()
            }
        }
        View::Map { of, entries } => {
            let Some(entries) = entries else { return Map::nil(element(of)).into() };
            let entries = entries
                .iter()
                .map(|(key, item)| (Text::from(key.as_str()), value(View::of(of, Some(item)))));
            Map::of("string", element(of), entries.collect::<Entries>()).into()
        }
        View::Oneof(None) => Value::Nil,
        View::Oneof(Some((field, item))) => {
            let held = value(View::of(field.kind, Some(item)));
            let fields = vec![(field.go.clone(), held)];
            small("*v1alpha1.Oneof", Shape::Pointer, fields, Some(text))
        }
    }
}

fn element(kind: crate::proto::schema::Kind) -> Element {
    match kind {
        crate::proto::schema::Kind::Text => Element::Text,
        _ => Element::Other("proto.Value", || Value::Nil),
    }
}
