//! Reads the embedded table.
//!
//! `message NAME` starts a message, the indented lines after it are its fields:
//! `  NAME [list|map] KIND [TYPE] [of GROUP] [since N]`. `enum NAME A=0 B=1` is an enum.

use super::{
    EnumRef, EnumType, Field, Kind, MessageRef, MessageType, Shape, Table, Wrapped, names,
};
use crate::release::Release;

/// All types in the order of the table.
///
/// # Panics
///
/// If the table is damaged. It is part of the program.
pub(super) fn table(text: &'static str) -> Table {
    let named = |keyword: &str| -> Vec<&'static str> {
        text.lines().filter_map(|line| line.strip_prefix(keyword)?.split(' ').next()).collect()
    };
    let known = Names { messages: named("message "), enums: named("enum ") };
    let mut table = Table { messages: Vec::new(), enums: Vec::new() };
    for line in text.lines() {
        if let Some(field) = line.strip_prefix("  ") {
            let last = table.messages.last_mut().expect("a field must follow its message");
            last.fields.push(self::field(field, &known));
        } else if let Some(name) = line.strip_prefix("message ") {
            table.messages.push(MessageType { name: full_name(name), fields: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("enum ") {
            table.enums.push(self::enumeration(rest));
        }
    }
    table
}

/// Adds the package `istio.mesh.v1alpha1` to a name without a package.
pub(super) fn full_name(name: &str) -> String {
    if name.starts_with("istio.") { name.to_owned() } else { format!("istio.mesh.v1alpha1.{name}") }
}

struct Names {
    messages: Vec<&'static str>,
    enums: Vec<&'static str>,
}

fn field(line: &'static str, known: &Names) -> Field {
    let mut words = line.split(' ').peekable();
    let name = words.next().expect("a field must have a name");
    let shape = match words.peek() {
        Some(&"list") => Shape::List,
        Some(&"map") => Shape::Map,
        _ => Shape::One,
    };
    if shape != Shape::One {
        words.next();
    }
    let kind = kind(&mut words, known);
    let (mut oneof, mut since) = (None, Release::OLDEST);
    while let (Some(word), Some(value)) = (words.next(), words.next()) {
        match word {
            "of" => oneof = Some(value),
            _ => since = Release::new(value.parse().expect("a release must be a number"), 0),
        }
    }
    Field { name, json: names::json(name), go: names::go(name), shape, kind, oneof, since }
}

fn kind(words: &mut impl Iterator<Item = &'static str>, known: &Names) -> Kind {
    let word = words.next();
    let mut at = |names: &[&str]| {
        let name = words.next();
        names.iter().position(|known| Some(*known) == name).expect("a type must be in the table")
    };
    match word.expect("a field must have a kind") {
        "string" => Kind::Text,
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "uint32" => Kind::Uint32,
        "double" => Kind::Double,
        "duration" => Kind::Duration,
        "struct" => Kind::Struct,
        "boolvalue" => Kind::Wrapper(Wrapped::Bool),
        "int32value" => Kind::Wrapper(Wrapped::Int32),
        "uint32value" => Kind::Wrapper(Wrapped::Uint32),
        "int64value" => Kind::Wrapper(Wrapped::Int64),
        "enum" => Kind::Enum(EnumRef(at(&known.enums))),
        "message" => Kind::Message(MessageRef(at(&known.messages))),
        other => unreachable!("the table has no kind {other}"),
    }
}

fn enumeration(line: &'static str) -> EnumType {
    let mut words = line.split(' ');
    let name = words.next().expect("an enum must have a name");
    let values = words.map(|word| {
        let (name, number) = word.split_once('=').expect("a value must have a number");
        (name, number.parse().expect("a number must be an integer"))
    });
    EnumType { name: full_name(name), values: values.collect() }
}
