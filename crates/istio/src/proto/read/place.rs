//! Where in a document a message cannot be read: Go's texts do not have the place.

use serde_json::Value as Json;

use super::{Field, Kind, MessageRef, Shape, field, given, single};
use crate::release::Release;

/// The path of the first value that cannot be read, such as `.defaultConfig.concurrency` or
/// `.extensionProviders[0].name`; empty if it is the whole document, or if all can be read.
pub(in crate::proto) fn place(of: MessageRef, json: &Json, release: Release) -> String {
    let Json::Object(object) = json else { return String::new() };
    let fields = of.get().fields.iter().filter(|field| field.since <= release);
    for found in fields {
        let Some(json) = given(object, found) else { continue };
        if field(found, json, release).is_err() {
            return format!(".{}{}", found.json, in_field(found, json, release));
        }
    }
    String::new()
}

fn in_field(field: &Field, json: &Json, release: Release) -> String {
    let fails = |json: &Json| single(field.kind, json, release).is_err();
    let inner = |json: &Json| match field.kind {
        Kind::Message(of) => place(of, json, release),
        _ => String::new(),
    };
    match (field.shape, json) {
        (Shape::One, json) => inner(json),
        (Shape::List, Json::Array(items)) => {
            let found = items.iter().enumerate().find(|(_, item)| fails(item));
            found.map(|(index, item)| format!("[{index}]{}", inner(item))).unwrap_or_default()
        }
        (Shape::Map, Json::Object(entries)) => {
            let found = entries.iter().find(|(_, value)| fails(value));
            found.map(|(key, value)| format!(".{key}{}", inner(value))).unwrap_or_default()
        }
        _ => String::new(),
    }
}
