//! No command prints text from outside raw: names, annotations, configuration, answers, files, flags.
//!
//! Each command runs with hostile text at each place of its input and in each of its flags, in its
//! output formats. Manifests that are changed, scripts and man pages are documents: they are not
//! checked.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    thread,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use injectd::yaml;
use injectd_testkit::istio::{CONFIG, MESH, VALUES};
use serde_json::{Value, json};

use self::{
    checks::{is_clean, is_printable, is_valid},
    mutants::mutants,
};
use super::{
    REVIEW,
    commands::{commands, each, flags},
    example, output_of, spawn_in, text,
};

mod checks;
mod mutants;

/// Control characters, format characters, separators of lines, and commands of CI systems. Flags
/// cannot have NUL.
const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{1b}[31m\u{9b}2J\rFORGED\t\u{7f}\u{85}\u{200b}\u{202e}\u{2066}\
    \u{2028}FORGED\u{2029}\nFORGED\n::error::FORGED\n##vso[task.x]FORGED ::error::FORGED ##[error]";
/// The same as a whole value: it may begin a line.
const WHOLE: &str = "::error::FORGED ::error::FORGED\n##[error]\u{1b}[31m\u{202e}";

/// So many runs are done in each output format.
const FEW: usize = 20;

/// A run of a command.
#[derive(Debug, Clone)]
struct Case {
    args: Vec<String>,
    stdin: String,
}

/// Runs of a command in a folder, where files are written that flags name.
struct Runs<'r> {
    command: &'r str,
    folder: &'r Path,
}

fn case(args: &[&str], stdin: impl Into<String>) -> Case {
    Case { args: args.iter().map(|&word| word.to_owned()).collect(), stdin: stdin.into() }
}

#[test]
fn no_command_prints_text_from_outside_raw() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = answering();
    for command in commands() {
        let path = folder.path().join(command.replace(' ', "-"));
        fs::create_dir(&path).expect("a folder");
        let mut cases = inputs(&command, &path, &server);
        for case in &mut cases {
            case.args.splice(0..0, command.split(' ').map(str::to_owned));
        }
        let runs = Runs { command: &command, folder: &path };
        runs.all(&cases, &formats(&command));
        // Errors of flags have no format.
        runs.all(&flag_cases(&command), &[]);
    }
}

impl Runs<'_> {
    /// Runs the cases on all processors: few of them without a format and in each one, many in turn.
    fn all(&self, cases: &[Case], formats: &[String]) {
        each(cases, |index, case| {
            if cases.len() > FEW && !formats.is_empty() {
                return self.run(case, &["--output", &formats[index / 2 % formats.len()]]);
            }
            self.run(case, &[]);
            for format in formats {
                self.run(case, &["--output", format]);
            }
        });
    }

    fn run(&self, case: &Case, format: &[&str]) {
        let words: Vec<_> =
            case.args.iter().map(String::as_str).chain(format.iter().copied()).collect();
        let output = output_of(spawn_in(self.folder, &words), &case.stdin);
        is_clean(text(&output.stderr), &words);
        assert!(output.status.code().is_some(), "{words:?} was ended by a signal");
        let (stdout, format) = (text(&output.stdout), format.get(1).copied().unwrap_or_default());
        match self.command {
            "inject" | "uninject" | "completion" | "man" => {}
            // Lines of a text in YAML stay lines.
            "manifest install" | "manifest guard" | "manifest audit" | "manifest crds"
                if format != "json" =>
            {
                is_printable(stdout, &words);
            }
            "review" => stdout.lines().for_each(|line| is_valid("json", line, &words)),
            _ => is_valid(format, stdout, &words),
        }
    }
}

/// The output formats of a command.
fn formats(command: &str) -> Vec<String> {
    let flags = flags(command).into_iter();
    flags.filter(|flag| flag.name == "--output").flat_map(|flag| flag.choices).collect()
}

/// Each flag with a hostile value, an unknown flag, and an argument.
fn flag_cases(command: &str) -> Vec<Case> {
    let words: Vec<_> = command.split(' ').collect();
    let last = match command {
        // They would serve.
        "serve" | "proxy-injector" => &["--addr=nonsense"][..],
        _ => &[],
    };
    let mut cases = Vec::new();
    for value in [HOSTILE, WHOLE] {
        for flag in flags(command) {
            let flag = format!("{}={value}", flag.name);
            cases.push(case(&[&words[..], &[&flag], last].concat(), ""));
        }
        cases.push(case(&[&words[..], &[&format!("--{value}")]].concat(), ""));
        cases.push(case(&[&words[..], &["--", value]].concat(), ""));
        cases.push(case(&[&words[..], &["--", &format!("pod/{value}")]].concat(), ""));
    }
    cases
}

/// Runs with hostile input.
fn inputs(command: &str, folder: &Path, server: &str) -> Vec<Case> {
    match command {
        // They read no file or only those of their flags.
        "serve" | "proxy-injector" | "version" | "completion" | "man" | "manifest audit"
        | "manifest crds" => Vec::new(),
        "review" => vec![case(&[], reviews()), case(&["--events"], reviews()), istio_review()],
        "inject" | "uninject" => manifests(command, folder),
        "explain" => of_mutants("explain.yaml", &["-", "--all-settings"], folder),
        "audit" => [of_mutants("audit.yaml", &["-"], folder), vec![audit_log(folder)]].concat(),
        "compare" => compared(folder),
        "restart" => restarted(),
        "manifest check" => vec![case(&["-"], documents("---\n", &mutants_of("explain.yaml")))],
        "manifest install" => install(folder),
        "manifest guard" => {
            let args = ["--mesh=templates", "--templates=-"];
            of_templates().into_iter().map(|text| case(&args, text)).collect()
        }
        "template check" => of_templates().into_iter().map(|text| case(&["-"], text)).collect(),
        "template test" => tested(folder),
        "probe" => {
            vec![case(&[server], ""), case(&["--review", "istio", "https://localhost:1"], "")]
        }
        other => panic!("no run of {other} has hostile input: add one"),
    }
}

fn mutants_of(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(example(name)).expect("the example");
    let items = yaml::parse_all(&text).expect("YAML");
    mutants(&json!({"apiVersion": "v1", "kind": "List", "items": items}), [HOSTILE, WHOLE])
}

/// A document on each line, behind a separator.
fn documents(separator: &str, trees: &[Value]) -> String {
    trees.iter().map(|tree| [separator, &tree.to_string(), "\n"].concat()).collect()
}

/// A run for each mutant of an example, and one with a file of a hostile name.
fn of_mutants(name: &str, args: &[&str], folder: &Path) -> Vec<Case> {
    let mut cases: Vec<_> =
        mutants_of(name).into_iter().map(|tree| case(args, tree.to_string())).collect();
    let named = folder.join(format!("{HOSTILE}.yaml").replace('/', ""));
    fs::write(&named, "kind: [").expect("a file");
    cases.push(case(&[folder.to_str().expect("text")], ""));
    cases
}

fn reviews() -> String {
    let review = serde_json::from_str(REVIEW).expect("JSON");
    let text = documents("", &mutants(&review, [HOSTILE, WHOLE]));
    format!("{text}{HOSTILE}\n{{\"{HOSTILE}\n")
}

fn istio_files(folder: &Path) -> Vec<String> {
    let files = [("--injector-config", CONFIG), ("--values", VALUES), ("--mesh-config", MESH)];
    let flags = files.map(|(flag, content)| {
        let path = folder.join(&flag[2..]);
        fs::write(&path, content).expect("a file");
        [flag.to_owned(), path.to_str().expect("text").to_owned()]
    });
    [&["--mesh".to_owned(), "istio".to_owned()][..], &flags.concat()].concat()
}

/// A configuration of Istio that is not valid.
fn istio_review() -> Case {
    let hostile = serde_json::to_string(HOSTILE).expect("JSON");
    case(&["--mesh", "istio", "--values", "/dev/stdin"], format!("{{{hostile}: {hostile}}}"))
}

/// Mutants on stdin, for both meshes, with a report; and values of which each is hostile.
fn manifests(command: &str, folder: &Path) -> Vec<Case> {
    let all = [mutants_of("audit.yaml"), mutants_of("explain.yaml")].concat();
    let key = json!({"kind": "Pod", "metadata": {"name": "a", "annotations": {
        format!("sidecar.istio.io/x{HOSTILE}"): HOSTILE, "sidecar.istio.io/inject": HOSTILE}}});
    let stdin = documents("---\n", &[&all[..], &[key]].concat());
    let args = ["--keep-going", "--verbose", "--report", "/dev/stderr"];
    let mut cases = vec![case(&args, &*stdin), case(&args[..2], &*stdin)];
    if command == "inject" {
        let mut of_istio = case(&args, &*stdin);
        of_istio.args.extend(istio_files(folder));
        cases.push(of_istio);
        let values = yaml::parse(injectd::linkerd::values::DEFAULT_VALUES).expect("YAML");
        let few = mutants(&values, [HOSTILE, WHOLE]).into_iter().step_by(7);
        let manifest = example("pod.json");
        let with = |values: Value| case(&[&manifest, "--values", "/dev/stdin"], values.to_string());
        cases.extend(few.map(with));
    }
    cases
}

fn audit_log(folder: &Path) -> Case {
    let event = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Event", "stage": "ResponseComplete",
        "verb": "create", "responseStatus": {"code": 201},
        "objectRef": {"resource": "pods", "namespace": "shop", "name": "web"},
        "requestReceivedTimestamp": "2026-11-23T10:11:12Z",
        "annotations": {"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "inj"},
    });
    let events = documents("", &mutants(&event, [HOSTILE, WHOLE]));
    let path = folder.join("audit.log");
    fs::write(&path, format!("{events}{{\"{HOSTILE}\n")).expect("a file");
    case(&["--audit-log", path.to_str().expect("text")], "")
}

/// Recorded answers that differ in hostile text, and events of an audit log.
fn compared(folder: &Path) -> Vec<Case> {
    let patch = json!([
        {"op": "add", "path": format!("/metadata/annotations/{WHOLE}"), "value": HOSTILE},
        {"op": "add", "path": format!("/spec/{HOSTILE}"), "value": {WHOLE: HOSTILE}},
    ]);
    let patch = STANDARD.encode(patch.to_string());
    let answers = [
        json!({"uid": "u1", "allowed": false, "status": {"message": WHOLE}}),
        json!({"uid": format!("u1{HOSTILE}"), "allowed": true, "patch": patch}),
        json!({"uid": WHOLE, "allowed": true, "patch": patch, "patchType": HOSTILE}),
    ];
    let answers = documents("", &answers.map(|answer| json!({"response": answer})));
    let file = folder.join("answers");
    fs::write(&file, format!("{answers}{HOSTILE}\n")).expect("a file");
    let file = file.to_str().expect("text");
    let review = |uid: &str| REVIEW.replace("\"u1\"", &json!(uid).to_string()) + "\n";
    let of_answers = review("u1") + &review(&format!("u1{HOSTILE}")) + &review(WHOLE);
    let log = fs::read_to_string(audit_log(folder).args.remove(1)).expect("the log");
    vec![
        case(&["--answers", file], of_answers),
        case(&["--answers", file], reviews()),
        case(&[], log),
    ]
}

fn restarted() -> Vec<Case> {
    let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "a",
        "name": "b", "reason": "c"});
    let list = json!({"workloads": [workload]});
    let kubeconfig = ["--kubeconfig", "/dev/null"];
    let args = [&["-f", "-"][..], &kubeconfig].concat();
    mutants(&list, [HOSTILE, WHOLE]).iter().map(|list| case(&args, list.to_string())).collect()
}

fn install(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, text) in [HOSTILE, WHOLE].into_iter().enumerate() {
        let path = folder.join(format!("values-{index}"));
        let values = json!({"podAnnotations": {text: text}, "image": {"repository": "a", "tag": text}, text: text});
        fs::write(&path, values.to_string()).expect("a file");
        let path = path.to_str().expect("text");
        cases.push(case(&["-n", "a", "--values", path], ""));
        let annotation = format!("podAnnotations.a={}", text.replace([',', '\n'], ""));
        let image = "image.repository=a";
        cases.push(case(&["-n", "a", "--set", image, "--set", &annotation], ""));
    }
    cases
}

/// A template with hostile text at each of its places, of which few are run.
fn of_templates() -> Vec<String> {
    let template =
        fs::read_to_string("tests/cli/template/agent/template.yaml").expect("a template");
    let template = yaml::parse(&template).expect("YAML");
    let all = mutants(&template, [HOSTILE, WHOLE]).into_iter().step_by(5);
    all.map(|tree| tree.to_string()).collect()
}

/// A template that is not in order, and a case with a hostile name, pod and expectation.
fn tested(folder: &Path) -> Vec<Case> {
    let template =
        fs::read_to_string("tests/cli/template/agent/template.yaml").expect("a template");
    let pod = json!({"kind": "Pod", "metadata": {"name": HOSTILE, "annotations": {
        "agent.example.com/inject": "true", "agent.example.com/level": WHOLE, WHOLE: HOSTILE}},
        "spec": {"containers": [{"name": WHOLE, "image": HOSTILE}]}});
    let mut cases = Vec::new();
    for (name, template) in [("case", template), ("broken", of_templates().swap_remove(0))] {
        let of_case = folder.join(name).join("cases").join(HOSTILE.replace('/', ""));
        fs::create_dir_all(&of_case).expect("a folder");
        fs::write(folder.join(name).join("template.yaml"), template).expect("a file");
        fs::write(of_case.join("pod.yaml"), pod.to_string()).expect("a file");
        fs::write(of_case.join("expected.yaml"), json!({WHOLE: HOSTILE}).to_string())
            .expect("a file");
        cases.push(case(&[name], ""));
    }
    cases
}

/// The URL of a server that answers with a hostile text and status 503, until the process ends.
fn answering() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            drop(stream.read(&mut [0; 4096]));
            let text = format!("{WHOLE}{HOSTILE}");
            let head = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length:";
            drop(write!(stream, "{head} {}\r\n\r\n{text}", text.len()));
        }
    });
    url
}
