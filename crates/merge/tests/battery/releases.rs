//! One table of types from those of two releases.

use std::collections::{BTreeSet, HashMap};

/// A struct with the lines of its fields.
struct Struct<'t> {
    name: &'t str,
    fields: Vec<&'t str>,
}

fn structs(table: &str) -> Vec<Struct<'_>> {
    let mut found: Vec<Struct<'_>> = Vec::new();
    for line in table.lines() {
        match found.last_mut() {
            Some(last) if line.starts_with(' ') => last.fields.push(line),
            _ => found.push(Struct { name: line, fields: Vec::new() }),
        }
    }
    found
}

/// A word of a line of a field: its key is the first.
fn word(line: &str, index: usize) -> &str {
    line.split(' ').nth(index + 1).unwrap_or_default()
}

/// The innermost type of a field.
fn type_of(line: &str) -> &str {
    let shape = word(line, 1).rsplit('=').next().unwrap_or_default();
    shape.rsplit([':', ']', '*']).next().unwrap_or_default()
}

/// The first table, with what only the second one has, and what only the first one has, marked. A field
/// that is merged otherwise in the second one keeps the way of the first.
pub(crate) fn joined(table: &str, newer: &str) -> String {
    let (old, new) = (structs(table), structs(newer));
    let by_name: HashMap<_, _> = new.iter().map(|of| (of.name, of)).collect();
    let known: BTreeSet<_> = old.iter().map(|of| of.name).collect();
    let (mut lines, mut added): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for of in &old {
        let newer = by_name.get(of.name).map(|of| &*of.fields).unwrap_or_default();
        let is_in =
            |fields: &[&str], line: &str| fields.iter().any(|at| word(at, 0) == word(line, 0));
        let mut fields: Vec<_> = of.fields.iter().map(|line| (*line).to_owned()).collect();
        for line in fields.iter_mut().filter(|line| !is_in(newer, line)) {
            line.push_str(" until:1.37");
        }
        for line in newer.iter().filter(|line| !is_in(&of.fields, line)) {
            fields.push(format!("{line} since:1.37"));
            added.push(type_of(line));
        }
        fields.sort_by(|one, other| word(one, 0).cmp(word(other, 0)));
        lines.push(of.name.to_owned());
        lines.extend(fields);
    }
    let mut reached = BTreeSet::new();
    while let Some(name) = added.pop() {
        if let Some(of) = by_name.get(name).filter(|of| !known.contains(of.name))
            && reached.insert(name)
        {
            added.extend(of.fields.iter().map(|line| type_of(line)));
        }
    }
    for of in new.iter().filter(|of| reached.contains(of.name)) {
        lines.push(of.name.to_owned());
        lines.extend(of.fields.iter().map(|line| format!("{line} since:1.37")));
    }
    lines.join("\n") + "\n"
}
