//! The command line: output and exit codes of the real binary.

#![expect(clippy::disallowed_types, reason = "tests parse output as trees")]

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
};

use injectd::linkerd::values::DEFAULT_VALUES;
use injectd_harness::expect::DEADLINE as PATIENCE;
use serde_json::{Value, json};

mod audit;
mod checked;
mod commands;
mod compare;
mod conditions;
mod endless;
mod exits;
mod explain;
mod hostile;
mod inject;
mod install;
mod istio;
mod judged;
mod manifest;
mod pages;
mod probe;
mod round_trip;
mod sidecars;
mod tainted;
mod template;
mod uninject;

const BINARY: &str = env!("CARGO_BIN_EXE_injectd");

fn spawn(args: &[&str]) -> Child {
    spawn_in(Path::new("."), args)
}

fn spawn_in(folder: &Path, args: &[&str]) -> Child {
    started(command(args).current_dir(folder))
}

/// A command of the binary with an empty input.
fn command(args: &[impl AsRef<OsStr>]) -> Command {
    let mut command = of_no_cluster(Command::new(BINARY));
    command.args(args).stdin(Stdio::null());
    command
}

/// No test asks a cluster of its user.
fn of_no_cluster(mut command: Command) -> Command {
    command.env("KUBECONFIG", "/nonexistent/kubeconfig");
    command
}

/// Starts a command whose input and output are pipes.
fn started(command: &mut Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary must start")
}

fn injectd(args: &[&str], stdin: &(impl AsRef<[u8]> + ?Sized)) -> Output {
    output_of(spawn(args), stdin)
}

fn output_of(mut child: Child, stdin: &(impl AsRef<[u8]> + ?Sized)) -> Output {
    let stdin = stdin.as_ref().to_vec();
    let mut pipe = child.stdin.take().expect("stdin must be piped");
    // A thread, because a command that rejects its flags does not read, and one that answers may
    // wait for its output to be read.
    let writer = thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().expect("the binary must end");
    writer.join().expect("stdin must be written");
    output
}

/// Whether expected output is written anew: with `BLESS=1`.
fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output must be UTF-8")
}

/// A temporary file, removed on drop.
struct File(tempfile::TempPath);

fn file(name: &str, content: impl AsRef<[u8]>) -> File {
    let file = tempfile::Builder::new().prefix(&format!("injectd-{name}-")).tempfile();
    let mut file = file.expect("the temporary folder must be writable");
    file.write_all(content.as_ref()).expect("the file must be written");
    File(file.into_temp_path())
}

impl File {
    fn path(&self) -> &str {
        self.0.to_str().expect("a path must be UTF-8")
    }
}

fn example(name: &str) -> String {
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn reviews_are_answered_in_order_and_errors_name_the_line() {
    let review = |uid: &str| {
        format!(r#"{{"request":{{"uid":"{uid}","namespace":"a","object":{{"kind":"Pod"}}}}}}"#)
    };
    let stream = format!("{}\nnot a review\n\n{}\n", review("one"), review("two"));
    let output = injectd(&["review"], &stream);
    assert_eq!(output.status.code(), Some(1));
    let answers: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line must be JSON"))
        .collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["response"]["uid"], "one");
    assert_eq!(answers[0]["response"]["auditAnnotations"]["verdict"], "skipped");
    assert_eq!((&answers[1]["file"], &answers[1]["line"]), (&json!("stdin"), &json!(2)));
    assert!(answers[1]["error"].is_string());
    assert_eq!(answers[2]["response"]["uid"], "two");
}

#[test]
fn a_review_is_answered_while_the_input_is_open() {
    let mut child = spawn(&["review"]);
    let mut stdin = child.stdin.take().expect("stdin must be piped");
    let stdout = BufReader::new(child.stdout.take().expect("stdout must be piped"));
    let (sender, answers) = mpsc::channel();
    thread::spawn(move || stdout.lines().try_for_each(|line| sender.send(line)));
    for (uid, end) in [("one", "\n"), ("two", "")] {
        let review = REVIEW.replace("u1", uid);
        stdin.write_all(format!("{review}{end}").as_bytes()).expect("must be read");
        let answer = answers.recv_timeout(PATIENCE).expect("must be answered");
        let answer = answer.expect("stdout must be read");
        let answer: Value = serde_json::from_str(&answer).expect("must be JSON");
        assert_eq!(answer["response"]["uid"], uid);
    }
    drop(stdin);
    assert!(child.wait().expect("must end").success());
}

#[test]
fn errors_of_reviews_name_file_and_line_and_only_a_hundred_are_printed() {
    let reviews = file("reviews", format!("{REVIEW}\n{}", "{\n".repeat(20_000)));
    let output = injectd(&["review", reviews.path()], "");
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line must be JSON"))
        .collect();
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[0]["response"]["uid"], "u1");
    assert_eq!((&lines[1]["file"], &lines[1]["line"]), (&json!(reviews.path()), &json!(2)));
    let last = text(&output.stderr).lines().last().expect("must end with an error").to_owned();
    assert_eq!(last, "error: 20000 reviews could not be read (only the first 100 are listed)");
}

#[test]
fn a_review_over_the_limit_of_the_webhook_is_rejected_with_its_message() {
    let (begin, end) = REVIEW.split_at(REVIEW.len() - 1);
    let large = format!("{begin},\"x\":\"{}\"{end}\n{REVIEW}", "x".repeat(10 << 20));
    let output = injectd(&["review"], &large);
    assert_eq!(output.status.code(), Some(1));
    let (error, answer) = text(&output.stdout).split_once('\n').expect("must have two lines");
    let error: Value = serde_json::from_str(error).expect("must be JSON");
    assert_eq!(error["error"], "the body is larger than 10485760 bytes");
    assert!(answer.contains(r#""uid":"u1""#), "{answer}");
    assert!(text(&output.stderr).contains("1 review could not be read"));
}

#[test]
fn files_of_the_command_line_may_be_pipes() {
    let output =
        injectd(&["inject", "--values", "/dev/stdin", &example("deployment.yaml")], DEFAULT_VALUES);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = injectd(&["review", "/dev/stdin"], REVIEW);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn objects_define_the_namespaces_and_owners_that_exist() {
    let objects = file(
        "objects",
        "kind: Namespace\nmetadata: {name: shop, annotations: {linkerd.io/inject: enabled}}\n---\n\
         kind: ReplicaSet\nmetadata: {name: web-1, namespace: shop, ownerReferences: \
         [{kind: Deployment, name: web}]}\n---\n\
         kind: Deployment\nmetadata: {name: web, namespace: shop}\n",
    );
    let review = |namespace: &str| {
        format!(
            r#"{{"request":{{"uid":"u","namespace":"{namespace}","object":{{"kind":"Pod","metadata":
            {{"ownerReferences":[{{"kind":"ReplicaSet","name":"web-1"}}]}}}}}}}}"#
        )
    };
    let path = objects.path();
    let known = injectd(&["review", "--objects", path], &review("shop"));
    let unknown = injectd(&["review", "--objects", path], &review("elsewhere"));
    let events = injectd(&["review", "--events", "--objects", path], &review("shop"));
    assert!(text(&known.stdout).contains(r#""verdict":"injected""#));
    assert!(text(&unknown.stdout).contains(r#"namespaces \"elsewhere\" not found"#));
    let events: Value = serde_json::from_slice(&events.stdout).expect("must be JSON");
    assert_eq!(events["event"]["reason"], "Injected");
    assert_eq!(events["event"]["involvedObject"]["name"], "web");
    assert_eq!(events["review"]["response"]["uid"], "u");
}

#[test]
fn wrong_usage_and_wrong_files_have_different_exit_codes() {
    for (args, code, message) in [
        (&["nonsense"][..], 64, "nonsense"),
        (&["review", "--nonsense"], 64, "--nonsense"),
        (&["serve"], 64, "--standalone"),
        (&["serve", "--standalone", "--tls-cert", "x"], 64, "--tls-key"),
        (&["review", "--values", "/nowhere"], 1, "/nowhere"),
        (&["inject", "/nowhere"], 1, "/nowhere"),
        (&["serve", "--standalone", "--addr", "nonsense"], 64, "--addr nonsense"),
    ] {
        let output = injectd(args, "");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(message), "{args:?}: {error}");
    }
    assert_eq!(injectd(&["--help"], "").status.code(), Some(0));
}

#[test]
fn the_error_for_invalid_values_names_file_and_key() {
    let output = injectd(&["review", "--values", &example("deployment.yaml")], "");
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("deployment.yaml: identityTrustDomain: missing"), "{stderr}");
}

/// A temporary file with the default values and another version.
fn values_of(version: &str) -> tempfile::NamedTempFile {
    let values = injectd::linkerd::values::DEFAULT_VALUES;
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let text = values.replace("linkerdVersion: edge-26.8.3", &format!("linkerdVersion: {version}"));
    file.write_all(text.as_bytes()).expect("the file must be written");
    file
}

fn path(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().expect("a path must be UTF-8")
}

#[test]
fn commands_warn_about_values_of_an_unknown_release_or_refuse_them_by_flag() {
    let known = values_of("stable-2.14.10");
    let output = injectd(&["review", "--values", path(&known)], REVIEW);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));

    let unknown = values_of("stable-2.99.0");
    for command in ["review", "inject"] {
        let values = ["--values", path(&unknown)];
        let output = injectd(&[&[command], &values[..]].concat(), REVIEW);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let warning = "warning: unknown Linkerd release: linkerdVersion \"stable-2.99.0\" is newer";
        assert!(stderr.contains(warning), "{stderr}");
        let reject = ["--unknown-release", "reject"];
        let output = injectd(&[&[command], &values[..], &reject].concat(), REVIEW);
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""), "{stderr}");
        assert!(stderr.contains("linkerdVersion \"stable-2.99.0\""), "{stderr}");
    }
}

#[test]
fn the_variable_replaces_an_unknown_release_and_must_name_a_known_one() {
    let unknown = values_of("my-fork-1");
    let review = |version| {
        let args = ["review", "--unknown-release", "reject", "--values", path(&unknown)];
        let output = command(&args).env("INJECTD_LINKERD_VERSION", version).output();
        output.expect("the binary must start")
    };
    let settled = review("edge-26.6.3");
    assert_eq!((settled.status.code(), text(&settled.stderr)), (Some(0), ""));
    for version in ["stable-2.99.0", "stable-2.13.0", "my-fork-1"] {
        let refused = review(version);
        assert_eq!(refused.status.code(), Some(64), "{version}");
        let stderr = text(&refused.stderr);
        assert!(stderr.contains(&format!("INJECTD_LINKERD_VERSION={version}")), "{stderr}");
    }
}

/// A certificate that expired on 2021-01-01 and is not a CA.
fn expired_leaf() -> String {
    let mut params = rcgen::CertificateParams::new(vec!["x".to_owned()]).expect("must be a name");
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let key = rcgen::KeyPair::generate().expect("the system must provide randomness");
    params.self_signed(&key).expect("a certificate must be made").pem()
}

#[test]
fn inject_requires_certificates_as_trust_roots_and_review_and_compare_accept_any_bytes() {
    let plain = file("text", "hello");
    let output = injectd(&["inject", "--trust-roots", plain.path()], "");
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains(&format!("--trust-roots {}: expected", plain.path())), "{error}");
    let expected = format!("warning: --trust-roots {}: expected PEM certificates", plain.path());
    let output = injectd(&["review", "--trust-roots", plain.path()], REVIEW);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains(r#""verdict":"injected""#));
    assert!(text(&output.stderr).contains(&expected), "{}", text(&output.stderr));
    let output = injectd(&["compare", "--trust-roots", plain.path()], "");
    assert!(text(&output.stderr).contains(&expected), "{}", text(&output.stderr));
}

#[test]
fn expired_and_leaf_trust_roots_cause_a_warning() {
    let leaf = file("leaf", expired_leaf());
    for command in ["inject", "review", "compare"] {
        let output = injectd(&[command, "--trust-roots", leaf.path()], "");
        let error = text(&output.stderr);
        let begin = format!("warning: --trust-roots {}: certificate 1 ", leaf.path());
        for problem in ["expired on 2021-01-01", "is not a CA certificate"] {
            let is_expected = |line: &str| line.starts_with(&begin) && line.contains(problem);
            assert!(error.lines().any(is_expected), "{command}: {error}");
        }
    }
}

/// A review of a pod that is injected, with a uid that a float prints in scientific notation.
const REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","#,
    r#""namespace":"a","object":{"kind":"Pod","metadata":{"name":"web","annotations":{"#,
    r#""linkerd.io/inject":"enabled","config.linkerd.io/proxy-uid":"1000000"}}}}}"#,
);

#[test]
fn completion_and_man_pages_name_every_command() {
    let script = injectd(&["completion", "bash"], "");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("the path must be text");
    assert!(injectd(&["man", path], "").status.success());
    for command in commands::commands() {
        let first = command.split(' ').next().unwrap_or_default();
        assert!(text(&script.stdout).contains(&format!(",{first})")), "{command}");
        let page = folder.path().join(format!("injectd-{}.1", command.replace(' ', "-")));
        let page = std::fs::read_to_string(page).expect("a man page");
        for section in ["SYNOPSIS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{command} {section}");
        }
    }
    let missing = injectd(&["man", "/no/such/folder"], "");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("/no/such/folder"));
}

#[test]
fn the_long_version_has_the_releases_of_both_meshes() {
    let version = injectd(&["--version"], "");
    let version = text(&version.stdout);
    assert!(version.starts_with(concat!("injectd ", env!("CARGO_PKG_VERSION"))), "{version}");
    assert!(version.contains("linkerd stable-2.14 to edge-"), "{version}");
    assert!(version.ends_with("\nistio 1.19 to 1.31\n"), "{version}");
}
