//! `serve --mesh istio`: probes, metrics of rejected paths, changed and invalid files.

use injectd_testkit::istio::{CONFIG, MESH, VALUES};
use rustix::process::Signal;

use super::{
    client::{Answer, Connection},
    files::Folder,
    process::{Process, injectd, run},
    shutdown::ends_at_once,
};

/// A review of a pod that is injected.
const REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5","#,
    r#""kind":{"version":"v1","kind":"Pod"},"namespace":"shop","object":{"metadata":"#,
    r#"{"name":"web"},"spec":{"containers":[{"name":"web","image":"web"}]}}}}"#,
);

const REJECTED: &str = r#"injectd_requests_rejected_total{server="webhook",reason="path"}"#;

/// The flags of a configuration, with its files in a folder.
fn flags(folder: &Folder) -> Vec<String> {
    let files = [
        ("--injector-config", "config.yaml", CONFIG),
        ("--values", "values.json", VALUES),
        ("--mesh-config", "mesh.yaml", MESH),
    ];
    let files = files
        .into_iter()
        .flat_map(|(flag, name, text)| [flag.to_owned(), folder.write(name, text)]);
    ["--mesh".to_owned(), "istio".to_owned()].into_iter().chain(files).collect()
}

async fn serve(folder: &Folder, more: &[&str]) -> Process {
    let flags = flags(folder);
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Process::serve(&flags).await
}

/// Sends the review to a path on a new connection.
async fn post(process: &Process, path: &str) -> Answer {
    let mut connection = Connection::open(process.webhook).await;
    connection.post(path, REVIEW).await
}

#[tokio::test]
async fn the_probe_names_the_release() {
    let folder = Folder::new();
    let process = serve(&folder, &[]).await;
    assert_eq!(process.page("/ready").await, (200, "ok\nIstio 1.30.3\n".to_owned()));
    let info = r#"injectd_config_info{istio_release="1.30.3",revision="default"}"#;
    assert_eq!(process.metric(info).await, Some(1.0));
}

#[tokio::test]
async fn both_meshes_have_their_paths_and_their_metrics() {
    let folder = Folder::new();
    let flags = [
        "--mesh".to_owned(),
        "linkerd,istio".to_owned(),
        "--revision=canary".to_owned(),
        "--injector-config".to_owned(),
        folder.write("config.yaml", CONFIG),
        "--injector-values".to_owned(),
        folder.write("values.json", VALUES),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let process = Process::serve(&flags).await;
    let (status, text) = process.page("/ready").await;
    assert!(status == 200 && text.ends_with("\nIstio 1.30.3, revision canary\n"), "{text}");
    let [istio, linkerd] =
        ["sidecar_injection_requests_total", "proxy_inject_admission_requests_total"];
    assert_eq!(process.metric(istio).await, Some(0.0));
    for path in ["/inject", "/istio/canary/inject/net/N"] {
        assert!(post(&process, path).await.is_injection(), "{path}");
    }
    assert_eq!(post(&process, "/istio/other/inject").await.status, 404);
    assert_eq!(process.metric(istio).await, Some(2.0));
    assert_eq!(process.metric("sidecar_injection_success_total").await, Some(2.0));
    assert!(!process.page("/metrics").await.1.contains(&format!("\n{linkerd}{{")));
    assert_eq!(post(&process, "/").await.status, 200);
    assert!(process.page("/metrics").await.1.contains(&format!("\n{linkerd}{{")));
    assert_eq!(process.metric(istio).await, Some(2.0));
}

#[tokio::test]
async fn each_mesh_alone_has_only_its_metrics() {
    let metrics = Process::serve(&[]).await.page("/metrics").await.1;
    assert!(!metrics.contains("sidecar_injection_"), "{metrics}");
    let folder = Folder::new();
    let process = serve(&folder, &[]).await;
    assert!(post(&process, "/inject").await.is_injection());
    let metrics = process.page("/metrics").await.1;
    assert!(!metrics.contains("proxy_inject_"), "{metrics}");
    assert!(metrics.contains("\nsidecar_injection_time_seconds_count 1\n"), "{metrics}");
}

#[tokio::test]
async fn rejected_paths_are_counted_and_are_no_reviews() {
    let folder = Folder::new();
    let process = serve(&folder, &[]).await;
    let paths = [("/injected", 404), ("/", 404), ("//inject", 307), ("/inject/%zz", 400)];
    for (path, status) in paths {
        assert_eq!(post(&process, path).await.status, status, "{path}");
    }
    assert_eq!(process.metric(REJECTED).await, Some(4.0));
    let injected = r#"injectd_reviews_total{server="webhook",kind="pod",verdict="injected"}"#;
    assert_eq!(process.metric(injected).await, Some(0.0));
    assert!(post(&process, "/inject/net/N").await.is_injection());
    assert_eq!(process.metric(injected).await, Some(1.0));
    assert_eq!(process.metric(REJECTED).await, Some(4.0));
}

#[tokio::test]
async fn invalid_files_are_rejected_and_the_next_valid_ones_apply() {
    let folder = Folder::new();
    let process = serve(&folder, &["--reload-interval", "20ms"]).await;
    let rejected = r#"injectd_reloads_total{what="config",result="rejected"}"#;
    for (index, (name, valid, invalid, named)) in [
        ("config.yaml", CONFIG, "templates: {sidecar: \"a\\n{{ x\"}\n", "config.templates.sidecar"),
        ("values.json", VALUES, "{\"global\": ", "values cannot be parsed"),
        ("mesh.yaml", MESH, "defaultConfig: []\n", "defaultConfig"),
    ]
    .into_iter()
    .enumerate()
    {
        folder.write(name, invalid);
        process.logs(named).await;
        let log = process.log();
        let line = log.lines().rfind(|line| line.contains("files are rejected"));
        let line = line.unwrap_or_default();
        assert!(line.contains(named) && line.contains(name), "{line} must name {named} and {name}");
        process.counts(rejected, f64::from(u32::try_from(index).expect("few")) + 1.0).await;
        assert!(post(&process, "/inject").await.is_injection());
        folder.write(name, valid);
        process.has(r#"injectd_reload_rejected{what="config"}"#, 0.0).await;
    }
    folder.write("mesh.yaml", &MESH.replace("hello", "welcome"));
    process.logs("configuration applied").await;
    super::process::until("the new mesh config", async || {
        post(&process, "/inject").await.patch().contains("welcome").then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_evaluation_does_not_delay_the_exit() {
    let folder = Folder::new();
    // The budget of a large pod is large: half a second of an optimized build.
    let text = "x".repeat(4000);
    let slow = format!(
        "    {{{{- range until 1000 }}}}{{{{ range until 1000 }}}}{{{{ $x := sha512sum `{text}` }}}}\
         {{{{ end }}}}{{{{ end }}}}\n    metadata:\n"
    );
    let config = CONFIG.replacen("    metadata:\n", &slow, 1);
    let metadata = format!(r#"{{"name":"web","annotations":{{"a":"{}"}}}}"#, "x".repeat(1_000_000));
    let large = REVIEW.replacen(r#"{"name":"web"}"#, &metadata, 1);
    let flags = flags(&folder);
    folder.write("config.yaml", &config);
    let more = [
        "--drain-delay=1ms",
        "--drain-timeout=100ms",
        "--max-evaluation-memory=1Gi",
        "--worker-threads=2",
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more).collect();
    let mut process = Process::serve(&flags).await;
    let mut connection = Connection::open(process.webhook).await;
    let review = tokio::spawn(async move {
        connection.post("/inject?timeout=30s", &large).await;
    });
    process.counts("injectd_evaluation_memory_bytes", 1.0).await;
    // The other worker thread answers.
    assert_eq!(post(&process, "/nowhere").await.status, 404);
    process.signal(Signal::TERM);
    ends_at_once(&mut process).await;
    assert!(process.log().contains("drain timeout"), "{}", process.log());
    review.abort();
}

#[tokio::test]
async fn a_file_that_is_not_regular_is_rejected_at_start_with_its_flag() {
    let folder = Folder::new();
    let flags = flags(&folder);
    let pipe = folder.pipe("pipe");
    for flag in ["--injector-config", "--values", "--mesh-config"] {
        for file in ["/", "/dev/zero", &pipe] {
            let mut args: Vec<&str> = vec!["serve", "--standalone"];
            args.extend(flags.iter().map(String::as_str));
            let at = args.iter().position(|arg| *arg == flag).expect("the flag must be set");
            args[at + 1] = file;
            let ended = run(injectd(&args)).await;
            assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{flag}: {}", ended.stderr);
            let expected = format!("error: cannot read {flag} {file}: not a regular file");
            assert!(ended.stderr.contains(&expected), "{flag} {file}: {}", ended.stderr);
        }
    }
}
