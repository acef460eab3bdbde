//! Random changes of templates, and random values, do not panic.
//!
//! `INJECTD_ANY_CASES` sets how many texts are tried.

#![expect(clippy::disallowed_types, reason = "pods are trees here")]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use proptest::{
    collection::vec, prelude::*, sample::Index, strategy::ValueTree, test_runner::TestRunner,
};

#[path = "../testdata/any.rs"]
mod any;

/// Texts that are tried if the variable is not set.
const CASES: usize = 400;
/// A text that takes longer does not end.
const TOO_LONG: Duration = Duration::from_secs(30);
/// Words that mean something in a template.
const WORDS: &str = include_str!("../../../fuzz/sidecar.dict");

#[expect(clippy::disallowed_methods, reason = "the variable is for people who run the test")]
fn cases() -> usize {
    std::env::var("INJECTD_ANY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

/// A change of a text.
#[derive(Debug, Clone)]
enum Change {
    /// A line is left out.
    Drop(Index),
    /// A line is copied behind another one.
    Copy(Index, Index),
    /// A word stands in a line.
    Insert(Index, Index, String),
    /// A word stands in the place of the end of a line.
    Replace(Index, String),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let words: Vec<_> = WORDS
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'))
        .map(|word| word.replace("\\\"", "\"").replace("\\\\", "\\"))
        .collect();
    let word =
        || prop_oneof![prop::sample::select(words.clone()), "[${}\\[\\]'\"a-z0-9.:, -]{1,6}",];
    let index = any::<Index>;
    let change = prop_oneof![
        index().prop_map(Change::Drop),
        (index(), index()).prop_map(|(from, to)| Change::Copy(from, to)),
        (index(), index(), word()).prop_map(|(line, at, word)| Change::Insert(line, at, word)),
        (index(), word()).prop_map(|(line, word)| Change::Replace(line, word)),
    ];
    vec(change, 1..3)
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for change in changes {
        if lines.is_empty() {
            break;
        }
        let count = lines.len();
        match change {
            Change::Drop(at) => drop(lines.remove(at.index(count))),
            Change::Copy(from, to) => {
                lines.insert(to.index(count), lines[from.index(count)].clone());
            }
            Change::Insert(line, at, word) => {
                let line = &mut lines[line.index(count)];
                let places: Vec<_> =
                    line.char_indices().map(|(at, _)| at).chain([line.len()]).collect();
                line.insert_str(places[at.index(places.len())], word);
            }
            Change::Replace(line, word) => {
                let line = &mut lines[line.index(count)];
                let end = line.rfind([' ', '{', '[']).map_or(0, |at| at + 1);
                line.replace_range(end.., word);
            }
        }
    }
    lines.join("\n")
}

fn seeds() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let examples = fs::read_dir(root.join("examples/templates")).expect("examples");
    let examples = examples.map(|entry| entry.expect("an entry").path().join("template.yaml"));
    let seeds = fs::read_dir(root.join("fuzz/seeds/sidecar")).expect("seeds");
    let seeds = seeds.map(|entry| entry.expect("an entry").path());
    let mut small: Vec<_> = seeds.collect();
    small.sort();
    let mut files: Vec<_> = examples.collect();
    files.sort();
    // The small ones are for the pod that they are applied to.
    files.extend([&*small, &*small, &*small].concat());
    files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect()
}

#[test]
fn any_text_is_read_as_a_template() {
    let mut runner = TestRunner::default();
    let (changes, seeds, cases) = (changes(), seeds(), cases());
    let (mut read, mut applied, mut longest) = (0_usize, 0_usize, Duration::ZERO);
    for at in 0..cases {
        let changes = changes.new_tree(&mut runner).expect("changes").current();
        let text = changed(&seeds[at % seeds.len()], &changes);
        let start = Instant::now();
        let found = any::template(&text);
        read += usize::from(found.is_some());
        applied += usize::from(found == Some(true));
        longest = longest.max(start.elapsed());
        assert!(longest < TOO_LONG, "{longest:?}: {text}");
    }
    print_line(&format!(
        "{cases} texts, {read} are templates, {applied} applied, the longest took {longest:?}"
    ));
    assert!(read > cases / 20 && applied > cases / 100, "{read}, {applied}");
}

#[test]
fn any_text_is_the_value_of_a_parameter() {
    let mut runner = TestRunner::default();
    let lines =
        vec("([-a-zA-Z0-9 ,./:;=é\"'{}$\\[\\]]{0,12}|[0-9]{1,20}[a-zA-Z]{0,2}|\\PC{0,8})", 9);
    let (cases, mut applied) = (cases(), 0_usize);
    for _ in 0..cases {
        let lines = lines.new_tree(&mut runner).expect("lines").current();
        applied += usize::from(any::parameters(&lines.join("\n")));
    }
    print_line(&format!("{cases} pods, {applied} applied"));
    assert!(applied > cases / 4, "{applied}");
}

#[expect(clippy::print_stderr, reason = "a person reads what the test did")]
fn print_line(line: &str) {
    eprintln!("{line}");
}
