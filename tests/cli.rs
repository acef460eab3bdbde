//! The command line, as a user meets it: the real binary, its output and exit codes.

#![expect(clippy::disallowed_types, reason = "output is looked into as trees")]

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

fn injectd(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_injectd"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary must start");
    let mut pipe = child.stdin.take().expect("stdin must be piped");
    // A command that refuses its flags does not read.
    drop(pipe.write_all(stdin.as_bytes()));
    drop(pipe);
    child.wait_with_output().expect("the binary must end")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output must be UTF-8")
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
    assert_eq!(answers[1]["line"], 2);
    assert!(answers[1]["error"].is_string());
    assert_eq!(answers[2]["response"]["uid"], "two");
}

#[test]
fn objects_say_which_namespaces_there_are_and_who_owns_whom() {
    let objects = std::env::temp_dir().join(format!("injectd-objects-{}.yaml", std::process::id()));
    std::fs::write(
        &objects,
        "kind: Namespace\nmetadata: {name: shop, annotations: {linkerd.io/inject: enabled}}\n---\n\
         kind: ReplicaSet\nmetadata: {name: web-1, namespace: shop, ownerReferences: \
         [{kind: Deployment, name: web}]}\n---\n\
         kind: Deployment\nmetadata: {name: web, namespace: shop}\n",
    )
    .expect("the temporary folder must be writable");
    let review = |namespace: &str| {
        format!(
            r#"{{"request":{{"uid":"u","namespace":"{namespace}","object":{{"kind":"Pod","metadata":
            {{"ownerReferences":[{{"kind":"ReplicaSet","name":"web-1"}}]}}}}}}}}"#
        )
    };
    let path = objects.to_str().expect("must be UTF-8");
    let known = injectd(&["review", "--objects", path], &review("shop"));
    let unknown = injectd(&["review", "--objects", path], &review("elsewhere"));
    let events = injectd(&["review", "--events", "--objects", path], &review("shop"));
    std::fs::remove_file(&objects).expect("must be there");
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

/// A review of a pod that is injected, with a uid that is too large for a float to print plainly.
const REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","#,
    r#""namespace":"a","object":{"kind":"Pod","metadata":{"name":"web","annotations":{"#,
    r#""linkerd.io/inject":"enabled","config.linkerd.io/proxy-uid":"1000000"}}}}}"#,
);

/// Our answer to [`REVIEW`] with some text of its patch replaced.
fn answer_with(from: &str, to: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let answer = injectd(&["review"], REVIEW);
    let mut answer: Value = serde_json::from_slice(&answer.stdout).expect("must be JSON");
    let patch = answer["response"]["patch"].as_str().expect("must be injected");
    let patch = String::from_utf8(STANDARD.decode(patch).expect("base64")).expect("UTF-8");
    assert!(patch.contains(from), "{from}");
    answer["response"]["patch"] = STANDARD.encode(patch.replace(from, to)).into();
    answer.to_string()
}

fn compared_with(name: &str, answer: &str, input: &str) -> Output {
    let file = format!("injectd-{name}-{}.json", std::process::id());
    let file = std::env::temp_dir().join(file);
    std::fs::write(&file, answer).expect("the temporary folder must be writable");
    let path = file.to_str().expect("must be UTF-8");
    let output = injectd(&["compare", "--answers", path], input);
    std::fs::remove_file(&file).expect("must be there");
    output
}

#[test]
fn compare_finds_a_planted_difference_and_names_its_place() {
    let same = compared_with("same", &answer_with("4143", "4143"), REVIEW);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    assert!(text(&same.stdout).contains("1 reviews compared, 1 the same"));
    let planted = compared_with("planted", &answer_with("10000ms", "9000ms"), REVIEW);
    assert_eq!(planted.status.code(), Some(3));
    let told = text(&planted.stdout);
    assert!(
        told.contains("DIFFERS: linkerd-proxy/env/LINKERD2_PROXY_INBOUND_ACCEPT_KEEPALIVE/value")
    );
    assert!(told.contains("\"9000ms\"") && told.contains("\"10000ms\""), "{told}");
}

#[test]
fn compare_names_the_row_of_a_difference_that_is_meant() {
    let output = compared_with("meant", &answer_with("\"1000000\"", "\"1e+06\""), REVIEW);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("differs as meant (scientific-numbers): linkerd-init/args/--proxy-uid"));
}

/// The event of an audit log after our answer to [`REVIEW`], by a webhook of this name.
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
    assert!(text(&output.stdout).contains("1 reviews compared, 1 the same, 1 passed over"));
    let list = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1",
        "items": [event, event_of("another")]});
    let output = injectd(&["compare"], &list.to_string());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("1 reviews compared, 1 the same, 1 passed over"));
}

#[test]
fn compare_needs_the_name_of_the_webhook_in_an_audit_log() {
    let event = event_of("injector.example.com").to_string();
    let unnamed = injectd(&["compare"], &event);
    assert_eq!(unnamed.status.code(), Some(1), "{}", text(&unnamed.stdout));
    let told = text(&unnamed.stderr);
    assert!(told.contains(&format!("no call of {WEBHOOK}")), "{told}");
    assert!(told.contains("--webhook") && told.contains("injector.example.com"), "{told}");
    let named = injectd(&["compare", "--webhook", "injector.example.com"], &event);
    assert_eq!(named.status.code(), Some(0), "{}", text(&named.stderr));
    assert!(text(&named.stdout).contains("1 reviews compared, 1 the same, 0 passed over"));
    let mut uncalled = event_of(WEBHOOK);
    uncalled["annotations"] = Value::Null;
    let uncalled = injectd(&["compare"], &uncalled.to_string());
    assert_eq!(uncalled.status.code(), Some(1));
    assert!(text(&uncalled.stderr).contains("RequestResponse"), "{}", text(&uncalled.stderr));
}

#[test]
fn compare_counts_what_was_let_in_while_the_webhook_failed() {
    let mut event = event_of(WEBHOOK);
    event["annotations"] =
        json!({"failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": WEBHOOK});
    let output = injectd(&["compare"], &event.to_string());
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("0 reviews compared, 0 the same, 0 passed over"), "{told}");
    assert!(told.contains("1 objects let in while the webhook failed"), "{told}");
}

#[test]
fn compare_finds_recorded_answers_by_the_id_of_an_audit_event() {
    let output =
        compared_with("audited", &answer_with("10000ms", "9000ms"), &event_of(WEBHOOK).to_string());
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(told.contains("1 reviews compared, 0 the same") && told.contains("9000ms"), "{told}");
}
