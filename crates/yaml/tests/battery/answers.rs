//! What Go answered, and what we answer.

use std::{
    io::{Read, Write},
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use injectd_yaml::{DuplicateKeys, Options, documents, parse};
use serde_json::{Value, json};

/// A text and what Go's libraries made of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) text: String,
    /// `YAMLToJSON`, `YAMLToJSONStrict` and `NewYAMLOrJSONDecoder`: `{"value": …}`,
    /// `{"error": true}` or `{"varies": true}`.
    pub(crate) answers: Value,
}

/// How our answer differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    /// Both read it, and not the same.
    OtherMeaning,
    /// Go rejects it.
    OnlyWeRead,
    /// We reject it.
    OnlyGoReads,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn recording(name: &str) -> PathBuf {
    folder().join("battery").join(name)
}

/// The cases of a recording.
pub(crate) fn recorded(name: &str) -> Vec<Case> {
    let bytes = std::fs::read(recording(name)).expect("the recorded answers must be there");
    let mut lines = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut lines).expect("gzip");
    let line = |line: &str| {
        let mut case: Value = serde_json::from_str(line).expect("a line must be JSON");
        let text = case["text"].as_str().expect("a line must have a text").to_owned();
        Case { text, answers: case["go"].take() }
    };
    lines.lines().map(line).collect()
}

/// Writes a recording.
pub(crate) fn record(name: &str, cases: &[Case]) {
    let best = flate2::Compression::best();
    let mut out = flate2::write::GzEncoder::new(Vec::new(), best);
    for case in cases {
        let line = json!({"text": case.text, "go": case.answers});
        writeln!(out, "{line}").expect("memory must take it");
    }
    let bytes = out.finish().expect("memory must take it");
    std::fs::write(recording(name), bytes).expect("the recorded answers must be writable");
}

/// The seeds to ask Go for; `None`, with a message, if it is not to be asked.
pub(crate) fn seeds_to_ask() -> Option<Range<u64>> {
    let number = |name: &str| {
        let text = std::env::var_os(name)?;
        let number = text.to_str().and_then(|text| text.parse().ok());
        Some(number.expect("the variable must be a number"))
    };
    let Some(count) = number("INJECTD_ASK_GO") else {
        println!("skipped: INJECTD_ASK_GO is not set");
        return None;
    };
    let from: u64 = number("INJECTD_ASK_GO_FROM").unwrap_or(1_000_000);
    Some(from..from + count)
}

/// Asks Go for all texts; `None` if there is no `go`.
pub(crate) fn ask_go(texts: Vec<String>) -> Option<Vec<Case>> {
    Command::new("go").arg("version").output().ok()?;
    let mut go = Command::new("go")
        .args(["run", "."])
        .current_dir(folder().join("go"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("go must start");
    let mut questions = go.stdin.take().expect("standard input must be a pipe");
    let lines: Vec<_> = texts.iter().map(|text| json!({"text": text}).to_string() + "\n").collect();
    let lines = lines.concat();
    let asking = std::thread::spawn(move || questions.write_all(lines.as_bytes()));
    let output = go.wait_with_output().expect("go must end");
    assert!(output.status.success(), "the Go program must succeed");
    asking.join().expect("the thread must end").expect("go must read all questions");
    let answers = String::from_utf8(output.stdout).expect("JSON must be UTF-8");
    let answers = answers.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let cases: Vec<_> =
        texts.into_iter().zip(answers).map(|(text, answers)| Case { text, answers }).collect();
    Some(cases)
}

impl Case {
    /// How each of the three readings differs.
    pub(crate) fn differences(&self) -> Vec<(&'static str, Difference, String)> {
        let lax = Options::default();
        let unique = Options { duplicate_keys: DuplicateKeys::Error, ..lax };
        let one = parse(&self.text, lax);
        let strict = parse(&self.text, unique);
        let many = documents(&self.text, lax).map(Value::Array);
        let mut found = Vec::new();
        // Unlike Go, a key may override one that a merge key brought.
        let strict_as = if strict.is_ok() && self.text.contains("<<") { "one" } else { "strict" };
        for (reading, recorded, ours) in
            [("one", "one", one), ("strict", strict_as, strict), ("many", "many", many)]
        {
            let go = &self.answers[recorded];
            let shown = match &ours {
                Ok(value) => value.to_string(),
                Err(problem) => problem.to_string(),
            };
            let difference = match (ours, go.get("value")) {
                _ if go["varies"] == true => None,
                (Ok(ours), Some(theirs)) => {
                    (!same(&ours, theirs)).then_some(Difference::OtherMeaning)
                }
                (Ok(_), None) => Some(Difference::OnlyWeRead),
                (Err(_), Some(_)) => Some(Difference::OnlyGoReads),
                (Err(_), None) => None,
            };
            found.extend(difference.map(|difference| (reading, difference, shown)));
        }
        found
    }
}

/// Equal but for the order of keys and for how a number is held.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            // serde_json reads the last digit of Go's floats inexactly.
            let (Some(ours), Some(theirs)) = (one.as_f64(), other.as_f64()) else {
                return false;
            };
            let near = (ours - theirs).abs() <= ours.abs() * 4.0 * f64::EPSILON;
            one == other || one.is_f64() && other.is_f64() && near
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|theirs| same(value, theirs)))
        }
        _ => one == other,
    }
}
