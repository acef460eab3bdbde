//! Edits in place: what they mean to Go, whether comments stay, and whether they can be taken back.

#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

use std::collections::BTreeMap;

use injectd_testkit::generator::{manifests, random::Random};
use injectd_yaml::{Document, Options, edit, stream};
use serde_json::{Value, json};

use crate::{
    answers::{self, same},
    changes::{Injection, changed},
    comments, generator,
};

const SEEDS: u64 = 500;

/// The first document of a text, if it has a mapping.
fn mapping(text: &str) -> Option<Document> {
    let document = stream(text, Options::default()).next()?.ok()?;
    document.value.as_object().is_some_and(|map| !map.is_empty()).then_some(document)
}

/// A document in its text, and an edit of it.
struct Edit {
    text: String,
    after: Value,
    edited: Option<String>,
}

impl Edit {
    /// An edit, checked as far as our reader can.
    fn of(text: &str, document: &Document, after: Value, only_additions: bool) -> Self {
        let text = &text[document.place.clone()];
        let edited = edit(text, document.format, &document.value, &after);
        if let Some(edited) = edited.as_deref().filter(|_| only_additions) {
            if let Some(problem) = comments::moved(text, edited) {
                panic!("{problem}:\n{text}\n>>>\n{edited}");
            }
            let back = edit(edited, document.format, &after, &document.value);
            // What was empty may be written in another way, an alias is no alias any more, and `[a: b]`
            // gets brackets.
            let other = fills(&document.value, &after)
                || text.matches('*').count() != edited.matches('*').count()
                || !text.contains("kind") && text.contains('[');
            if let Some(back) = back.filter(|back| back != text && !other) {
                panic!("there and back:\n{text}\n>>>\n{edited}\n>>>\n{back}");
            }
        }
        Self { text: text.to_owned(), after, edited }
    }
}

/// Whether something that was empty or missing has entries now.
fn fills(before: &Value, after: &Value) -> bool {
    let empty = |value: &Value| [json!(null), json!([]), json!({})].contains(value);
    match (before, after) {
        (Value::Object(before), Value::Object(after)) if !before.is_empty() => before
            .iter()
            .any(|(key, value)| after.get(key).is_some_and(|after| fills(value, after))),
        (Value::Array(before), Value::Array(after)) if !before.is_empty() => {
            let changed = |value: &&Value| !after.contains(value);
            before.iter().filter(changed).any(|value| after.iter().any(|after| fills(value, after)))
        }
        (before, after) => empty(before) && before != after,
    }
}

/// An injection into the manifest of a seed.
fn injection(seed: u64, injection: Injection) -> Edit {
    let text = manifests::text(seed);
    let document = mapping(&text).unwrap_or_else(|| {
        let problem = stream(&text, Options::default()).next();
        panic!("a manifest must be read: seed {seed}: {problem:?}\n{text}")
    });
    let mut after = document.value.clone();
    assert!(injection.make(&mut after), "a manifest must have a pod: {text}");
    Edit::of(&text, &document, after, true)
}

/// Random changes of random documents.
fn random(seed: u64) -> Option<Edit> {
    let mut random = Random::new(seed ^ 0xED17);
    let text = if random.percent(60) { manifests::text(seed) } else { generator::text(seed) };
    let document = mapping(&text)?;
    let only_additions = random.percent(50);
    let after = changed(&mut random, &document.value, only_additions);
    Some(Edit::of(&text, &document, after, only_additions))
}

#[test]
fn injections_are_in_place() {
    let mut counts: BTreeMap<Injection, [usize; 2]> = BTreeMap::new();
    let mut missing = 0;
    for seed in 0..SEEDS {
        for change in Injection::EACH {
            let edit = injection(seed, change);
            let in_place = edit.edited.is_some();
            counts.entry(change).or_default()[usize::from(in_place)] += 1;
            if !in_place && !edit.text.contains("&labels") {
                missing += 1;
                println!("{change:?} of seed {seed} is not in place:\n{}", edit.text);
            }
        }
    }
    for (injection, [no, yes]) in counts {
        println!("{injection:?}: {yes} in place, {no} not");
    }
    assert_eq!(missing, 0, "only anchors may be in the way");
}

#[test]
fn random_changes() {
    let edits: Vec<_> = (0..4 * SEEDS).filter_map(random).collect();
    let in_place = edits.iter().filter(|edit| edit.edited.is_some()).count();
    println!("{} random changes, {in_place} in place", edits.len());
    assert!(in_place * 10 > edits.len() * 6);
}

#[test]
fn go_reads_what_is_edited() {
    let Some(seeds) = answers::seeds_to_ask() else { return };
    let each = Injection::EACH.into_iter().cycle();
    let edits = seeds
        .zip(each)
        .flat_map(|(seed, change)| random(seed).into_iter().chain([injection(seed, change)]));
    let edits: Vec<_> = edits.filter(|edit| edit.edited.is_some()).collect();
    let texts = edits.iter().filter_map(|edit| edit.edited.clone()).collect();
    let Some(cases) = answers::ask_go(texts) else {
        println!("skipped: go is not on the path");
        return;
    };
    let mut wrong = 0;
    for (edit, case) in edits.iter().zip(&cases) {
        let many = &case.answers["many"]["value"];
        let one = &case.answers["one"]["value"];
        // A block scalar that ends with the text has a line break only in a stream.
        let ends = case.text.ends_with('\n');
        if !same(&json!([edit.after]), many) || ends && !same(&edit.after, one) {
            wrong += 1;
            println!(
                "{}>>>\n{}\nwanted: {}\n  go: {}\n",
                edit.text, case.text, edit.after, case.answers
            );
        }
    }
    println!("{} edits, {wrong} mean something else to Go", edits.len());
    assert_eq!(wrong, 0);
}
