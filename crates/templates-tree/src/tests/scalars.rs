//! Nothing leaves its scalar: a value of a pod, a namespace or a ServiceAccount adds no field, and no entry.
//!
//! `INJECTD_SCALAR_CASES` sets how many values are compared.

mod example;

use std::collections::{BTreeMap, BTreeSet};

use proptest::{
    collection::vec, prelude::*, sample::select, strategy::ValueTree, test_runner::TestRunner,
};

use self::example::{Example, Setting, World, examples};

use super::*;

/// Values that are compared if the variable is not set.
const VALUES: usize = 2000;
/// Values that are made at once.
const BATCH: usize = 64;
/// Values that say whether a parameter takes any text.
const PROBES: usize = 6;

/// Pieces of languages, each of which means something to some reader.
const PIECES: [&str; 40] = [
    "${params.role}",
    "${",
    "$${",
    "}",
    "$(X)",
    "$$(X)",
    "$patch: delete",
    "{{ .Values.x }}",
    "{{",
    "}}",
    "{{- range $i := . }}",
    "\"",
    "'",
    "\\",
    "\\\"",
    "\"}",
    "\"]}",
    "',",
    "\n",
    "\r\n",
    "\n- name: x",
    "\n  x: y",
    ": ",
    " #",
    "&a",
    "*a",
    "!!binary x",
    "|\n x",
    "[x]",
    "{'a': 1}",
    "{\"name\": \"x\"}",
    "\", \"x\": \"y",
    "\u{0}",
    "\u{2028}",
    "é",
    "---\n",
    "'] + ['",
    "optional.none()",
    "`x`",
    "\t<<: *x",
];

fn values() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof![3 => select(PIECES.to_vec()).prop_map(str::to_owned), 1 => "[{}\"'$x]{1,4}"];
    vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

/// A text of the same length and separators that means nothing.
fn neutral(text: &str) -> String {
    let stays = |letter: char| ",;:=/|".contains(letter) || letter.is_whitespace();
    text.chars().map(|letter| if stays(letter) { letter } else { 'x' }).collect()
}

/// Keys, kinds, and lengths of lists.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!(null),
        Value::Bool(_) => json!(true),
        Value::Number(_) => json!(1),
        Value::String(_) => json!(""),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), shape(value))).collect()
        }
    }
}

/// Values that were tried.
#[derive(Debug, Default)]
struct Tried {
    /// Those whose structure was compared, by example.
    compared: BTreeMap<String, usize>,
    /// Those that deny the pod.
    denied: usize,
    /// Values with another structure, by example and parameter; the first of each.
    left: BTreeMap<String, String>,
}

/// What became of a pod with one value.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Denied,
    /// The structure is another one: the parameter, and the value.
    Other(String, String),
}

/// A pod for which an example is applied, and its parameters.
struct Subject<'e> {
    example: &'e Example,
    world: &'e World,
    /// Parameters that take any text, by place.
    free: Vec<usize>,
    others: Vec<usize>,
}

impl<'e> Subject<'e> {
    fn new(example: &'e Example, world: &'e World, probes: &[String]) -> Self {
        let count = example.template.spec.parameters.len();
        let mut subject = Self { example, world, free: Vec::new(), others: Vec::new() };
        let is_free = |at: &usize| {
            probes.iter().all(|value| subject.one(&Setting::new(*at, value)) == Verdict::Same)
        };
        (subject.free, subject.others) = (0..count).partition(is_free);
        subject
    }

    /// The structure of the pod with some values; `None` if it is denied.
    fn shape(&self, settings: &[Setting]) -> Option<Value> {
        let mut found = shape(&self.example.injected(self.world, settings)?);
        // The values are there or not, too.
        for setting in settings {
            for map in ["labels", "annotations"] {
                let key = self.example.key(setting);
                let entries = found["metadata"][map].as_object_mut();
                entries.and_then(|entries| entries.shift_remove(&key));
            }
        }
        Some(found)
    }

    /// Compares the structure with one value with what it is with a value that means nothing.
    ///
    /// A template may leave something out for a value that is empty, or that has nothing but quotes.
    fn one(&self, setting: &Setting) -> Verdict {
        let Some(found) = self.shape(std::slice::from_ref(setting)) else { return Verdict::Denied };
        let with =
            |value: &str| self.shape(&[Setting { value: value.to_owned(), ..setting.clone() }]);
        let bare = setting.value.replace(['"', '\''], "");
        let mut neutral = [neutral(&setting.value), neutral(&bare), String::new()].into_iter();
        let is_same = neutral.any(|value| with(&value).as_ref() == Some(&found))
            || self.shape(&[]).as_ref() == Some(&found);
        let name = &self.example.template.spec.parameters[setting.parameter].name;
        if is_same {
            return Verdict::Same;
        }
        let parameter = format!("{}: {name}", self.example.template.key());
        Verdict::Other(parameter, format!("{:?}: {found}", setting.value))
    }

    fn check(&self, values: &[String], tried: &mut Tried) {
        let mut values = values.iter();
        let free = self.free.iter().zip(&mut values);
        let free: Vec<_> = free.map(|(at, value)| Setting::new(*at, value)).collect();
        let other = self.others.get(values.len() % self.others.len().max(1));
        let other = other.zip(values.next()).map(|(at, value)| Setting::new(*at, value));
        let neutral: Vec<_> = free
            .iter()
            .map(|setting| Setting { value: neutral(&setting.value), ..setting.clone() })
            .collect();
        let found = self.shape(&free);
        let is_same = found.is_some() && found == self.shape(&neutral);
        let mut compared = if is_same { free.len() } else { 0 };
        let alone = free.iter().filter(|_| !is_same).chain(&other);
        for setting in alone {
            match self.one(setting) {
                Verdict::Same => compared += 1,
                Verdict::Denied => tried.denied += 1,
                Verdict::Other(parameter, value) => {
                    tried.left.entry(parameter).or_insert(value);
                }
            }
        }
        *tried.compared.entry(self.example.template.key()).or_default() += compared;
    }
}

#[expect(clippy::disallowed_methods, reason = "the variable is for people who run the test")]
fn cases() -> Option<usize> {
    std::env::var("INJECTD_SCALAR_CASES").ok().and_then(|cases| cases.parse().ok())
}

#[test]
fn nothing_leaves_its_scalar() {
    let goal = cases().unwrap_or(VALUES);
    let mut runner = TestRunner::default();
    let batch = vec(values(), BATCH);
    let mut made = || batch.new_tree(&mut runner).expect("values").current();
    let examples = examples();
    let probes = made();
    let worlds = examples
        .iter()
        .flat_map(|example| example.worlds.iter().map(move |world| (example, world)));
    let subjects: Vec<_> =
        worlds.map(|(example, world)| Subject::new(example, world, &probes[..PROBES])).collect();
    let applied: BTreeSet<_> = subjects.iter().map(|one| one.example.template.key()).collect();
    let without: Vec<_> = examples
        .iter()
        .map(|example| example.template.key())
        .filter(|key| !applied.contains(key))
        .collect();
    assert!(without.is_empty(), "no case of these examples is injected: {without:?}");
    let mut tried = Tried::default();
    let compared = |tried: &Tried| tried.compared.values().sum::<usize>();
    while compared(&tried) < goal {
        let before = compared(&tried);
        for subject in &subjects {
            subject.check(&made(), &mut tried);
        }
        assert!(compared(&tried) > before, "{tried:?}");
    }
    assert!(tried.left.is_empty(), "{} values compared: {tried:#?}", compared(&tried));
    print_line(&format!("{} values compared: {tried:?}", compared(&tried)));
}

#[expect(clippy::print_stderr, reason = "a person reads what the test did")]
fn print_line(line: &str) {
    eprintln!("{line}");
}
