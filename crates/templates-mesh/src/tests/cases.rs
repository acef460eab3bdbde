//! The examples, and their cases.

use std::{
    fs,
    path::{Path, PathBuf},
};

use injectd_yaml::Options;
use serde_json::Value;

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let documents = injectd_yaml::documents(&text, Options::default()).expect("YAML");
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// A pod with the objects around it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) pod: Value,
    pub(super) objects: Vec<Value>,
}

pub(super) struct Example {
    pub(super) template: Value,
    pub(super) cases: Vec<Case>,
}

pub(super) fn examples() -> Vec<Example> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/templates");
    let folders = |path: &PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let example = |folder: &PathBuf| {
        let template = documents(&folder.join("template.yaml")).into_iter().next()?;
        let cases = folders(&folder.join("cases")).into_iter().filter_map(|case| {
            let pod = documents(&case.join("pod.yaml")).into_iter().next()?;
            Some(Case { pod, objects: documents(&case.join("objects.yaml")) })
        });
        Some(Example { template, cases: cases.collect() })
    };
    folders(&root).iter().filter_map(example).collect()
}
