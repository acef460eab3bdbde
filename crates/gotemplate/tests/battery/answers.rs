//! What Go answered, and what we answer.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use injectd_gotemplate::{Context, Functions, Template, Value};
use serde_json::{Value as Json, json};

/// The data of all templates.
const DATA: &str = include_str!("data.json");

/// The output, or the text of the error.
pub(crate) type Answer = Result<Vec<u8>, String>;

/// A template and what Go made of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) template: String,
    pub(crate) answer: Answer,
}

pub(crate) fn shown(answer: &Answer) -> String {
    match answer {
        Ok(output) => format!("{:?}", String::from_utf8_lossy(output)),
        Err(message) => format!("error: {message}"),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn recording() -> PathBuf {
    folder().join("battery/answers.jsonl.gz")
}

/// Go's answer as JSON: `{"ok": true, "output": base64}`, `{"parse": text}` or `{"exec": text}`.
fn answer(json: &Json) -> Answer {
    if json["ok"] == true {
        let output = json["output"].as_str().unwrap_or_default();
        return Ok(STANDARD.decode(output).expect("base64"));
    }
    let text = json["parse"].as_str().or(json["exec"].as_str());
    Err(text.expect("an answer must be an output or an error").to_owned())
}

/// The recorded cases.
pub(crate) fn recorded() -> Vec<Case> {
    let bytes = std::fs::read(recording()).expect("the recorded answers must be there");
    let mut lines = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut lines).expect("gzip");
    let case = |line: &str| {
        let case: Json = serde_json::from_str(line).expect("a line must be JSON");
        let template = case["template"].as_str().expect("a line must have a template").to_owned();
        Case { template, answer: answer(&case["go"]) }
    };
    lines.lines().map(case).collect()
}

/// Writes the cases.
pub(crate) fn record(cases: &[Case]) {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for case in cases {
        let go = match &case.answer {
            Ok(output) => json!({"ok": true, "output": STANDARD.encode(output)}),
            Err(message) => json!({"exec": message}),
        };
        let line = json!({"template": case.template, "go": go});
        writeln!(out, "{line}").expect("memory must take it");
    }
    let bytes = out.finish().expect("memory must take it");
    std::fs::write(recording(), bytes).expect("the recorded answers must be writable");
}

/// Asks Go for all templates; `None` if there is no `go`.
pub(crate) fn ask_go(templates: Vec<String>) -> Option<Vec<Case>> {
    Command::new("go").arg("version").output().ok()?;
    let mut go = Command::new("go")
        .args(["run", "."])
        .current_dir(folder().join("go"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("go must start");
    let mut questions = go.stdin.take().expect("standard input must be a pipe");
    let data: Json = serde_json::from_str(DATA).expect("the data must be JSON");
    let question = |template: &String| {
        let istio = is_of_istio(template);
        json!({"template": template, "data": data, "istio": istio}).to_string() + "\n"
    };
    let lines: String = templates.iter().map(question).collect();
    let asking = std::thread::spawn(move || questions.write_all(lines.as_bytes()));
    let output = go.wait_with_output().expect("go must end");
    assert!(output.status.success(), "the Go program must succeed");
    asking.join().expect("the thread must end").expect("go must read all questions");
    let answers = String::from_utf8(output.stdout).expect("JSON must be UTF-8");
    let answers = answers.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let case = |(template, json): (String, Json)| Case { template, answer: answer(&json) };
    Some(templates.into_iter().zip(answers).map(case).collect())
}

/// Templates that begin with this comment use Istio's functions instead of sprig's.
fn is_of_istio(template: &str) -> bool {
    template.starts_with("{{/* istio */}}")
}

impl Case {
    pub(crate) fn ours(&self) -> Answer {
        let data: Json = serde_json::from_str(DATA).expect("the data must be JSON");
        let data = Value::from_json(&data);
        let functions =
            if is_of_istio(&self.template) { Functions::istio() } else { Functions::sprig() };
        let template = Template::parse("t", &self.template, &functions)
            .map_err(|problem| problem.to_string())?;
        template
            .execute_bytes(&data, &mut Context::default())
            .map_err(|problem| problem.to_string())
    }
}
