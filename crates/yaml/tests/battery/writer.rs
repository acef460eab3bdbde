//! What the writer writes, read by our reader and by Go's.

#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

use injectd_yaml::{DuplicateKeys, MoreDocuments, Options, documents, parse, write};
use serde_json::{Value, json};

use crate::{
    answers::{self, same},
    values,
};

const SEEDS: u64 = 20_000;

#[test]
fn our_reader_reads_what_is_written() {
    let options = Options {
        duplicate_keys: DuplicateKeys::Error,
        more_documents: MoreDocuments::Error,
        ..Options::default()
    };
    for seed in 0..SEEDS {
        let value = values::value(seed);
        let text = write(&value);
        let one = parse(&text, options);
        let one = one.unwrap_or_else(|problem| panic!("seed {seed}: {problem}:\n{text}\n{value}"));
        assert!(same(&value, &one), "seed {seed}: {value}\nis read as {one}:\n{text}");
        let many = documents(&text, options).map(Value::Array);
        let many = many.unwrap_or_else(|problem| panic!("seed {seed}: {problem}:\n{text}"));
        assert!(same(&json!([value]), &many), "seed {seed}: {value}\nis read as {many}:\n{text}");
    }
    println!("{SEEDS} values, all read as they were written");
}

#[test]
fn go_reads_what_is_written() {
    let Some(seeds) = answers::seeds_to_ask() else { return };
    let values: Vec<_> = seeds.map(values::value).collect();
    let Some(cases) = answers::ask_go(values.iter().map(write).collect()) else {
        println!("skipped: go is not on the path");
        return;
    };
    let mut wrong = 0;
    for (value, case) in values.iter().zip(&cases) {
        let wanted = [("one", value.clone()), ("strict", value.clone()), ("many", json!([value]))];
        for (reading, wanted) in wanted {
            let found = &case.answers[reading]["value"];
            if case.answers[reading].get("value").is_none() || !same(&wanted, found) {
                wrong += 1;
                println!("{reading}: {:?}\n  wanted: {wanted}\n  go: {}", case.text, case.answers);
            }
        }
    }
    println!("{} values, {wrong} readings by Go differ", cases.len());
    assert_eq!(wrong, 0);
}
