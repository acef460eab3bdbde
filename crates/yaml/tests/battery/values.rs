//! Random values of JSON with every odd form of strings and numbers.

use injectd_testkit::generator::random::Random;
use serde_json::{Map, Number, Value};

use crate::generator::{MARKS, WORDS};

/// What strings are put together from, besides words and syntax.
const PARTS: &[&str] = &[
    " ",
    "  ",
    "\n",
    "\n",
    "\n\n",
    "\n  ",
    "\n ",
    "\n\t",
    " \n",
    "\t\n",
    "\t",
    "\r",
    "\r\n",
    "\0",
    "\u{7}",
    "\u{1b}",
    "\u{7f}",
    "\u{80}",
    "\u{85}",
    "\u{9f}",
    "\u{a0}",
    "\u{e9}",
    "\u{2028}",
    "\u{2029}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{fdd0}",
    "\u{feff}",
    "\u{fffd}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{1f600}",
    "\u{1fffe}",
    "\u{10ffff}",
    "a",
    "line",
    "x y",
    "# c",
    " # c",
    "a: b",
    "- i",
    "---",
    "--- ",
    "...",
    "\n---\n",
    "\n...\n",
    "%YAML 1.1\n",
    "{{ .x }}",
    "$(A)",
    "\\n",
    "\\",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
];

const FLOATS: &[f64] = &[
    0.1,
    -0.5,
    1.5,
    1e21,
    1e22,
    1e-7,
    1.25e-300,
    5e-324,
    f64::MAX,
    f64::MIN_POSITIVE,
    1e20,
    -1e6,
    123_456_789.125,
    0.000_001,
    2.5e15,
    9.007_199_254_740_993e15,
    1.844_674_407_370_955_2e19,
];

/// The value of a seed.
pub(crate) fn value(seed: u64) -> Value {
    let mut random = Random::new(seed);
    nested(&mut random, 0)
}

fn nested(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth > 4 { 10 } else { 16 }) {
        0..=5 => Value::from(string(random)),
        6 => number(random),
        7 => random.one_of(&[Value::Null, Value::from(true), Value::from(false)]).clone(),
        8 => Value::Array(Vec::new()),
        9 => Value::Object(Map::new()),
        10..=12 => (0..random.below(5)).map(|_| nested(random, depth + 1)).collect(),
        _ => {
            let entries = (0..random.below(5)).map(|_| (key(random), nested(random, depth + 1)));
            Value::Object(entries.collect())
        }
    }
}

fn key(random: &mut Random) -> String {
    match random.below(30) {
        0 => {
            let long = random.between(890, 1100);
            let part = random.pick(&["k", "k ", "\u{e9}", "\0", "\"", "- "]);
            part.repeat(long / part.len())
        }
        1 => "\0".repeat(random.between(140, 200)),
        2..=15 => random.pick(&["a", "b", "name", "x-y", "k8s.io/name", "spec", "metadata"]).into(),
        _ => string(random),
    }
}

/// A string of any form.
pub(crate) fn string(random: &mut Random) -> String {
    match random.below(10) {
        0..=3 => random.pick(WORDS).to_owned(),
        4 => (0..random.between(1, 300)).map(|_| random.pick(&["word ", "a", "\n"])).collect(),
        5 => [random.pick(PARTS), random.pick(WORDS)].concat(),
        6 => [random.pick(WORDS), random.pick(PARTS), random.pick(WORDS)].concat(),
        7 => (0..random.below(7)).map(|_| random.pick(MARKS)).collect(),
        _ => (0..random.below(9)).map(|_| random.pick(PARTS)).collect(),
    }
}

fn number(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::from(random.pick(&[0, 1, -1, i64::MIN, i64::MAX])),
        1 => Value::from(random.pick(&[u64::MAX, 1 << 63, 1 << 53, 8080])),
        2 => Value::from(random.next_u64()),
        3 => float(f64::from_bits(random.next_u64())),
        _ => float(random.pick(FLOATS)),
    }
}

/// A float; without a fraction it is the integer that is read.
fn float(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e21 {
        return serde_json::from_str(&format!("{number:.0}")).expect("digits must be JSON");
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}
