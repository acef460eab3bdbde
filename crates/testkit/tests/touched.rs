//! The files that an addition touches, as CONTRIBUTING.md lists them, are those that have its words.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const PAGE: &str = include_str!("../../../CONTRIBUTING.md");
const SECTION: &str = "\n## Files that a change touches\n";

/// Packages that are not part of the product.
const BESIDE: [&str; 3] = ["crates/harness", "crates/reference", "crates/testkit"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The files of the product: their paths from the top of the repository, and their texts.
fn product() -> Vec<(String, String)> {
    let root = root();
    let packages = fs::read_dir(root.join("crates")).expect("the packages");
    let mut folders: Vec<_> =
        packages.map(|package| package.expect("a package").path().join("src")).collect();
    folders.extend(["src", "proto/injectd"].map(|folder| root.join(folder)));
    folders.retain(|folder| !BESIDE.iter().any(|beside| folder.starts_with(root.join(beside))));
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().unwrap_or_default();
            if name == "tests" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&fs::read(&path).expect("a file")).into_owned();
            let path = path.strip_prefix(&root).expect("below the top");
            found.push((path.display().to_string(), text));
        }
    }
    found
}

/// What is in backquotes behind a label of an item, until the next label.
fn quoted<'t>(item: &'t str, label: &str) -> BTreeSet<&'t str> {
    let (_, behind) = item.split_once(label).expect("the label");
    let text = behind.split("\n  - ").next().unwrap_or_default();
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_listed_files_are_those_with_the_words_of_the_example() {
    let (_, section) = PAGE.split_once(SECTION).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let product = product();
    let items: Vec<_> = section.split("\n- ").skip(1).collect();
    assert_eq!(items.len(), 7);
    for item in items {
        let words = quoted(item, "words:");
        let has_word = |text: &str| words.iter().any(|word| text.contains(word));
        let files =
            product.iter().filter(|(_, text)| has_word(text)).map(|(path, _)| path.as_str());
        assert_eq!(files.collect::<BTreeSet<_>>(), quoted(item, "- files:"), "{item}");
    }
}
