//! T§2.2.4, L§2.8: lists of environment variables, with Kubernetes' types.

use injectd_gocompat::quantity;
use serde_json::{Map, Value, json};

use super::release::Release;
use super::values::scalar_text;

/// Whether scalars become strings where a string is expected: yes in YAML, no in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalars {
    /// As `sigs.k8s.io/yaml` does.
    BecomeText,
    /// As `encoding/json` does.
    StayWhatTheyAre,
}

type Fields = Map<String, Value>;

/// The list without unknown fields; `None` if a type is wrong.
pub fn decode(value: &Value, scalars: Scalars) -> Option<Vec<Value>> {
    let items = match value {
        Value::Null => return Some(Vec::new()),
        Value::Array(items) => items,
        _ => return None,
    };
    items.iter().map(|item| variable(item, scalars)).collect()
}

/// One variable: `name` always, `value` only if it is not empty.
fn variable(item: &Value, scalars: Scalars) -> Option<Value> {
    let fields = struct_of(item)?;
    let mut variable = Fields::new();
    variable.insert("name".into(), text(&fields, "name", scalars)?.into());
    let value = text(&fields, "value", scalars)?;
    if !value.is_empty() {
        variable.insert("value".into(), value.into());
    }
    if let Some(source) = pointer(&fields, "valueFrom") {
        variable.insert("valueFrom".into(), source_of(&struct_of(source)?, scalars)?);
    }
    Some(variable.into())
}

fn source_of(fields: &Fields, scalars: Scalars) -> Option<Value> {
    let mut source = Fields::new();
    if let Some(reference) = pointer(fields, "fieldRef") {
        let reference = struct_of(reference)?;
        let mut out = optional_text(&reference, "apiVersion", scalars)?;
        out.insert("fieldPath".into(), text(&reference, "fieldPath", scalars)?.into());
        source.insert("fieldRef".into(), out.into());
    }
    if let Some(reference) = pointer(fields, "resourceFieldRef") {
        let reference = struct_of(reference)?;
        let mut out = optional_text(&reference, "containerName", scalars)?;
        out.insert("resource".into(), text(&reference, "resource", scalars)?.into());
        out.insert("divisor".into(), quantity(&reference, "divisor")?.into());
        source.insert("resourceFieldRef".into(), out.into());
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = pointer(fields, name) {
            let reference = struct_of(reference)?;
            let mut out = optional_text(&reference, "name", scalars)?;
            out.insert("key".into(), text(&reference, "key", scalars)?.into());
            add_optional(&reference, &mut out)?;
            source.insert(name.into(), out.into());
        }
    }
    if let Some(reference) = pointer(fields, "fileKeyRef") {
        let reference = struct_of(reference)?;
        let mut out = Fields::new();
        for name in ["volumeName", "path", "key"] {
            out.insert(name.into(), text(&reference, name, scalars)?.into());
        }
        add_optional(&reference, &mut out)?;
        source.insert("fileKeyRef".into(), out.into());
    }
    Some(source.into())
}

/// A variable as the release reads it: `fileKeyRef` is supported since 25.9.1.
pub fn as_known_by(release: Release, variable: &Value) -> Value {
    let mut variable = variable.clone();
    if !release.since((25, 9, 1))
        && let Some(source) = variable.get_mut("valueFrom").and_then(Value::as_object_mut)
    {
        source.remove("fileKeyRef");
    }
    variable
}

/// Reads keys in any case; the last one wins, as in `encoding/json`.
fn struct_of(value: &Value) -> Option<Fields> {
    match value {
        Value::Null => Some(Fields::new()),
        Value::Object(fields) => Some(fields.clone()),
        _ => None,
    }
}

fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    let mut matching = fields.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    matching.next_back().map(|(_, value)| value)
}

/// The value of a field that is present and not null.
fn pointer<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    field(fields, name).filter(|value| !value.is_null())
}

fn text(fields: &Fields, name: &str, scalars: Scalars) -> Option<String> {
    match (field(fields, name), scalars) {
        (None | Some(Value::Null), _) => Some(String::new()),
        (Some(value), Scalars::BecomeText) => scalar_text(value),
        (Some(value), Scalars::StayWhatTheyAre) => value.as_str().map(str::to_owned),
    }
}

fn optional_text(fields: &Fields, name: &str, scalars: Scalars) -> Option<Fields> {
    let text = text(fields, name, scalars)?;
    let written = (!text.is_empty()).then(|| (name.to_owned(), json!(text)));
    Some(written.into_iter().collect())
}

fn add_optional(fields: &Fields, out: &mut Fields) -> Option<()> {
    if let Some(value) = pointer(fields, "optional") {
        out.insert("optional".into(), value.as_bool()?.into());
    }
    Some(())
}

/// A quantity: a string with optional white space around it, or a number; missing or null is `0`.
fn quantity(fields: &Fields, name: &str) -> Option<String> {
    let text = match field(fields, name) {
        None | Some(Value::Null) => return Some("0".to_owned()),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) => return None,
    };
    Some(quantity::parse(&text)?.canonical())
}

/// L§2.8: `added` replaces a variable of the same name in place, or is appended.
pub fn merge(list: &mut Vec<Value>, added: Vec<Value>) {
    for variable in added {
        match list.iter_mut().find(|old| old["name"] == variable["name"]) {
            Some(old) => *old = variable,
            None => list.push(variable),
        }
    }
}
