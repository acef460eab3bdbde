//! `injectd compare`: differences, uncertain differences, and exit codes.

use std::{fs::File as Handle, io::Read as _};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::*;

/// Our answer to [`REVIEW`] with some text of its patch replaced.
fn answer_with(from: &str, to: &str) -> String {
    replaced(text(&injectd(&["review"], REVIEW).stdout), from, to)
}

/// An answer with some text of its patch replaced.
fn replaced(answer: &str, from: &str, to: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let mut answer: Value = serde_json::from_str(answer).expect("must be JSON");
    let patch = answer["response"]["patch"].as_str().expect("must be injected");
    let patch = String::from_utf8(STANDARD.decode(patch).expect("base64")).expect("UTF-8");
    assert!(patch.contains(from), "{from}");
    answer["response"]["patch"] = STANDARD.encode(patch.replace(from, to)).into();
    answer.to_string()
}

fn compared_with(name: &str, answer: &str, input: &str) -> Output {
    let answers = file(name, answer);
    injectd(&["compare", "--answers", answers.path()], input)
}

#[test]
fn compare_finds_a_planted_difference_and_prints_its_place() {
    let same = compared_with("same", &answer_with("4143", "4143"), REVIEW);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    assert!(text(&same.stdout).contains("compared 1 review: 1 identical\n"));
    let planted = compared_with("planted", &answer_with("10000ms", "9000ms"), REVIEW);
    assert_eq!(planted.status.code(), Some(3));
    let found = text(&planted.stdout);
    assert!(
        found.contains("DIFFERS: linkerd-proxy/env/LINKERD2_PROXY_INBOUND_ACCEPT_KEEPALIVE/value")
    );
    assert!(found.contains("\"9000ms\"") && found.contains("\"10000ms\""), "{found}");
}

#[test]
fn compare_prints_the_row_of_a_documented_difference() {
    let output = compared_with("meant", &answer_with("\"1000000\"", "\"1e+06\""), REVIEW);
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{found}");
    assert!(
        found.contains("documented difference (scientific-numbers): linkerd-init/args/--proxy-uid")
    );
}

/// An audit event with our answer to [`REVIEW`], as a webhook of this name.
fn event_of(webhook: &str) -> Value {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let answer: Value =
        serde_json::from_slice(&injectd(&["review"], REVIEW).stdout).expect("must be JSON");
    let review: Value = serde_json::from_str(REVIEW).expect("must be JSON");
    let patch = answer["response"]["patch"].as_str().expect("must be injected");
    let patch = STANDARD.decode(patch).expect("base64");
    let mut object = review["request"]["object"].clone();
    object["spec"] = json!({});
    let operations: json_patch::Patch = serde_json::from_slice(&patch).expect("must be a patch");
    json_patch::patch(&mut object, &operations).expect("must apply");
    let patch: Value = serde_json::from_slice(&patch).expect("must be JSON");
    let annotation = json!({"webhook": webhook, "patch": patch}).to_string();
    json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": "u1",
        "stage": "ResponseComplete", "verb": "create", "responseStatus": {"code": 201},
        "objectRef": {"resource": "pods", "namespace": "a"}, "responseObject": object,
        "annotations": {"patch.webhook.admission.k8s.io/round_0_index_0": annotation}})
}

const WEBHOOK: &str = "linkerd-proxy-injector.linkerd.io";

#[test]
fn compare_reads_an_audit_log() {
    let event = event_of(WEBHOOK);
    let other = event.to_string().replace("\"create\"", "\"update\"");
    let output = injectd(&["compare"], &format!("{event}\n{other}\n"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(
        text(&output.stdout)
            .contains("compared 1 review: 1 identical (1 unrelated audit event ignored)\n")
    );
    let output = injectd(&["compare", "--output", "json"], &format!("{event}\n{other}\n"));
    let report: Value = serde_json::from_slice(&output.stdout).expect("must be JSON");
    assert_eq!((&report["compared"], &report["ignored"]), (&json!(1), &json!(1)), "{report}");
    let list = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1",
        "items": [event, event_of("another")]});
    let output = injectd(&["compare"], &list.to_string());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout)
            .contains("compared 1 review: 1 identical (1 unrelated audit event ignored)\n")
    );
}

#[test]
fn compare_needs_the_name_of_the_webhook_in_an_audit_log() {
    let event = event_of("injector.example.com").to_string();
    let unnamed = injectd(&["compare"], &event);
    assert_eq!(unnamed.status.code(), Some(1), "{}", text(&unnamed.stdout));
    let found = text(&unnamed.stderr);
    assert!(found.contains(&format!("no call of {WEBHOOK}")), "{found}");
    assert!(found.contains("--webhook") && found.contains("injector.example.com"), "{found}");
    let named = injectd(&["compare", "--webhook", "injector.example.com"], &event);
    assert_eq!(named.status.code(), Some(0), "{}", text(&named.stderr));
    assert!(text(&named.stdout).contains("compared 1 review: 1 identical\n"));
    let mut uncalled = event_of(WEBHOOK);
    uncalled["annotations"] = Value::Null;
    let uncalled = injectd(&["compare"], &uncalled.to_string());
    assert_eq!(uncalled.status.code(), Some(1));
    assert!(text(&uncalled.stderr).contains("RequestResponse"), "{}", text(&uncalled.stderr));
}

#[test]
fn compare_counts_objects_that_were_admitted_while_the_webhook_failed() {
    let mut event = event_of(WEBHOOK);
    event["annotations"] =
        json!({"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": WEBHOOK});
    let output = injectd(&["compare"], &event.to_string());
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{found}");
    assert!(found.starts_with("compared 0 reviews: 0 identical\n"), "{found}");
    assert!(found.contains("1 object admitted without an answer"), "{found}");
    assert!(text(&output.stderr).contains("error: nothing was compared: "));
}

#[test]
fn compare_finds_recorded_answers_by_the_id_of_an_audit_event() {
    let output =
        compared_with("audited", &answer_with("10000ms", "9000ms"), &event_of(WEBHOOK).to_string());
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(
        found.contains("compared 1 review: 0 identical\n") && found.contains("9000ms"),
        "{found}"
    );
}

/// A review of a pod that a `ReplicaSet` owns.
fn owned_review(uid: &str, hash: &str, annotations: &Value) -> String {
    let object = json!({"kind": "Pod", "metadata": {"name": "web", "annotations": annotations,
        "labels": {"pod-template-hash": hash},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5f4"}]}});
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {"uid": uid, "namespace": "a", "object": object}})
    .to_string()
}

const NAMESPACE: &str = "kind: Namespace\nmetadata: {name: a}\n";

const ENABLED: &str =
    "kind: Namespace\nmetadata: {name: a, annotations: {linkerd.io/inject: enabled}}\n";

/// Compares the answers of `review` with two different sets of objects.
fn compared_on(theirs: &str, ours: &str, reviews: &str) -> Output {
    let (theirs, ours) = (file("theirs", theirs), file("ours", ours));
    let answers = injectd(&["review", "--objects", theirs.path()], reviews);
    assert_eq!(answers.status.code(), Some(0), "{}", text(&answers.stderr));
    let answers = file("answers", &answers.stdout);
    injectd(&["compare", "--answers", answers.path(), "--objects", ours.path()], reviews)
}

#[test]
fn compare_derives_an_owner_that_is_missing_in_the_objects() {
    let owned = "---\nkind: ReplicaSet\nmetadata: {name: web-5f4, namespace: a, \
                 ownerReferences: [{kind: Deployment, name: web}]}\n";
    let enabled = json!({"linkerd.io/inject": "enabled"});
    let derived = owned_review("u1", "5f4", &enabled);
    let output = compared_on(&format!("{NAMESPACE}{owned}"), NAMESPACE, &derived);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let underivable = owned_review("u1", "other", &enabled);
    let output = compared_on(&format!("{NAMESPACE}{owned}"), NAMESPACE, &underivable);
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{found}");
    assert!(found.contains("may come from objects missing in --objects: "), "{found}");
    assert!(found.contains("  missing ReplicaSet a/web-5f4\n"), "{found}");
    let error = text(&output.stderr);
    assert!(error.contains("that may come from objects missing in --objects"), "{error}");
}

#[test]
fn a_missing_namespace_is_neither_a_finding_nor_success() {
    let output = compared_on(NAMESPACE, "kind: Namespace\nmetadata: {name: b}\n", REVIEW);
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{found}");
    assert!(found.contains("objects missing in --objects: answer, in 1 review\n"), "{found}");
    assert!(found.contains("  missing Namespace a\n"), "{found}");
    let error = text(&output.stderr);
    assert!(error.starts_with("error: 1 difference that may come from objects missing"), "{error}");
}

/// Compares the answers of `review` with and without objects.
fn compared_without_objects(theirs: &str, review: &str, from: &str, to: &str) -> Output {
    let objects = file("theirs", theirs);
    let answer = injectd(&["review", "--objects", objects.path()], review);
    assert_eq!(answer.status.code(), Some(0), "{}", text(&answer.stderr));
    let answers = file("answers", replaced(text(&answer.stdout), from, to));
    injectd(&["compare", "--answers", answers.path()], review)
}

#[test]
fn without_objects_every_namespace_and_owner_is_missing() {
    let job = "---\nkind: Job\nmetadata: {name: web-5f4, namespace: a, \
               ownerReferences: [{kind: CronJob, name: web}]}\n";
    let of_job =
        |annotations| owned_review("u1", "5f4", &annotations).replace("\"ReplicaSet\"", "\"Job\"");
    let plain = REVIEW.replace(r#""linkerd.io/inject":"enabled","#, "");
    let logging = ENABLED.replace("enabled", "enabled, config.linkerd.io/proxy-log-level: debug");
    let enabled = of_job(json!({"linkerd.io/inject": "enabled"}));
    for (theirs, review, missing) in [
        (ENABLED.to_owned(), plain, "  missing Namespace a\n"),
        (logging, REVIEW.to_owned(), "  missing Namespace a\n"),
        (format!("{NAMESPACE}{job}"), enabled, "  missing Job a/web-5f4\n"),
    ] {
        let output = compared_without_objects(&theirs, &review, "4143", "4143");
        let found = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{found}");
        assert!(found.contains("may come from objects missing in --objects: "), "{found}");
        assert!(found.contains(missing), "{found}");
        let error = text(&output.stderr);
        assert!(error.contains("missing in --objects: add the namespaces and owners"), "{error}");
    }
}

#[test]
fn a_difference_that_no_missing_object_explains_is_a_finding() {
    let output = compared_without_objects(NAMESPACE, REVIEW, "linkerd/proxy:", "linkerd/other:");
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{found}");
    assert!(found.contains("\nDIFFERS: linkerd-proxy/image, in 1 review\n"), "{found}");
    assert!(!found.contains("missing"), "{found}");
}

#[test]
fn a_finding_decides_the_exit_code_beside_missing_objects() {
    let plain = REVIEW.replace(r#""linkerd.io/inject":"enabled","#, "");
    let elsewhere = plain.replace("u1", "u2").replace(r#""namespace":"a""#, r#""namespace":"b""#);
    let theirs = format!("{ENABLED}---\n{}", ENABLED.replace("name: a", "name: b"));
    let output = compared_on(&theirs, NAMESPACE, &format!("{plain}\n{elsewhere}"));
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{found}");
    assert!(found.contains("\nDIFFERS: ") && found.contains("  missing Namespace b\n"), "{found}");
    let error = text(&output.stderr);
    assert!(error.starts_with("error: 1 difference not documented"), "{error}");
    assert!(error.contains("; 1 difference that may come from"), "{error}");
}

#[test]
fn the_reason_of_a_skip_is_shown() {
    let plain = REVIEW.replace(r#""linkerd.io/inject":"enabled","#, "");
    for (theirs, ours) in [(ENABLED, NAMESPACE), (NAMESPACE, ENABLED)] {
        let output = compared_on(theirs, ours, &plain);
        let found = text(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{found}");
        let (line, reason) = if ours == NAMESPACE {
            ("  ours    nothing (", "neither the namespace nor the pod have the annotation")
        } else {
            ("  theirs  nothing (", "injection_enable_annotation_absent")
        };
        let is_expected = |found: &str| found.starts_with(line) && found.contains(reason);
        assert!(found.lines().any(is_expected), "{found}");
        assert!(
            text(&output.stderr).contains("1 difference not documented in docs/differences.md")
        );
    }
}

#[test]
fn compare_never_succeeds_when_it_compared_nothing() {
    for input in ["", "\n"] {
        let output = injectd(&["compare"], input);
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(error.starts_with("error: nothing was compared: "), "{error}");
        assert!(error.contains("--answers") && error.contains("audit log"), "{error}");
    }
}

fn gzip(content: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(content.as_bytes()).expect("writing to memory must succeed");
    gzip.finish().expect("writing to memory must succeed")
}

fn zstd(content: &str) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    compress_to_vec(content.as_bytes(), CompressionLevel::Fastest)
}

#[test]
fn compressed_audit_logs_are_read_from_files_and_stdin() {
    let log = format!("{}\n", event_of(WEBHOOK));
    let files = [file("gzip", gzip(&log)), file("zstd", zstd(&log))];
    let output = injectd(&["compare", files[0].path(), files[1].path(), "-"], &gzip(&log));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("compared 3 reviews: 3 identical\n"));
    let output = injectd(&["review"], &gzip(REVIEW));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn binary_data_is_one_error_and_other_files_are_compared() {
    let binary: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let binary = file("binary", binary);
    let output = injectd(&["compare", binary.path(), "-"], &event_of(WEBHOOK).to_string());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("compared 1 review: 1 identical\n"));
    let error = text(&output.stderr);
    let expected = format!(
        "{}: cannot read: binary data; expected JSON, plain or compressed with gzip or zstd\n\
         error: 1 document could not be compared\n",
        binary.path()
    );
    assert_eq!(error, expected);
}

#[test]
fn errors_of_the_first_hundred_documents_are_printed() {
    let output = injectd(&["compare"], &format!("{}{}", event_of(WEBHOOK), "\nwhat".repeat(1000)));
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert_eq!(error.lines().count(), 101, "{error}");
    assert!(error.starts_with("stdin:2: not JSON: "), "{error}");
    let last = "error: 1000 documents could not be compared (only the first 100 are listed)\n";
    assert!(error.ends_with(last), "{error}");
    let answers = file("answers", "what\n".repeat(1000));
    let output = injectd(&["compare", "--answers", answers.path()], REVIEW);
    let error = text(&output.stderr);
    assert!(error.contains("1000 documents could not be used (only the first 100"), "{error}");
    assert!(error.contains("contains no answer for uid u1"), "{error}");
}

#[test]
fn a_ca_without_a_server_is_wrong_usage() {
    let answers = file("answers", "");
    for args in [&["--answers", answers.path()][..], &[]] {
        let output = injectd(&[&["compare", "--ca", "/no/such/file"], args].concat(), "");
        assert_eq!(output.status.code(), Some(64));
        assert!(text(&output.stderr).contains("--ca requires --url"), "{}", text(&output.stderr));
    }
}

/// The stderr of a command, with stderr as a terminal.
fn on_terminal(args: &[&str]) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal must open");
    grantpt(&controller).expect("a terminal must be granted");
    unlockpt(&controller).expect("a terminal must be unlocked");
    let name = ptsname(&controller, Vec::new()).expect("must have a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name, flags, Mode::empty()).expect("must open");
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("must have a size");
    let mut command = command(args);
    command.env("TERM", "xterm").stderr(Handle::from(terminal)).stdout(Stdio::null());
    let mut child = command.spawn().expect("the binary must start");
    // The command keeps a handle to the terminal, which must be closed here.
    drop(command);
    let mut shown = Vec::new();
    // Reading from a closed terminal is an error, not the end of the stream.
    drop(Handle::from(controller).read_to_end(&mut shown));
    assert!(child.wait().expect("must end").success());
    String::from_utf8_lossy(&shown).into_owned()
}

#[test]
fn progress_is_shown_on_a_terminal_only() {
    let log = file("log", format!("{}\n", event_of(WEBHOOK)).repeat(200));
    let args = ["compare", log.path()];
    let shown = on_terminal(&args);
    assert!(shown.contains(" documents"), "{shown:?}");
    let output = injectd(&args, "");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

/// The reply of a server to each request.
#[derive(Clone)]
pub(super) enum Reply {
    Send(String),
    BreakOff,
}

fn http(status: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Send(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

/// Starts a TLS server with the same reply to every request. Returns its URL.
pub(super) fn server(reply: Reply) -> String {
    use rustls::{ServerConfig, pki_types::PrivateKeyDer};
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("must be a key");
    let provider = rustls::crypto::aws_lc_rs::default_provider().into();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider must support TLS")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the certificate must match the key");
    let config = std::sync::Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback must be usable");
    let url = format!("https://{}/", listener.local_addr().expect("must be bound"));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = rustls::ServerConnection::new(config.clone()).expect("must start");
            // Clients may close the connection early.
            drop(answer(rustls::StreamOwned::new(connection, stream), &reply));
        }
    });
    url
}

/// Reads one request and replies.
fn answer(stream: impl std::io::Read + std::io::Write, reply: &Reply) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 0 && line != "\r\n" {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    match reply {
        Reply::Send(text) => {
            reader.get_mut().write_all(text.as_bytes())?;
            reader.get_mut().flush()
        }
        Reply::BreakOff => Ok(()),
    }
}

#[test]
fn an_answer_that_is_not_an_injectors_is_not_compared() {
    for (reply, expected) in [
        (http("404 Not Found", "no such page"), "HTTP status 404 Not Found; expected 200"),
        (http("500 Internal Server Error", ""), "HTTP status 500 "),
        (http("200 OK", "hello"), "HTTP status 200, but the answer is not an AdmissionReview"),
        (Reply::Send("SSH-2.0-OpenSSH\r\n\r\n".to_owned()), "is not valid HTTP/1.1"),
    ] {
        let output = injectd(&["compare", "--url", &server(reply)], REVIEW);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with("stdin:1: --url: ") && error.contains(expected), "{error}");
        assert!(error.contains("nothing was compared"), "{error}");
        assert!(text(&output.stdout).starts_with("compared 0 reviews: 0 identical\n"));
    }
    let output = compared_with("unread", r#"{"response":{"uid":"u1"}}"#, REVIEW);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--answers, uid u1: the answer is not an Admission"));
}

#[test]
fn a_connection_that_closes_early_is_a_panic_unless_neither_side_answers() {
    let url = server(Reply::BreakOff);
    let output = injectd(&["compare", "--url", &url], REVIEW);
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{found}{}", text(&output.stderr));
    assert!(found.contains("documented difference (panic): answer, in 1 review\n"), "{found}");
    let output = injectd(&["compare", "--url", &url], r#"{"request":7}"#);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("stdin:1: neither injector answered: "), "{error}");
    assert!(text(&output.stdout).starts_with("compared 0 reviews: 0 identical\n"));
}
