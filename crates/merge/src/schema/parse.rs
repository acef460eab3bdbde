//! Reads the embedded table of types.
//!
//! A line without indent names a struct; the indented lines after it are its fields:
//! ` KEY TYPE [written] [merge:KEY] [in:NAME] [since:RELEASE] [until:RELEASE]`. A type is `string`, `bool`, `int32`, `int64`,
//! `quantity`, `intstr`, `time`, `any`, the name of a struct, `[]TYPE` or `map:TYPE`. Before it may
//! stand `*` for a pointer, and Go's name with an equals sign.

use super::{Field, Kind, Merge, Struct, StructRef, places::Places};

/// All structs in the order of the table.
///
/// # Panics
///
/// If the table is damaged. It is part of the program.
pub(super) fn structs(table: &'static str) -> Vec<Struct> {
    let names: Vec<_> = table.lines().filter(|line| !line.starts_with(' ')).collect();
    let mut structs: Vec<Struct> = Vec::with_capacity(names.len());
    for line in table.lines() {
        if let Some(field) = line.strip_prefix(' ') {
            let last = structs.last_mut().expect("a field must follow its struct");
            let field = self::field(field, &names);
            let fields = if field.since.is_some() { &mut last.newer } else { &mut last.fields };
            fields.push(field);
        } else {
            let (fields, newer, places) = (Vec::new(), Vec::new(), Places::default());
            structs.push(Struct { name: line, fields, newer, places });
        }
    }
    for one in &mut structs {
        one.fields.sort_unstable_by_key(|field| field.name);
        one.places = Places::of(&one.fields);
    }
    structs
}

fn field(line: &'static str, names: &[&str]) -> Field {
    let mut words = line.split(' ');
    let name = words.next().expect("a field must have a name");
    let shape = words.next().expect("a field must have a type");
    let (pointer, shape) = shape.strip_prefix('*').map_or((false, shape), |shape| (true, shape));
    let kind = kind(shape, names);
    let (written, merge, embedded_in) = (false, Merge::Replace, "");
    let (since, until) = (None, None);
    let mut field = Field { name, kind, pointer, written, merge, embedded_in, since, until };
    for word in words {
        match word.split_once(':') {
            None => field.written = word == "written",
            Some(("in", names)) => field.embedded_in = names,
            Some(("since", release)) => field.since = Some(minor(release)),
            Some(("until", release)) => field.until = Some(minor(release)),
            Some((_, "")) => field.merge = Merge::Set,
            Some((_, key)) => field.merge = Merge::ByKey(key),
        }
    }
    field
}

fn minor(release: &str) -> u32 {
    let minor = release.strip_prefix("1.").and_then(|minor| minor.parse().ok());
    minor.expect("a release must be 1 and a minor version")
}

fn kind(shape: &'static str, names: &[&str]) -> Kind {
    if let Some(inner) = shape.strip_prefix("[]") {
        return Kind::List(Box::new(kind(inner, names)));
    }
    let (go_name, shape) = shape.split_once('=').unwrap_or((shape, shape));
    if let Some(inner) = shape.strip_prefix("map:") {
        return Kind::Map(go_name, Box::new(kind(inner, names)));
    }
    match shape {
        "string" => Kind::Text(go_name),
        "bool" => Kind::Boolean,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "intstr" => Kind::IntOrString,
        "quantity" => Kind::Quantity,
        "time" => Kind::Time,
        "any" => Kind::Any,
        _ => {
            let at = names.iter().position(|name| *name == shape);
            Kind::Struct(StructRef(at.expect("the type of a field must be in the table")))
        }
    }
}
