//! The command line, as a user meets it: the real binary, its output and exit codes.

#![expect(clippy::disallowed_types, reason = "output is looked into as trees")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use injectd::linkerd::values::DEFAULT_VALUES;

use serde_json::{Value, json};

#[path = "cli/compare.rs"]
mod compare;

/// Longer than anything here takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn spawn(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_injectd"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary must start")
}

fn injectd(args: &[&str], stdin: &(impl AsRef<[u8]> + ?Sized)) -> Output {
    let stdin = stdin.as_ref().to_vec();
    let mut child = spawn(args);
    let mut pipe = child.stdin.take().expect("stdin must be piped");
    // A command that refuses its flags does not read; one that answers may wait for its reader.
    let writer = thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().expect("the binary must end");
    writer.join().expect("stdin must be written");
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output must be UTF-8")
}

/// A file of its own; gone with the value.
struct File(tempfile::TempPath);

fn file(name: &str, content: impl AsRef<[u8]>) -> File {
    let file = tempfile::Builder::new().prefix(&format!("injectd-{name}-")).tempfile();
    let mut file = file.expect("the temporary folder must be writable");
    file.write_all(content.as_ref()).expect("a file must take its content");
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
fn the_example_comes_out_injected() {
    let output = injectd(&["inject", &example("deployment.yaml")], "");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let deployment: Value = serde_saphyr::from_slice(&output.stdout).expect("must be YAML");
    let init = &deployment["spec"]["template"]["spec"]["initContainers"];
    assert_eq!(init[0]["name"], "linkerd-init");
    assert_eq!(init[1]["name"], "linkerd-proxy");
    assert_eq!(init[1]["resources"]["requests"]["cpu"], "100m");
    assert!(text(&output.stderr).contains("deployment/web injected"));
}

#[test]
fn manifests_without_pods_come_out_as_they_went_in() {
    let manifests = "kind: List\nitems:\n- {kind: ConfigMap, data: {a: 'yes', b: '0777'}}\n---\n\
                     kind: Pod\nmetadata: {name: p, annotations: {linkerd.io/inject: disabled}}\n";
    let output = injectd(&["inject"], manifests);
    assert_eq!(output.status.code(), Some(0));
    let read = |text: &str| serde_saphyr::from_multiple::<Value>(text).expect("must be YAML");
    assert_eq!(read(text(&output.stdout)), read(manifests));
    assert!(text(&output.stderr).contains("pod/p skipped: pod has the annotation"));
}

#[test]
fn what_cannot_be_injected_is_told_and_the_rest_goes_on() {
    let manifests = "kind: Pod\nmetadata: {name: bad}\nspec: {containers: 7}\n---\n\
                     kind: Pod\nmetadata: {name: good}\nspec: {containers: []}\n---\n\
                     kind: Deployment\nmetadata: {name: hollow}\n";
    let output = injectd(&["inject"], manifests);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("pod/bad refused: the object cannot be understood"), "{told}");
    assert!(told.contains("pod/good injected"), "{told}");
    assert!(told.contains("deployment/hollow refused: there is no pod to patch"), "{told}");
    assert!(text(&output.stdout).contains("linkerd-proxy"));
}

#[test]
fn reviews_are_answered_in_order_and_what_cannot_be_read_has_its_line() {
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
fn errors_of_reviews_name_file_and_line_and_only_a_hundred_have_one() {
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
fn a_review_over_the_limit_of_the_webhook_is_refused_as_there() {
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
fn objects_say_which_namespaces_there_are_and_who_owns_whom() {
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
fn wrong_usage_and_wrong_files_are_told_apart() {
    for (args, code, told) in [
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
        assert!(error.contains(told), "{args:?}: {error}");
    }
    assert_eq!(injectd(&["--help"], "").status.code(), Some(0));
}

#[test]
fn values_that_cannot_be_read_name_file_key_and_what_was_found() {
    let output = injectd(&["review", "--values", &example("deployment.yaml")], "");
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("deployment.yaml: identityTrustDomain: missing"), "{told}");
}

/// The default values of another version, in a file that is gone with it.
fn values_of(version: &str) -> tempfile::NamedTempFile {
    let values = injectd::linkerd::values::DEFAULT_VALUES;
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let text = values.replace("linkerdVersion: edge-26.8.3", &format!("linkerdVersion: {version}"));
    file.write_all(text.as_bytes()).expect("a file must take text");
    file
}

fn path(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().expect("a path must be UTF-8")
}

#[test]
fn commands_warn_of_values_of_an_unknown_release_and_refuse_them_by_flag() {
    let known = values_of("stable-2.14.10");
    let output = injectd(&["review", "--values", path(&known)], REVIEW);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));

    let unknown = values_of("stable-2.99.0");
    for command in ["review", "inject"] {
        let values = ["--values", path(&unknown)];
        let output = injectd(&[&[command], &values[..]].concat(), REVIEW);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        let warning = "warning: unknown Linkerd release: linkerdVersion \"stable-2.99.0\" is newer";
        assert!(told.contains(warning), "{told}");
        let refuse = ["--unknown-release", "refuse"];
        let output = injectd(&[&[command], &values[..], &refuse].concat(), REVIEW);
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""), "{told}");
        assert!(told.contains("linkerdVersion \"stable-2.99.0\""), "{told}");
    }
}

#[test]
fn the_variable_settles_an_unknown_release_and_must_name_a_known_one() {
    let unknown = values_of("my-fork-1");
    let review = |version| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_injectd"));
        command.args(["review", "--unknown-release", "refuse", "--values", path(&unknown)]);
        command.env("INJECTD_LINKERD_VERSION", version).stdin(Stdio::null());
        command.output().expect("the binary must start")
    };
    let settled = review("edge-26.6.3");
    assert_eq!((settled.status.code(), text(&settled.stderr)), (Some(0), ""));
    for version in ["stable-2.99.0", "stable-2.13.0", "my-fork-1"] {
        let refused = review(version);
        assert_eq!(refused.status.code(), Some(64), "{version}");
        let told = text(&refused.stderr);
        assert!(told.contains(&format!("INJECTD_LINKERD_VERSION={version}")), "{told}");
    }
}

/// A certificate that expired on 2021-01-01 and is not a CA.
fn expired_leaf() -> String {
    let mut params = rcgen::CertificateParams::new(vec!["x".to_owned()]).expect("must be a name");
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let key = rcgen::KeyPair::generate().expect("the system must give randomness");
    params.self_signed(&key).expect("a certificate must be made").pem()
}

#[test]
fn trust_roots_of_inject_are_certificates_and_those_of_review_and_compare_any_bytes() {
    let plain = file("text", "hello");
    let output = injectd(&["inject", "--trust-roots", plain.path()], "");
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains(&format!("--trust-roots {}: expected", plain.path())), "{error}");
    let expected = format!("warning: --trust-roots {}: expected certificates", plain.path());
    let output = injectd(&["review", "--trust-roots", plain.path()], REVIEW);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains(r#""verdict":"injected""#));
    assert!(text(&output.stderr).contains(&expected), "{}", text(&output.stderr));
    let output = injectd(&["compare", "--trust-roots", plain.path()], "");
    assert!(text(&output.stderr).contains(&expected), "{}", text(&output.stderr));
}

#[test]
fn trust_roots_that_have_expired_or_are_leaves_get_a_warning() {
    let leaf = file("leaf", expired_leaf());
    for command in ["inject", "review", "compare"] {
        let output = injectd(&[command, "--trust-roots", leaf.path()], "");
        let error = text(&output.stderr);
        let begin = format!("warning: --trust-roots {}: certificate 1 ", leaf.path());
        for problem in ["expired on 2021-01-01", "is not a CA certificate"] {
            let is_it = |line: &str| line.starts_with(&begin) && line.contains(problem);
            assert!(error.lines().any(is_it), "{command}: {error}");
        }
    }
}

/// A review of a pod that is injected, with a uid that is too large for a float to print plainly.
const REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","#,
    r#""namespace":"a","object":{"kind":"Pod","metadata":{"name":"web","annotations":{"#,
    r#""linkerd.io/inject":"enabled","config.linkerd.io/proxy-uid":"1000000"}}}}}"#,
);
