//! What Go answered.

use std::{
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::{Deserialize, Serialize};

/// An expression with the data that it is evaluated for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Question {
    #[serde(rename = "e")]
    pub(super) expression: String,
    /// Empty for match conditions, or `pod`.
    #[serde(rename = "t", default, skip_serializing_if = "String::is_empty")]
    environment: String,
    /// An index of the data.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub(super) data: usize,
}

/// What is said of a question.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    #[serde(flatten)]
    pub(super) question: Question,
    /// Why it does not compile, and where.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) problem: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) line: usize,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) column: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) r#type: String,
    /// Why it has no value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) value: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) cost: u64,
    /// Kubernetes' code panics.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) panics: bool,
    /// It depends on the order of a map, which Go changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) varies: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Question {
    pub(super) fn new(expression: String, is_typed: bool, data: usize) -> Self {
        let environment = if is_typed { "pod" } else { "" };
        Self { expression, environment: environment.to_owned(), data }
    }

    pub(super) fn is_typed(&self) -> bool {
        !self.environment.is_empty()
    }

    pub(super) fn text(&self) -> String {
        format!("{} [{}{}]", self.expression, self.environment, self.data)
    }
}

impl Answer {
    /// What happened, in a word.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self { panics: true, .. } => "panics",
            Self { varies: true, .. } => "varies",
            Self { problem, .. } if !problem.is_empty() => "does not compile",
            Self { error, .. } if !error.is_empty() => "fails",
            _ => "has a value",
        }
    }

    pub(super) fn text(&self) -> String {
        let Self { problem, line, column, r#type, error, value, cost, .. } = self;
        match self.outcome() {
            "does not compile" => format!("{line}:{column}: {problem}"),
            "fails" => format!("{type} fails at {cost}: {error}"),
            _ => format!("{type} {value} at {cost}"),
        }
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn recording() -> PathBuf {
    folder("testdata/answers.jsonl.gz")
}

/// The recorded answers.
pub(super) fn recorded() -> Vec<Answer> {
    let bytes = std::fs::read(recording()).expect("the recorded answers must be there");
    let mut lines = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut lines).expect("gzip");
    lines.lines().map(|line| serde_json::from_str(line).expect("a line must be JSON")).collect()
}

/// Writes the answers.
pub(super) fn record(answers: &[Answer]) {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for answer in answers {
        let line = serde_json::to_string(answer).expect("an answer must be JSON");
        writeln!(out, "{line}").expect("memory must take it");
    }
    let bytes = out.finish().expect("memory must take it");
    std::fs::write(recording(), bytes).expect("the recorded answers must be writable");
}

/// Asks Go; `None` if there is no `go`.
pub(super) fn ask(questions: &[Question]) -> Option<Vec<Answer>> {
    Command::new("go").arg("version").output().ok()?;
    let line = |question| format!("{}\n", serde_json::to_string(question).expect("JSON"));
    let input: String = questions.iter().map(line).collect();
    let mut go = Command::new("go")
        .args(["run", ".", "../../testdata/data.json"])
        .current_dir(folder("tests/go"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("go must start");
    let mut stdin = go.stdin.take().expect("standard input must be a pipe");
    let asking = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = go.wait_with_output().expect("go must end");
    assert!(output.status.success(), "the Go program must succeed");
    asking.join().expect("the thread must end").expect("go must read all questions");
    let output = String::from_utf8(output.stdout).expect("the output must be UTF-8");
    let answers: Vec<_> =
        output.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect();
    assert_eq!(answers.len(), questions.len(), "Go must answer all");
    Some(answers)
}
