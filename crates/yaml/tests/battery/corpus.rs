//! Manifests from charts, edited: `$INJECTD_CORPUS/manifests`.

#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

use std::path::Path;

use injectd_yaml::{Options, edit, stream};
use serde_json::{Value, json};

use crate::{answers, changes::Injection};

#[test]
fn manifests_of_charts_are_edited_in_place() {
    let Some(corpus) = std::env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        println!("skipped: INJECTD_CORPUS is not set");
        return;
    };
    let folder = Path::new(&corpus).join("manifests");
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: {} is not there", folder.display());
        return;
    };
    let (mut documents, mut edits, mut texts) = (0, 0, Vec::new());
    for file in files {
        let path = file.expect("the folder must be readable").path();
        let text = std::fs::read_to_string(&path).expect("a manifest must be UTF-8");
        for document in stream(&text, Options::default()) {
            let document =
                document.unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
            documents += 1;
            let (text, before) = (&text[document.place], document.value);
            assert_eq!(edit(text, document.format, &before, &before).as_deref(), Some(text));
            for after in additions(&before) {
                let edited = edit(text, document.format, &before, &after);
                let edited = edited.unwrap_or_else(|| panic!("not in place:\n{text}\n{after}"));
                let back = edit(&edited, document.format, &after, &before);
                assert_eq!(back.as_deref(), Some(text), "there and back:\n{edited}");
                edits += 1;
                texts.push((edited, after));
            }
        }
    }
    println!("{documents} documents, {edits} edits in place and back");
    go_agrees(texts);
}

/// A label of the object, a key at the end, and what an injection adds to a pod.
fn additions(before: &Value) -> Vec<Value> {
    if !before.is_object() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut labelled = before.clone();
    labelled["metadata"]["labels"]["new"] = json!("yes");
    found.push(labelled);
    let mut longer = before.clone();
    longer["new"] = json!({"list": [1, {"text": "one\ntwo\n"}]});
    found.push(longer);
    for injection in Injection::EACH {
        let mut after = before.clone();
        if injection.make(&mut after) {
            found.push(after);
        }
    }
    found
}

fn go_agrees(texts: Vec<(String, Value)>) {
    if answers::seeds_to_ask().is_none() {
        return;
    }
    let (texts, wanted): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
    let Some(cases) = answers::ask_go(texts) else {
        println!("skipped: go is not on the path");
        return;
    };
    for (case, after) in cases.iter().zip(wanted) {
        let found = &case.answers["many"]["value"];
        assert!(answers::same(&json!([after]), found), "Go reads {found}:\n{}", case.text);
    }
    println!("Go agrees on {} edits", cases.len());
}
