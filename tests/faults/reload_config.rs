//! Changes of values and trust roots while a process serves.

use std::{fs, io::Write as _};

use rustix::process::Signal;

use super::{
    client::{Connection, REVIEW},
    files::{Authority, Folder, Pair, values_with_log_level},
    process::{Process, until},
};

const APPLIED: &str = r#"injectd_reloads_total{what="config",result="applied"}"#;
const REJECTED: &str = r#"injectd_reloads_total{what="config",result="rejected"}"#;
const REFUSED_NOW: &str = r#"injectd_reload_rejected{what="config"}"#;
const GENERATION: &str = "injectd_config_generation";
const OFTEN: [&str; 2] = ["--reload-interval", "20ms"];

/// The patch for the example, requested on a new connection.
async fn patch(process: &Process) -> String {
    Connection::open(process.webhook).await.review(REVIEW).await.patch()
}

async fn patches_with(process: &Process, text: &str) {
    until(text, async || patch(process).await.contains(text).then_some(())).await;
}

/// A process whose values set the proxies' log level to `before`.
async fn on_values(folder: &Folder) -> Process {
    let values = folder.write("values", &values_with_log_level("before"));
    let process = Process::serve(&[&["--values", &values], &OFTEN[..]].concat()).await;
    patches_with(&process, "before").await;
    process
}

/// Checks metrics, log, probes and answers after a file was rejected.
async fn must_keep_serving_after_a_rejection(process: &Process, key: &str) {
    process.counts(REJECTED, 1.0).await;
    process.logs(key).await;
    let log = process.log();
    let line = log.lines().find(|line| line.contains("files are rejected")).unwrap_or_default();
    assert!(line.contains("values") && line.contains(key), "{line:?} must name file and key");
    assert_eq!(process.page("/ready").await.0, 200);
    must_still_serve_before(process, 1.0).await;
}

/// Checks that the files of a generation stay in use after a rejection.
async fn must_still_serve_before(process: &Process, generation: f64) {
    process.has(REFUSED_NOW, 1.0).await;
    assert!(patch(process).await.contains("before"));
    assert_eq!(process.metric(GENERATION).await, Some(generation));
}

/// Trust roots with a name before them. Their content is not a valid certificate.
fn bundle(name: &str) -> String {
    format!("{name}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
}

#[tokio::test]
async fn changed_values_are_in_the_next_answers() {
    let folder = Folder::new();
    let process = on_values(&folder).await;
    let mut kept = Connection::open(process.webhook).await;
    kept.must_inject().await;
    folder.write("values", &values_with_log_level("after"));
    process.counts(GENERATION, 2.0).await;
    assert_eq!(process.metric(APPLIED).await, Some(1.0));
    assert!(kept.review(REVIEW).await.patch().contains("after"));
    folder.write("values", &values_with_log_level("later"));
    process.counts(GENERATION, 3.0).await;
    assert!(kept.review(REVIEW).await.patch().contains("later"));
    assert_eq!(process.metric(REJECTED).await, Some(0.0));
}

#[tokio::test]
async fn values_swapped_as_a_kubelet_does_are_applied_together() {
    let folder = Folder::new();
    let roots = bundle("one");
    folder.swap("..1", &[("values", &values_with_log_level("before")), ("roots", &roots)]);
    let (values, root_file) = (folder.path("values"), folder.path("roots"));
    let files = ["--values", &values, "--trust-roots", &root_file];
    let process = Process::serve(&[&files, &OFTEN[..]].concat()).await;
    let before = patch(&process).await;
    assert!(before.contains("before") && before.contains(r"one\n"), "{before}");
    for round in 2..10 {
        let (level, named) = (format!("level-{round}"), format!("roots-{round}"));
        let roots = bundle(&named);
        let files = [("values", &*values_with_log_level(&level)), ("roots", &*roots)];
        folder.swap(&format!("..{round}"), &files);
        process.counts(GENERATION, f64::from(round)).await;
        let patch = patch(&process).await;
        assert!(patch.contains(&level) && patch.contains(&named), "{patch}");
    }
}

#[tokio::test]
async fn a_hangup_reloads_unchanged_files_immediately_without_interruption() {
    let folder = Folder::new();
    let values = folder.write("values", &values_with_log_level("before"));
    let pair = Pair::self_signed();
    let (certificate, key) =
        (folder.write("tls.crt", &pair.certificate), folder.write("tls.key", &pair.key));
    let files = ["--values", &values, "--tls-cert", &certificate, "--tls-key", &key];
    let process = Process::serve(&[&files[..], &["--reload-interval", "1h"]].concat()).await;
    let mut kept = Connection::open(process.webhook).await;
    for round in 1..=3 {
        process.signal(Signal::HUP);
        process.has(APPLIED, f64::from(round)).await;
        process
            .has(r#"injectd_reloads_total{what="tls",result="applied"}"#, f64::from(round))
            .await;
        process.has(GENERATION, f64::from(round + 1)).await;
        kept.must_inject().await;
    }
    process.logs("received SIGHUP").await;
    folder.write("values", "proxy: [unclosed");
    process.signal(Signal::HUP);
    must_still_serve_before(&process, 4.0).await;
    folder.write("values", &values_with_log_level("after"));
    process.signal(Signal::HUP);
    process.has(GENERATION, 5.0).await;
    assert!(kept.review(REVIEW).await.patch().contains("after"));
    process.has(REFUSED_NOW, 0.0).await;
}

#[tokio::test]
async fn invalid_values_are_rejected_and_the_last_valid_ones_stay_in_use() {
    let folder = Folder::new();
    let process = on_values(&folder).await;
    folder.write("values", "proxy: [unclosed");
    must_keep_serving_after_a_rejection(&process, "not valid YAML").await;
    folder.write("values", &values_with_log_level("cured"));
    patches_with(&process, "cured").await;
}

#[tokio::test]
async fn values_without_a_proxy_are_rejected_with_the_name_of_the_key() {
    let folder = Folder::new();
    let process = on_values(&folder).await;
    folder.write("values", "linkerdVersion: edge-26.8.3\nidentityTrustDomain: cluster.local\n");
    must_keep_serving_after_a_rejection(&process, "proxy: missing").await;
}

#[tokio::test]
async fn deleted_values_are_rejected() {
    let folder = Folder::new();
    let process = on_values(&folder).await;
    fs::remove_file(folder.path("values")).expect("must exist");
    must_keep_serving_after_a_rejection(&process, "cannot read").await;
    folder.write("values", &values_with_log_level("back"));
    patches_with(&process, "back").await;
}

#[tokio::test]
async fn a_pipe_in_place_of_values_is_rejected_and_the_file_is_applied_once_it_is_back() {
    let folder = Folder::new();
    let process = on_values(&folder).await;
    folder.pipe("values");
    must_keep_serving_after_a_rejection(&process, "not a regular file").await;
    assert_eq!(process.metric(REFUSED_NOW).await, Some(1.0));
    folder.write("values", &values_with_log_level("back"));
    patches_with(&process, "back").await;
    process.has(REFUSED_NOW, 0.0).await;
    assert_eq!(process.metric(REJECTED).await, Some(1.0), "one rejection must be counted once");
}

#[tokio::test]
async fn values_over_the_size_limit_are_rejected() {
    let folder = Folder::new();
    let process = on_values(&folder).await;
    let large = format!("# {}\n{}", "x".repeat(10 << 20), values_with_log_level("large"));
    folder.write("values", &large);
    must_keep_serving_after_a_rejection(&process, "larger than 10 MiB").await;
}

#[tokio::test]
async fn values_that_are_written_in_pieces_are_applied_once_complete() {
    let folder = Folder::new();
    let process = on_values(&folder).await;
    let whole = values_with_log_level("in-the-end");
    let mut file = fs::File::create(folder.path("values")).expect("must be writable");
    let (begin, end) = whole.split_at(whole.find("proxy:").expect("values must have a proxy"));
    file.write_all(begin.as_bytes()).expect("must be written");
    process.counts(REJECTED, 1.0).await;
    process.must_still_serve().await;
    file.write_all(end.as_bytes()).expect("must be written");
    patches_with(&process, "in-the-end").await;
}

#[tokio::test]
async fn changed_trust_roots_change_the_hash_in_the_patch() {
    let folder = Folder::new();
    let hash = |patch: &str| {
        let (_, rest) = patch
            .split_once("linkerd.io~1trust-root-sha256")
            .or_else(|| patch.split_once("linkerd.io/trust-root-sha256"))?;
        rest.split('"').find(|word| word.len() == 64).map(str::to_owned)
    };
    let roots = folder.write("roots", &bundle("one"));
    let process = Process::serve(&[&["--trust-roots", &roots], &OFTEN[..]].concat()).await;
    let before = hash(&patch(&process).await);
    folder.write("roots", &bundle("another"));
    process.counts(GENERATION, 2.0).await;
    let after = hash(&patch(&process).await);
    assert!(before.is_some() && after.is_some(), "a patch must have the hash");
    assert_ne!(before, after);
}

#[tokio::test]
async fn expired_and_leaf_trust_roots_are_logged_at_start_and_reload() {
    let folder = Folder::new();
    let roots = folder.write("roots", &Pair::expired().certificate);
    let process = Process::serve(&[&["--trust-roots", &roots], &OFTEN[..]].concat()).await;
    process.logs("expired on 2021-01-01").await;
    process.logs("is not a CA certificate").await;
    assert!(process.log().contains(&format!("--trust-roots {roots}: certificate 1 ")));
    let two = format!("{}{}", Authority::new().certificate, Pair::self_signed().certificate);
    folder.write("roots", &two);
    process.logs("certificate 2 ").await;
    process.has(GENERATION, 2.0).await;
}

#[tokio::test]
async fn trust_roots_without_certificates_are_rejected() {
    let folder = Folder::new();
    let roots = folder.write("roots", &bundle("one"));
    let process = Process::serve(&[&["--trust-roots", &roots], &OFTEN[..]].concat()).await;
    for nothing in ["", "\n", "hello\n", "-----BEGIN CERTIFICATE-----\nAAAA\n"] {
        folder.write("roots", nothing);
        process.counts(REFUSED_NOW, 1.0).await;
        assert!(
            patch(&process).await.contains(r"one\n"),
            "the last valid trust roots must stay in use"
        );
        folder.write("roots", &bundle("one"));
        process.counts(REFUSED_NOW, 0.0).await;
    }
}
