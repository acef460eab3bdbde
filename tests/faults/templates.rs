//! `serve --mesh templates`: probes, metrics, changed and invalid files.

use injectd_testkit::templates::TEMPLATE;

use super::{
    client::{Answer, Connection},
    files::Folder,
    process::{Process, injectd, run, until},
};

const OFTEN: [&str; 2] = ["--reload-interval", "20ms"];
const REFUSED_NOW: &str = r#"injectd_reload_rejected{what="templates"}"#;
/// A review of a pod that asks for both templates.
const REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5","#,
    r#""kind":{"version":"v1","kind":"Pod"},"namespace":"shop","object":{"metadata":{"name":"web","#,
    r#""annotations":{"agent.example.com/inject":"true","other.example.com/inject":"true"}},"#,
    r#""spec":{"containers":[{"name":"web","image":"web"}]}}}}"#,
);

/// The template with another image.
fn with_image(image: &str) -> String {
    TEMPLATE.replace("agent:1.0", image)
}

/// Another template, whose container has this name.
fn other(name: &str) -> String {
    TEMPLATE
        .replace("{name: agent}", "{name: other}")
        .replace("key: agent.", "key: other.")
        .replace("{name: agent,", &format!("{{name: {name},"))
}

async fn serve(folder: &Folder, mesh: &str) -> Process {
    folder.write("agent.yaml", TEMPLATE);
    let path = folder.path("");
    Process::serve(&[&["--mesh", mesh, "--templates", &path], &OFTEN[..]].concat()).await
}

async fn post(process: &Process, path: &str) -> Answer {
    Connection::open(process.webhook).await.post(path, REVIEW).await
}

async fn patches_with(process: &Process, text: &str) {
    let patched = async || {
        let patch = post(process, "/templates").await.patch();
        patch.contains(text).then_some(())
    };
    until(text, patched).await;
}

#[tokio::test]
async fn templates_are_served_beside_linkerd() {
    let folder = Folder::new();
    let process = serve(&folder, "linkerd,templates").await;
    let (status, text) = process.page("/ready").await;
    assert!(status == 200 && text.ends_with("\nsidecar templates: 1\n"), "{text}");
    assert!(post(&process, "/templates").await.patch().contains("agent:1.0"));
    assert_eq!(post(&process, "/").await.status, 200);
    let injected = r#"injectd_template_pods_total{template="agent",result="injected"}"#;
    assert_eq!(process.metric(injected).await, Some(1.0));
    assert_eq!(process.metric("injectd_templates").await, Some(1.0));
}

#[tokio::test]
async fn a_changed_and_a_new_template_are_in_the_next_answers() {
    let folder = Folder::new();
    let process = serve(&folder, "templates").await;
    assert_eq!(post(&process, "/").await.status, 404);
    patches_with(&process, "agent:1.0").await;
    folder.write("agent.yaml", &with_image("agent:2.0"));
    patches_with(&process, "agent:2.0").await;
    folder.write("other.yaml", &other("second"));
    patches_with(&process, "second").await;
    process.has("injectd_templates", 2.0).await;
    process.has(REFUSED_NOW, 0.0).await;
}

#[tokio::test]
async fn a_broken_template_keeps_its_last_good_revision() {
    let folder = Folder::new();
    folder.write("other.yaml", &other("second"));
    let process = serve(&folder, "templates").await;
    folder.write("agent.yaml", &with_image("agent:2.0").replace("params.level", "params.wrong"));
    process.has(REFUSED_NOW, 1.0).await;
    process.logs("its last good revision stays in use").await;
    let log = process.log();
    let line = log.lines().find(|line| line.contains("its last good revision")).unwrap_or_default();
    for part in ["agent", "agent.yaml", "line=17", "column=", "wrong"] {
        assert!(line.contains(part), "{line:?} must have {part}");
    }
    let metrics = process.page("/metrics").await.1;
    let rejected = r#"injectd_template_rejected{template="agent",file=""#;
    assert!(metrics.contains(rejected) && metrics.contains(r#"line="17""#), "{metrics}");
    folder.write("other.yaml", &other("third"));
    patches_with(&process, "third").await;
    patches_with(&process, "agent:1.0").await;
    folder.write("agent.yaml", &with_image("agent:3.0"));
    patches_with(&process, "agent:3.0").await;
    process.has(REFUSED_NOW, 0.0).await;
}

#[tokio::test]
async fn a_file_that_is_not_yaml_changes_nothing() {
    let folder = Folder::new();
    let process = serve(&folder, "templates").await;
    folder.write("agent.yaml", "kind: [\n");
    process.logs("files are rejected").await;
    process.has(REFUSED_NOW, 1.0).await;
    patches_with(&process, "agent:1.0").await;
    process.has("injectd_templates", 1.0).await;
}

#[tokio::test]
async fn a_server_does_not_start_with_a_broken_template_or_without_one() {
    let folder = Folder::new();
    let flags = ["serve", "--standalone", "--addr=127.0.0.1:0", "--metrics-addr=127.0.0.1:0"];
    let start = async |more: &[&str]| {
        let ended = run(injectd(&[&flags[..], more].concat())).await;
        (ended.code, ended.stderr)
    };
    let path = folder.write("agent.yaml", &TEMPLATE.replace("params.level", "params.wrong"));
    let mesh = ["--mesh", "templates", "--templates", &path];
    let (code, text) = start(&mesh).await;
    assert!(code == Some(1) && text.contains("agent.yaml:17:"), "{text}");
    folder.write("agent.yaml", "kind: Pod\n");
    let (code, text) = start(&mesh).await;
    assert!(code == Some(1) && text.contains("no SidecarTemplate"), "{text}");
    for (flags, problem) in [
        (&["--mesh", "templates"][..], "--standalone needs --templates"),
        (&["--templates", &path], "needs --mesh templates"),
        (&["--namespaced-templates", "off"], "needs --mesh templates"),
        (&["--manage-webhook"], "--manage-webhook needs --mesh templates"),
        (&[&mesh[..], &["--manage-webhook"]].concat(), "remove --standalone"),
    ] {
        let (code, text) = start(flags).await;
        assert!(code == Some(64) && text.contains(problem), "{text}");
    }
}
