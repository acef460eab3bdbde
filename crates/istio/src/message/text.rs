//! The text of messages as their method `String` returns it: `zipkin:{address:"zipkin:9411"}`.
//!
//! Go: `google.golang.org/protobuf/encoding/prototext`, in one line. It writes one or two blanks
//! between fields, by the build of the program; here there is always one.

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::proto::{
    Message, Value, View,
    schema::{Field, Kind},
};

/// The fields of a message that are set.
pub(super) fn of_message(message: &Message) -> String {
    let set = message.fields().filter_map(|(field, value)| Some((field, value?)));
    set.flat_map(|(field, value)| of_field(field, value)).collect::<Vec<_>>().join(" ")
}

/// A list and a map are as many fields as they have elements.
fn of_field(field: &Field, value: &Value) -> Vec<String> {
    let (name, kind) = (field.name, field.kind);
    let entry = |key: &str, value: &Value| {
        format!("{name}:{{key:{} value:{}}}", quoted(key), of_value(kind, value))
    };
    match value {
        Value::List(items) => {
            items.iter().map(|item| format!("{name}:{}", of_value(kind, item))).collect()
        }
        Value::Map(entries) => entries.iter().map(|(key, value)| entry(key, value)).collect(),
        value => vec![format!("{name}:{}", of_value(kind, value))],
    }
}

fn of_value(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (_, Value::Text(text)) => quoted(text),
        (_, Value::Message(message)) => format!("{{{}}}", of_message(message)),
        (_, Value::Struct(Json::Object(fields))) => of_struct(fields),
        (Kind::Wrapper(_) | Kind::Duration, value) => {
            format!("{{{}}}", View::of(kind, Some(value)))
        }
        (kind, value) => View::of(kind, Some(value)).to_string(),
    }
}

/// `google.protobuf.Struct`.
fn of_struct(fields: &serde_json::Map<String, Json>) -> String {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    let field = |(key, json): (&String, &Json)| {
        format!("fields:{{key:{} value:{{{}}}}}", quoted(key), of_json(json))
    };
    format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(" "))
}

/// `google.protobuf.Value`.
fn of_json(json: &Json) -> String {
    match json {
        Json::Null => "null_value:NULL_VALUE".to_owned(),
        Json::Bool(flag) => format!("bool_value:{flag}"),
        Json::Number(number) => {
            let number = Value::Double(number.as_f64().unwrap_or_default());
            format!("number_value:{}", View::of(Kind::Double, Some(&number)))
        }
        Json::String(text) => format!("string_value:{}", quoted(text)),
        Json::Array(items) => {
            let items = items.iter().map(|item| format!("values:{{{}}}", of_json(item)));
            format!("list_value:{{{}}}", items.collect::<Vec<_>>().join(" "))
        }
        Json::Object(fields) => format!("struct_value:{}", of_struct(fields)),
    }
}

/// Go: `appendString` of `internal/encoding/text`.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' | '\x7f' => drop(write!(out, "\\x{:02x}", u32::from(letter))),
            '\u{80}'..='\u{9f}' => drop(write!(out, "\\u{:04x}", u32::from(letter))),
            _ => out.push(letter),
        }
    }
    out + "\""
}
