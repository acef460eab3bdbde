//! The admin server: probes, metrics, profiles, and invalid requests.

use std::collections::HashSet;

use tokio::io::AsyncWriteExt as _;

use super::{
    client::{Connection, REVIEW, ask, read_to_close, tcp},
    process::{Process, soon},
};

const PROFILE: &str = "/debug/pprof/profile?seconds=1";

#[tokio::test]
async fn probes_are_answered_and_other_paths_do_not_exist() {
    let process = Process::serve(&[]).await;
    for (path, status, body) in [
        ("/ping", 200, "pong\n"),
        ("/live", 200, "pong\n"),
        ("/ready", 200, "ok\nrelease edge-26.8.3\n"),
        ("/", 404, "not found\n"),
        ("/metrics/", 404, "not found\n"),
        ("/debug/pprof/", 404, "not found\n"),
        (PROFILE, 404, "not found\n"),
    ] {
        assert_eq!(process.page(path).await, (status, body.to_owned()), "{path}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(ask(process.admin, method, "/ready").await.status, 405, "{method}");
    }
    assert_eq!(ask(process.admin, "HEAD", "/ready").await.status, 200);
}

#[tokio::test]
async fn invalid_requests_do_no_harm() {
    let process = Process::serve(&[]).await;
    for garbage in [b"\x16\x03\x01\x00\xff\xff\xff".as_slice(), b"\r\n\r\n\0\0", &[0xff; 10_000]] {
        let mut stream = tcp(process.admin).await;
        // The server may close the connection before the client has sent everything.
        drop(soon("write", stream.write_all(garbage)).await);
        drop(stream.shutdown().await);
        let answer = read_to_close(&mut stream).await;
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(process.page("/live").await.0, 200);
    process.must_still_serve().await;
}

/// The name of a series without the suffix of a histogram or summary.
fn family<'t>(series: &'t str, declared: &HashSet<&str>) -> &'t str {
    let name = series.split(['{', ' ']).next().unwrap_or_default();
    let plain = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    plain.filter(|plain| declared.contains(plain)).unwrap_or(name)
}

#[tokio::test]
async fn metrics_are_valid_for_prometheus() {
    let process = Process::serve(&[]).await;
    let mut connection = Connection::open(process.webhook).await;
    connection.must_inject().await;
    connection.review(&REVIEW.replace("enabled", "disabled")).await;
    connection.review("no review").await;
    let answer = ask(process.admin, "GET", "/metrics").await;
    assert!(
        answer
            .header("content-type")
            .is_some_and(|value| value.starts_with("text/plain; version="))
    );
    let mut declared = HashSet::new();
    let mut helped = HashSet::new();
    for line in answer.body.lines().filter(|line| !line.is_empty()) {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<_> = comment.splitn(3, ' ').collect();
            assert_eq!(words.len(), 3, "{line}");
            match words[0] {
                "TYPE" => assert!(declared.insert(words[1]), "declared twice: {line}"),
                "HELP" => assert!(helped.insert(words[1]), "two help texts: {line}"),
                _ => panic!("{line}"),
            }
        } else {
            assert!(declared.contains(family(line, &declared)), "without a type: {line}");
            let value = line.rsplit(' ').next().unwrap_or_default();
            assert!(value.parse::<f64>().is_ok(), "without a value: {line}");
        }
    }
    assert_eq!(helped, declared, "every family must have a help text");
    for name in ["cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "open_fds"] {
        let value = process.metric(&format!("process_{name}")).await;
        assert!(value.is_some_and(|value| value >= 0.0), "{name}: {value:?}");
    }
}

#[tokio::test]
async fn an_injection_is_counted_as_linkerds_injector_does() {
    let process = Process::serve(&[]).await;
    let mut connection = Connection::open(process.webhook).await;
    connection.must_inject().await;
    let skipped = REVIEW.replace("enabled", "disabled");
    assert_eq!(connection.review(&skipped).await.status, 200);
    let (_, text) = process.page("/metrics").await;
    let one = |name: &str, labels: &[&str]| {
        let found = text
            .lines()
            .find(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)));
        found.is_some_and(|line| line.ends_with(" 1"))
    };
    let responses = "proxy_inject_admission_responses_total{";
    assert!(one("proxy_inject_admission_requests_total{", &[]), "{text}");
    assert!(one(responses, &[r#"skip="false""#, r#"skip_reason="""#]), "{text}");
    assert!(
        one(responses, &[r#"skip="true""#, r#"skip_reason="injection_enable_annotation_absent""#]),
        "{text}"
    );
}

#[tokio::test]
async fn a_profile_is_taken_if_profiles_are_enabled() {
    let process = Process::serve(&["--enable-pprof"]).await;
    if cfg!(not(feature = "profiling")) {
        process.logs("this build lacks the feature `profiling`").await;
        assert_eq!(process.page(PROFILE).await.0, 404);
        return;
    }
    let load = async {
        let mut connection = Connection::open(process.webhook).await;
        loop {
            connection.must_inject().await;
        }
    };
    let (status, profile) = tokio::select! {
        page = process.page(PROFILE) => page,
        () = load => unreachable!("a load must not end"),
    };
    assert_eq!(status, 200);
    assert!(profile.contains("nanoseconds"), "a profile must name its unit");
    assert_eq!(process.page("/debug/pprof/profile?seconds=0").await.0, 400);
    process.must_still_serve().await;
}
