//! `proxy-injector`: the flags, files and log lines of Linkerd's injector.

use serde_json::Value;

use injectd::linkerd::values::DEFAULT_VALUES;

use super::{
    client::{Connection, REVIEW},
    files::{Folder, Pair},
    process::{Ended, Process, injectd, run},
};

const EXIT_USAGE: i32 = 2;
const PROFILE: &str = "/debug/pprof/profile?seconds=0";

/// The files that the chart mounts.
struct Mounts(Folder);

impl Mounts {
    fn new() -> Self {
        let (folder, pair) = (Folder::new(), Pair::self_signed());
        folder.write("values", DEFAULT_VALUES);
        folder.write("roots", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        folder.write("tls.crt", &pair.certificate);
        folder.write("tls.key", &pair.key);
        Self(folder)
    }

    async fn serve(&self, flags: &[&str]) -> Process {
        let path = |name| self.0.path(name);
        let [values, roots] = [path("values"), path("roots")];
        let [certificate, key] = [path("tls.crt"), path("tls.key")];
        let env = [
            ("INJECTD_STANDALONE", "true"),
            ("INJECTD_VALUES", &*values),
            ("INJECTD_TRUST_ROOTS", &roots),
            ("INJECTD_TLS_CERT", &certificate),
            ("INJECTD_TLS_KEY", &key),
            ("INJECTD_DRAIN_DELAY", "10ms"),
        ];
        let process = Process::proxy_injector(flags, &env).await;
        process.logs("listening at").await;
        process
    }
}

async fn proxy_injector(flags: &[&str]) -> Ended {
    run(injectd(&[&["proxy-injector"], flags].concat())).await
}

async fn must_refuse(flags: &[&str], named: &str) {
    let Ended { code, stderr, .. } = proxy_injector(flags).await;
    assert_eq!(code, Some(EXIT_USAGE), "{flags:?}: {stderr}");
    assert!(stderr.contains(named), "{flags:?} must name {named}: {stderr}");
}

#[tokio::test]
async fn the_log_has_the_lines_of_linkerds_injector() {
    let process = Mounts::new().serve(&[]).await;
    let mut connection = Connection::open(process.webhook).await;
    connection.must_inject().await;
    connection.review(&REVIEW.replace("enabled", "disabled")).await;
    process.logs("skipped pod/web").await;
    let log = process.log();
    for line in [
        concat!("running version injectd-", env!("CARGO_PKG_VERSION"), " (linkerd stable-2.14 to "),
        "starting admin server on 127.0.0.2:0",
        "listening at 127.0.0.1:0",
        r#"received admission review request \"705ab4f5\""#,
        "received pod/web",
        "injection patch generated for: pod/web",
        "skipped pod/web: neither the namespace nor the pod have the annotation ",
    ] {
        let is_there = |logged: &str| {
            logged.starts_with("time=") && logged.contains("level=info") && logged.contains(line)
        };
        assert!(log.lines().any(is_there), "{line:?} in {log}");
    }
    assert!(!log.contains("level=debug"), "{log}");
}

#[tokio::test]
async fn the_release_is_logged_and_ready_has_the_text_of_linkerds_injector() {
    let process = Mounts::new().serve(&[]).await;
    process.logs("configuration applied").await;
    let log = process.log();
    let line = log.lines().find(|line| line.contains("configuration applied")).unwrap_or_default();
    assert!(line.contains("level=info") && line.contains("release=edge-26.8.3"), "{line}");
    assert_eq!(process.page("/ready").await, (200, "ok\n".to_owned()));
}

#[tokio::test]
async fn flags_are_read_as_go_reads_them() {
    let mounts = Mounts::new();
    for (flags, profiles) in [
        (&["-log-level", "info", "--log-format", "plain"][..], false),
        (&["-enable-pprof", "-kubeconfig", "", "-linkerd-namespace=linkerd"], true),
        (&["--enable-pprof=false", "-log-level=INFO"], false),
        (&["-enable-pprof=T", "--kubeconfig=/nowhere"], true),
    ] {
        let process = mounts.serve(flags).await;
        // With the flag, the page exists and rejects a profile of zero seconds.
        let expected = if profiles && cfg!(feature = "profiling") { 400 } else { 404 };
        assert_eq!(process.page(PROFILE).await.0, expected, "{flags:?}");
        process.must_still_serve().await;
    }
}

#[tokio::test]
async fn an_error_names_the_invalid_flag() {
    must_refuse(&["-no-such-flag"], "-no-such-flag").await;
    must_refuse(&["--no-such-flag=1"], "-no-such-flag").await;
    must_refuse(&["-addr"], "-addr").await;
    must_refuse(&["-enable-pprof=perhaps"], "-enable-pprof").await;
    must_refuse(&["---addr=:1"], "---addr").await;
    let Ended { code, stderr, .. } = proxy_injector(&["-log-level=loud"]).await;
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(stderr.contains("loud"), "{stderr}");
}

#[tokio::test]
async fn version_and_help_are_printed() {
    for flags in [["-version"], ["--version"], ["-version=true"]] {
        let Ended { code, stdout, .. } = proxy_injector(&flags).await;
        assert_eq!(code, Some(0), "{flags:?}");
        let version =
            concat!("injectd-", env!("CARGO_PKG_VERSION"), " (linkerd stable-2.14 to edge-");
        assert!(stdout.starts_with(version) && stdout.ends_with(")\n"), "{stdout}");
    }
    for flags in [["-help"], ["--help"], ["-h"]] {
        let Ended { code, stdout, stderr } = proxy_injector(&flags).await;
        assert_eq!(code, Some(0), "{flags:?}: {stderr}");
        assert!(stdout.contains("-metrics-addr"), "{stdout}");
    }
}

#[tokio::test]
async fn an_error_names_the_missing_mount() {
    let mut command = injectd(&["proxy-injector", "-addr=127.0.0.1:0"]);
    command.arg("-metrics-addr=127.0.0.1:0").env("INJECTD_STANDALONE", "true");
    let Ended { code, stderr, .. } = run(command).await;
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("/var/run/linkerd/config/values"), "{stderr}");
}

#[tokio::test]
async fn debug_shows_requests_values_and_patches_as_linkerds_injector_does() {
    let process = Mounts::new().serve(&["-log-format=json", "-log-level", "debug"]).await;
    let mut connection = Connection::open(process.webhook).await;
    connection.must_inject().await;
    let skipped = REVIEW.replace("enabled", "disabled");
    connection.review(&skipped).await;
    let redis = r#"{"name":"r","image":"redis","ports":[{"containerPort":6379}]}"#;
    let annotated = skipped.replacen("\"containers\":[", &format!("\"containers\":[{redis},"), 1);
    connection.review(&annotated).await;
    // This line is after all lines that the test checks.
    connection.review(&skipped.replace("\"name\":\"web\",\"ann", "\"name\":\"last\",\"ann")).await;
    process.logs("skipped pod/last").await;
    let mut messages = Vec::new();
    let log = process.log();
    let whole = log.rfind('\n').map_or(0, |end| end + 1);
    for line in log[..whole].lines() {
        let line: Value = serde_json::from_str(line).expect("a line must be JSON");
        assert!(line["time"].is_string() && line["level"].is_string(), "{line}");
        messages.push(line["msg"].as_str().expect("a line must have a message").to_owned());
    }
    let has = |begin: &str, text: &str| {
        messages.iter().any(|message| message.starts_with(begin) && message.contains(text))
    };
    let request = REVIEW.split_once("\"request\":").and_then(|(_, rest)| rest.strip_suffix('}'));
    assert!(has("admission request: ", request.expect("a request")), "{log}");
    assert!(has("request object bytes: {", "\"name\":\"web\""), "{log}");
    assert!(has("/var/run/linkerd/config/values config YAML: ", DEFAULT_VALUES), "{log}");
    assert!(has("injection patch: [", "\"name\":\"linkerd-proxy\""), "{log}");
    assert!(has("annotation patch: [", "opaque-ports\",\"value\":\"6379\""), "{log}");
    assert!(has("injection patch generated for: pod/web", ""), "{log}");
    assert!(!log.contains("Proxy {"), "values must not be in Rust's debug format: {log}");
}
