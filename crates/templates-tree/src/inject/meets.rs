//! Whether a pod has anything where a template writes: if not, no template has been there before.
//!
//! The answer may be yes where there is nothing, and is never no where there is something.

use std::sync::Arc;

use injectd_merge::schema::{Field, Kind, POD, Struct};
use injectd_templates::{
    Template,
    named::{NamedList, member},
    structure::{Constant, Structure, TextPart},
};
use serde_json::Value;

use crate::lay;

/// The lists of a pod that share names of containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const VOLUMES: &str = "volumes";
/// The lists that rules are for.
const LISTS: [&str; 2] = ["initContainers", "containers"];

/// Whether a pod may have what a template writes, or another value there.
pub(super) fn meets(template: &Template, pod: &Value) -> bool {
    template.steps.iter().any(|step| {
        let overlay = step.overlay.as_ref();
        overlay.is_some_and(|overlay| meets_overlay(overlay, pod))
            || step.rules.iter().any(|rule| meets_rule(&rule.overlay, pod))
    })
}

fn meets_overlay(overlay: &Structure, pod: &Value) -> bool {
    let Structure::Map(entries) = overlay else { return true };
    if !pod.is_object() {
        return true;
    }
    let types = POD.as_struct().expect("a Pod must be a struct");
    entries.from.is_some()
        || entries.fields.iter().any(|(key, written)| match (&**key, written) {
            ("spec", Structure::Map(of_spec)) => {
                let spec = member(pod, key);
                of_spec.from.is_some()
                    || of_spec.fields.iter().any(|(key, written)| meets_spec(key, written, spec))
            }
            _ => meets_field(key, written, member(pod, key), types),
        })
}

/// Whether a field of `spec` has something. Containers have one name in all lists.
fn meets_spec(key: &str, written: &Structure, spec: Option<&Value>) -> bool {
    let lists = match key {
        VOLUMES => &[VOLUMES][..],
        key if CONTAINERS.contains(&key) => &CONTAINERS,
        _ => {
            let types = POD.as_struct().and_then(|pod| pod.field("spec")?.kind.as_struct());
            let found = spec.and_then(|spec| member(spec, key));
            return types.is_none_or(|types| meets_field(key, written, found, types));
        }
    };
    let Structure::List(items) = written else { return true };
    items.iter().any(|item| {
        let Some(name) = item.field("name") else { return true };
        let entries_of = |list: &&str| member(spec?, list)?.as_array();
        has_directive(item)
            || lists
                .iter()
                .filter_map(entries_of)
                .flatten()
                .any(|entry| may_be(name, entry, "name"))
    })
}

/// Whether a text that a structure becomes may be a member of an entry.
fn may_be(text: &Structure, entry: &Value, key: &str) -> bool {
    let Some(found) = member(entry, key) else { return false };
    match (text, found) {
        (Structure::Constant(text @ Constant::Text(_)), Value::String(_)) => text.is(found),
        (Structure::Constant(number @ Constant::Number(_)), Value::Number(_)) => number.is(found),
        (Structure::Text(parts), Value::String(found)) => {
            found.starts_with(constant(parts.first())) && found.ends_with(constant(parts.last()))
        }
        _ => true,
    }
}

/// The text of a part that is constant; an empty one of another.
fn constant(part: Option<&TextPart>) -> &str {
    match part {
        Some(TextPart::Constant(text)) => text,
        _ => "",
    }
}

fn meets_rule(overlay: &Structure, pod: &Value) -> bool {
    let Structure::Map(entries) = overlay else { return true };
    let spec = member(pod, "spec");
    let containers = LISTS.iter().filter_map(|list| member(spec?, list)?.as_array());
    let types = lay::container();
    containers.flatten().any(|container| {
        !container.is_object()
            || entries.from.is_some()
            || meets_fields(&entries.fields, container, types)
    })
}

fn meets_fields(written: &[(Arc<str>, Structure)], found: &Value, types: &'static Struct) -> bool {
    written.iter().any(|(key, written)| meets_field(key, written, member(found, key), types))
}

fn meets_field(
    key: &str,
    written: &Structure,
    found: Option<&Value>,
    types: &'static Struct,
) -> bool {
    if key.starts_with('$') {
        return true;
    }
    let Some(found) = found else { return has_directive(written) };
    let field = types.field(key);
    match (field.map(|field| &field.kind), written, found) {
        (Some(Kind::Struct(inner)), Structure::Map(entries), Value::Object(_)) => {
            entries.from.is_some() || meets_fields(&entries.fields, found, inner.get())
        }
        (Some(Kind::Map(..)), Structure::Map(entries), Value::Object(found)) => {
            let is_there = |key: &str| key.starts_with('$') || found.contains_key(key);
            entries.from.is_some() || entries.fields.iter().any(|(key, _)| is_there(key))
        }
        (Some(Kind::List(_)), Structure::List(items), Value::Array(found)) => {
            meets_list(items, found, field)
        }
        _ => true,
    }
}

fn meets_list(items: &[Structure], found: &[Value], field: Option<&'static Field>) -> bool {
    let Some(list) = field.and_then(NamedList::of) else { return true };
    items.iter().any(|item| match item.field(list.key) {
        Some(name) => {
            has_directive(item) || found.iter().any(|entry| may_be(name, entry, list.key))
        }
        None => true,
    })
}

/// Whether a structure has a directive. A value of an expression has none where there are fields.
fn has_directive(of: &Structure) -> bool {
    match of {
        Structure::Map(entries) => {
            entries.from.as_ref().is_some_and(|from| from.kind.is_none())
                || entries.fields.iter().any(|(key, of)| key.starts_with('$') || has_directive(of))
        }
        Structure::List(items) => items.iter().any(has_directive),
        Structure::Constant(_) | Structure::Text(_) | Structure::Slot(_) => false,
    }
}
