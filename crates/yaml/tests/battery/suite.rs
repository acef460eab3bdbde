//! The inputs of the YAML test suite (<https://github.com/yaml/yaml-test-suite>, MIT: see
//! `suite.LICENSE`), held against Go as all other texts are.
//!
//! `RECORD=1 INJECTD_YAML_SUITE=folder` records anew; the folder holds a folder with a file
//! `in.yaml` for each test.

use std::path::Path;

use crate::{answers, compare};

const RECORDING: &str = "suite.jsonl.gz";

#[test]
fn yaml_test_suite() {
    if let Some(folder) = std::env::var_os("INJECTD_YAML_SUITE")
        && std::env::var_os("RECORD").is_some()
    {
        let cases = answers::ask_go(inputs(Path::new(&folder))).expect("go must be on the path");
        answers::record(RECORDING, &cases);
    }
    let cases = answers::recorded(RECORDING);
    assert!(cases.len() > 300, "{} answers are recorded", cases.len());
    assert_eq!(compare("YAML test suite", &cases), 0);
}

fn inputs(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder must be readable") {
            let path = entry.expect("the folder must be readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("in.yaml") {
                files.push(path);
            }
        }
    }
    files.sort();
    let text = |path| std::fs::read_to_string(path).expect("an input must be UTF-8");
    files.into_iter().map(text).collect()
}
