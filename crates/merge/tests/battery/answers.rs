//! What Go answered, and what we answer.

use std::{
    fmt::Display,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use injectd_merge::{check, normal, overlay, strategic_merge};
use serde_json::{Value, json};

use crate::types::without_unknown_fields;

/// A base, a patch and what Go's library made of them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) base: Value,
    pub(crate) patch: Value,
    /// `literal`: `StrategicMergePatch` on the JSON. `typed`: on the base as a Pod is written, and
    /// the result read as a Pod and written again. Each is `{"value": …}`, `{"error": TEXT}`,
    /// `{"errors": [TEXT, …]}` (in random order), `{"panics": true}` or `{"varies": true}`.
    pub(crate) answers: Value,
}

/// One of the two answers beside ours.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) name: &'static str,
    pub(crate) equal: bool,
    /// What Go did, in a word.
    pub(crate) outcome: &'static str,
    pub(crate) ours: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn recording() -> PathBuf {
    folder().join("battery/answers.jsonl.gz")
}

/// The recorded cases.
pub(crate) fn recorded() -> Vec<Case> {
    let bytes = std::fs::read(recording()).expect("the recorded answers must be there");
    let mut lines = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut lines).expect("gzip");
    let line = |line: &str| {
        let mut case: Value = serde_json::from_str(line).expect("a line must be JSON");
        let mut take = |name: &str| case[name].take();
        Case { base: take("base"), patch: take("patch"), answers: take("go") }
    };
    lines.lines().map(line).collect()
}

/// Writes the cases.
pub(crate) fn record(cases: &[Case]) {
    let best = flate2::Compression::best();
    let mut out = flate2::write::GzEncoder::new(Vec::new(), best);
    for case in cases {
        let line = json!({"base": case.base, "patch": case.patch, "go": case.answers});
        writeln!(out, "{line}").expect("memory must take it");
    }
    let bytes = out.finish().expect("memory must take it");
    std::fs::write(recording(), bytes).expect("the recorded answers must be writable");
}

/// Asks Go for all merges; `None` if there is no `go`.
pub(crate) fn ask_go(merges: Vec<(Value, Value)>) -> Option<Vec<Case>> {
    let question = |(base, patch): &(Value, Value)| json!({"base": base, "patch": patch});
    let questions: Vec<_> = merges.iter().map(|merge| format!("{}\n", question(merge))).collect();
    let answers = run_go(&[], questions.concat())?;
    let answers = answers.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let case = |((base, patch), answers)| Case { base, patch, answers };
    let cases: Vec<_> = merges.into_iter().zip(answers).map(case).collect();
    assert_eq!(cases.len(), questions.len(), "Go must answer all");
    Some(cases)
}

/// The output of the Go program; `None` if there is no `go`.
pub(crate) fn run_go(arguments: &[&str], input: String) -> Option<String> {
    run_go_with("go.mod", arguments, input)
}

/// The same, with the packages of another file of modules.
pub(crate) fn run_go_with(modules: &str, arguments: &[&str], input: String) -> Option<String> {
    Command::new("go").arg("version").output().ok()?;
    let mut go = Command::new("go")
        .args(["run", &format!("-modfile={modules}"), "."])
        .args(arguments)
        .current_dir(folder().join("go"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("go must start");
    let mut questions = go.stdin.take().expect("standard input must be a pipe");
    let asking = std::thread::spawn(move || questions.write_all(input.as_bytes()));
    let output = go.wait_with_output().expect("go must end");
    assert!(output.status.success(), "the Go program must succeed");
    asking.join().expect("the thread must end").expect("go must read all questions");
    Some(String::from_utf8(output.stdout).expect("the output must be UTF-8"))
}

impl Case {
    pub(crate) fn readings(&self) -> Vec<Reading> {
        vec![self.literal(), self.typed()]
    }

    fn literal(&self) -> Reading {
        let mut ours = self.base.clone();
        let result = strategic_merge(&mut ours, self.patch.clone());
        self.reading("literal", result.map(|()| ours), Value::clone)
    }

    fn typed(&self) -> Reading {
        let mut ours = self.base.clone();
        let merged = overlay(&mut ours, self.patch.clone()).map_err(|error| error.to_string());
        let result = merged.and_then(|()| match check(&self.patch) {
            Ok(()) => Ok(ours),
            Err(error) => Err(format!("read: {error}")),
        });
        self.reading("typed", result, |value| normal(&without_unknown_fields(value)))
    }

    /// Whether the merge has Go's result, whatever the types.
    pub(crate) fn merges_as_go_does(&self) -> bool {
        let mut ours = self.base.clone();
        let form = |value: &Value| normal(&without_unknown_fields(value));
        overlay(&mut ours, self.patch.clone()).is_ok()
            && same(&form(&ours), &form(&self.answers["typed"]["value"]))
    }

    fn reading<E: Display>(
        &self,
        name: &'static str,
        ours: Result<Value, E>,
        form: impl Fn(&Value) -> Value,
    ) -> Reading {
        let go = &self.answers[name];
        let errors = go["errors"].as_array().cloned().unwrap_or_default();
        let errors: Vec<_> =
            errors.iter().chain(go.get("error")).filter_map(Value::as_str).collect();
        let (outcome, equal) = match &ours {
            _ if go["varies"] == true => ("changes from run to run", true),
            _ if errors.iter().any(|error| error.starts_with("base: ")) => ("no Pod", true),
            ours if go["panics"] == true => ("panics", ours.is_err()),
            Ok(ours) => ("merges", go.get("value").is_some_and(|go| same(&form(ours), &form(go)))),
            Err(ours) => {
                let ours = ours.to_string();
                ("reports", errors.iter().any(|error| same_text(&ours, error)))
            }
        };
        let ours = match ours {
            Ok(value) => form(&value).to_string(),
            Err(error) => error.to_string(),
        };
        Reading { name, equal, outcome, ours }
    }
}

/// Equal up to the first value of the patch in them.
fn same_text(ours: &str, go: &str) -> bool {
    let start = |text: &str| {
        let values = ["map[", "[[", "list:\n", "parsing time \""];
        let end = values.iter().filter_map(|value| text.find(value)).min();
        text.split_at(end.unwrap_or(text.len())).0.to_owned()
    };
    start(ours) == start(go)
}

/// Equal but for the order of keys and for how a number is held.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
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
