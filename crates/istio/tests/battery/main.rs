//! Compares what templates see of a Pod with Go's answers: fields, methods, printed texts, errors.
//!
//! The Pod is `pod.json`, the templates are the lines of `templates.txt`. Recorded answers are compared
//! always. `INJECTD_ASK_GO=1` also compares them, and the table of the types, with Go (`go` must be on
//! the path). `RECORD=1` records anew.

#![expect(clippy::disallowed_types, reason = "a Pod and answers are trees")]
#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

use std::{
    env, fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use injectd_gotemplate::{Context, Functions, Template, Value};
use injectd_istio::{data::TemplateData, owner::Owner, pod, release::Release};
use serde_json::{Value as Json, json};

/// The release with the types of the Go program.
const RELEASE: Release = Release::new(31, 0);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn the_pod() -> Json {
    serde_json::from_str(include_str!("pod.json")).expect("the Pod must be JSON")
}

fn templates() -> Vec<&'static str> {
    include_str!("templates.txt").lines().collect()
}

fn data() -> Value {
    let pod = Arc::new(the_pod());
    let [kind, api_version, name, namespace] =
        ["Deployment", "apps/v1", "web", "shop"].map(str::to_owned);
    let owner = Owner { kind, api_version, name, namespace };
    TemplateData {
        release: RELEASE,
        type_meta: pod::type_meta(&owner, RELEASE),
        deployment_meta: pod::deployment_meta(&owner, &pod, RELEASE),
        object_meta: pod::object_meta(&pod, RELEASE),
        spec: pod::spec(&pod, RELEASE),
        proxy_config: Value::Nil,
        mesh_config: Value::Nil,
        values: Value::Nil,
        revision: String::new(),
        proxy_image: String::new(),
        proxy_init_image: String::new(),
        native_sidecars: false,
        inbound_traffic_policy_mode: "",
        proxy_uid: 0,
        proxy_gid: 0,
        compliance_policy: String::new(),
    }
    .into()
}

/// The output of a template, or the text of its error.
fn ours(template: &str, data: &Value) -> String {
    let parsed = Template::parse("t", template, &Functions::builtin()).expect("a template");
    parsed.execute(data, &mut Context::default()).unwrap_or_else(|error| error.to_string())
}

/// The output of the Go program; `None` if there is no `go`.
fn run_go(arguments: &[&str], input: &str) -> Option<String> {
    Command::new("go").arg("version").output().ok()?;
    let mut go = Command::new("go")
        .args(["run", "."])
        .args(arguments)
        .env("TZ", "UTC")
        .current_dir(folder().join("go"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("go must start");
    let mut questions = go.stdin.take().expect("standard input must be a pipe");
    questions.write_all(input.as_bytes()).expect("go must read the questions");
    drop(questions);
    let output = go.wait_with_output().expect("go must end");
    assert!(output.status.success(), "the Go program must succeed");
    Some(String::from_utf8(output.stdout).expect("the output must be UTF-8"))
}

/// Go's answers to all templates, as JSON. Addresses are replaced, since they are others each time.
fn ask_go() -> Option<String> {
    let question = json!({"pod": the_pod(), "templates": templates()});
    let answers = run_go(&[], &question.to_string())?;
    let mut parts = answers.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += "0xc000000000";
        text += part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    Some(text)
}

fn recording() -> PathBuf {
    folder().join("battery/answers.json.gz")
}

fn recorded() -> String {
    let bytes = fs::read(recording()).expect("the recorded answers must be there");
    let mut answers = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut answers).expect("gzip");
    answers
}

fn record(answers: &str) {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(answers.as_bytes()).expect("memory must take it");
    let bytes = out.finish().expect("memory must take it");
    fs::write(recording(), bytes).expect("the recorded answers must be writable");
}

fn asks_go() -> bool {
    let asks = env::var_os("INJECTD_ASK_GO").is_some();
    if !asks {
        println!("skipped: INJECTD_ASK_GO is not set");
    }
    asks
}

#[test]
fn recorded_answers() {
    if env::var_os("RECORD").is_some() {
        record(&ask_go().expect("go must be on the path"));
    }
    let recorded: Vec<Json> =
        serde_json::from_str(&recorded()).expect("the recorded answers must be JSON");
    let data = data();
    let mut different = 0;
    for (answer, template) in recorded.iter().zip(templates()) {
        assert_eq!(answer["template"], template, "the answers must be those of the templates");
        let theirs = answer["error"].as_str().or(answer["text"].as_str()).unwrap_or_default();
        let ours = ours(template, &data);
        if ours != theirs {
            different += 1;
            println!("{template}\n  ours: {ours}\n  go:   {theirs}");
        }
    }
    println!("{} templates, {different} different", recorded.len());
    assert_eq!(recorded.len(), templates().len());
    assert_eq!(different, 0);
}

#[test]
fn answers_of_go_now() {
    if !asks_go() {
        return;
    }
    let Some(now) = ask_go() else {
        println!("skipped: go is not on the path");
        return;
    };
    assert!(now == recorded(), "the answers must be recorded anew");
}

/// The table of the types is that of Go, but for the versions that brought the fields.
#[test]
fn types_of_go_now() {
    if !asks_go() {
        return;
    }
    let Some(now) = run_go(&["types"], "") else {
        println!("skipped: go is not on the path");
        return;
    };
    let row = |line: &str| match line.strip_prefix(' ') {
        Some(row) => row.split(' ').take(3).collect::<Vec<_>>().join(" "),
        None => line.to_owned(),
    };
    let embedded: Vec<_> = include_str!("../../src/pod/types.txt").lines().map(row).collect();
    let now: Vec<_> = now.lines().map(|line| line.trim_start().to_owned()).collect();
    assert_eq!(embedded, now);
}
