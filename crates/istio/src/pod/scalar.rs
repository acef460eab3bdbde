//! Named texts, pointers to scalars, ports and times.

use std::{any::Any, borrow::Cow};

use injectd_gotemplate::{IntKind, Object, Shape, Signature, Text, Value};
use serde_json::Value as Json;

use super::Holder;
use crate::go_json::go_json;

/// A text of a named type, such as `v1.Protocol`.
#[derive(Debug)]
pub(super) struct Scalar {
    pub(super) type_name: &'static str,
    pub(super) text: Text,
}

impl Object for Scalar {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn shape(&self) -> Shape {
        Shape::Named(self.text.clone().into())
    }

    fn json(&self) -> Result<String, String> {
        Ok(go_json(&Json::from(self.text.lossy())))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A pointer to a text, a number or a boolean. An action prints what it points to, all else its
/// address, which is another one each time in Go.
#[derive(Debug)]
pub(super) struct Pointer {
    /// The type of the value.
    pub(super) type_name: String,
    /// `None` if the pointer is nil.
    pub(super) value: Option<Value>,
}

impl Object for Pointer {
    fn type_name(&self) -> Cow<'static, str> {
        format!("*{}", self.type_name).into()
    }

    fn shape(&self) -> Shape {
        if self.value.is_some() { Shape::Pointer } else { Shape::NilPointer }
    }

    fn text(&self) -> Option<Text> {
        self.value.as_ref().map(|_| "0xc000000000".into())
    }

    fn text_in_place(&self) -> Option<Text> {
        Some(match self.value.as_ref()?.plain().as_ref() {
            Value::Text(text) => text.clone(),
            Value::Int(number, _) => number.to_string().into(),
            Value::Bool(flag) => flag.to_string().into(),
            _ => return None,
        })
    }

    fn json(&self) -> Result<String, String> {
        Ok(match self.value.as_ref().map(Value::plain).as_deref() {
            Some(Value::Text(text)) => go_json(&Json::from(text.lossy())),
            Some(Value::Int(number, _)) => number.to_string(),
            Some(Value::Bool(flag)) => flag.to_string(),
            _ => "null".to_owned(),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A number or the name of a port: `intstr.IntOrString`.
#[derive(Debug)]
pub(super) struct IntOrString {
    holder: Holder,
    number: i64,
    /// `None` if it is a number.
    text: Option<String>,
}

impl IntOrString {
    pub(super) fn of(json: &Json, holder: Holder) -> Self {
        let text = json.as_str().map(str::to_owned);
        Self { holder, number: json.as_i64().unwrap_or_default(), text }
    }

    fn shown(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.number.to_string())
    }

    /// The fields of the struct: kind, number and text.
    pub(super) fn shown_fields(&self) -> String {
        let kind = i32::from(self.text.is_some());
        format!("{{{kind} {} {}}}", self.number, self.text.as_deref().unwrap_or_default())
    }
}

impl Object for IntOrString {
    fn type_name(&self) -> Cow<'static, str> {
        self.holder.type_name("intstr.IntOrString").into()
    }

    fn shape(&self) -> Shape {
        self.holder.shape()
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "Type" => Value::Int(self.text.is_some().into(), IntKind::Int64),
            "IntVal" => Value::Int(self.number, IntKind::Int32),
            "StrVal" => self.text.as_deref().unwrap_or_default().into(),
            _ => return None,
        })
    }

    fn fields(&self) -> Vec<(Cow<'static, str>, Value)> {
        let names = ["Type", "IntVal", "StrVal"];
        names.into_iter().filter_map(|name| Some((name.into(), self.field(name)?))).collect()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let has = self.holder != Holder::Copy && matches!(name, "String" | "IntValue");
        has.then_some(Signature::NONE)
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        Ok(match name {
            // The number that a text is, or 0.
            "IntValue" => self.shown().parse::<i64>().unwrap_or_default().into(),
            _ => self.text().unwrap_or_else(|| self.shown().into()).into(),
        })
    }

    fn text(&self) -> Option<Text> {
        match self.holder {
            Holder::Nil => Some("<nil>".into()),
            Holder::Pointer => Some(self.shown().into()),
            Holder::InPlace | Holder::Copy => None,
        }
    }

    fn text_in_place(&self) -> Option<Text> {
        (self.holder == Holder::InPlace).then(|| self.shown().into())
    }

    fn json(&self) -> Result<String, String> {
        Ok(match &self.text {
            Some(text) => go_json(&Json::from(text.as_str())),
            None => self.number.to_string(),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A time: `metav1.Time`.
#[derive(Debug)]
pub(super) struct Time {
    holder: Holder,
    /// As the Pod has it; empty for the zero time.
    text: String,
}

/// What a nil pointer says when a method of the value is called.
const NIL_TIME: &str = "value method v1.Time.String called using nil *Time pointer";

impl Time {
    pub(super) fn of(json: &Json, holder: Holder) -> Self {
        Self { holder, text: json.as_str().unwrap_or_default().to_owned() }
    }

    /// As Go prints a time. Zones other than UTC stay an offset, since Go converts to the zone of the
    /// machine, which a template cannot rely on.
    fn shown(&self) -> String {
        let Some((date, time)) = self.text.split_once('T') else {
            return "0001-01-01 00:00:00 +0000 UTC".to_owned();
        };
        let end = time.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(time.len());
        let (clock, rest) = time.split_at(end);
        let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
        let zone = if zone == "Z" { "+0000 UTC".to_owned() } else { zone.replace(':', "") };
        format!("{date} {clock} {zone}")
    }

    fn is_zero(&self) -> bool {
        self.text.is_empty() || self.text.starts_with("0001-01-01T00:00:00")
    }
}

impl Object for Time {
    fn type_name(&self) -> Cow<'static, str> {
        self.holder.type_name("v1.Time").into()
    }

    fn shape(&self) -> Shape {
        self.holder.shape()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "String" | "IsZero").then_some(Signature::NONE)
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        match (name, self.holder) {
            ("IsZero", _) => Ok(self.is_zero().into()),
            (_, Holder::Nil) => Err(NIL_TIME.to_owned()),
            _ => Ok(self.shown().into()),
        }
    }

    /// The method is that of the value, so that copies have it.
    fn text(&self) -> Option<Text> {
        Some(if self.holder == Holder::Nil { "<nil>".into() } else { self.shown().into() })
    }

    fn json(&self) -> Result<String, String> {
        Ok(if self.is_zero() { "null".to_owned() } else { format!("\"{}\"", self.text) })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A text as it is, else JSON.
pub(super) fn shown(json: &Json) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}
