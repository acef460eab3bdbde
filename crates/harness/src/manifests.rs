//! Manifests: the files, and the objects of a YAML text, which are taken apart and not parsed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::expect::{Outcome, failed};

/// The manifests that scenarios inject into, sorted by name.
///
/// # Errors
///
/// Fails if the folder cannot be read.
pub fn files() -> Outcome<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/manifests");
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

/// The arguments of the container of the Deployment among objects, but for these flags, `--x=`.
///
/// # Errors
///
/// Fails if there is no Deployment.
pub fn arguments(objects: &[Value], without: &[&str]) -> Outcome<Vec<String>> {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    let arguments = deployment
        .and_then(|deployment| {
            deployment.pointer("/spec/template/spec/containers/0/args")?.as_array()
        })
        .ok_or_else(|| failed("no arguments of a Deployment"))?;
    let arguments = arguments.iter().filter_map(Value::as_str).map(str::to_owned);
    Ok(arguments
        .filter(|argument| !without.iter().any(|flag| argument.starts_with(flag)))
        .collect())
}

/// The objects of a YAML text, each as YAML. A List's items are found by their dash at the margin.
#[must_use]
pub fn objects(text: &str) -> Vec<String> {
    let mut objects = Vec::new();
    for document in split(text, |line| line == "---") {
        if document.lines().any(|line| line == "kind: List") {
            let items = split(&document, |line| line.starts_with("- "));
            objects.extend(items.iter().skip(1).map(|item| unindented(item)));
        } else if !document.trim().is_empty() {
            objects.push(document);
        }
    }
    objects
}

/// The pieces of a text; each begins with the line that the one before ended at.
fn split(text: &str, begins: impl Fn(&str) -> bool) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for line in text.lines() {
        if begins(line) {
            pieces.push(String::new());
        }
        if let (Some(piece), true) = (pieces.last_mut(), line != "---") {
            piece.push_str(line);
            piece.push('\n');
        }
    }
    pieces
}

fn unindented(item: &str) -> String {
    let strip = |line: &str| {
        let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("  ")).unwrap_or(line);
        format!("{rest}\n")
    };
    item.lines().map(strip).collect()
}
