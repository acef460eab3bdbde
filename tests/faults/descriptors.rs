//! File descriptors are few: the process divides them among its servers.

use injectd_harness::process::limited;

use super::{
    client::{Connection, tcp},
    process::{BINARY, Process, run},
};

/// Enough descriptors for the process and a few connections.
const DESCRIPTORS: u32 = 64;
/// Connections that send nothing: more than there are descriptors.
const IDLE: usize = 177;
const NOT_ACCEPTED: &str = r#"injectd_accept_errors_total{server="webhook"}"#;

#[tokio::test]
async fn probes_and_known_clients_are_answered_beside_more_connections_than_descriptors() {
    let process = Process::serve_with_descriptors(DESCRIPTORS, &[]).await;
    process.logs("--max-connections is 5 and not 2000").await;
    let mut kept = Connection::open(process.webhook).await;
    kept.must_inject().await;
    let mut silent = Vec::new();
    for _ in 0..IDLE {
        silent.push(tcp(process.webhook).await);
    }
    // Those within the limit, and a quarter more.
    process.has_connections(5 + 2).await;
    assert_eq!(process.page("/ready").await.0, 200);
    assert_eq!(process.metric(NOT_ACCEPTED).await, Some(0.0));
    assert!(process.metric("process_open_fds").await <= Some(f64::from(DESCRIPTORS)));
    kept.must_inject().await;
    drop(silent);
    process.has_connections(1).await;
    process.must_still_serve().await;
    assert_eq!(process.metric(NOT_ACCEPTED).await, Some(0.0));
}

#[tokio::test]
async fn a_process_with_enough_descriptors_keeps_its_limit() {
    let process = Process::serve_with_descriptors(1_024, &["--max-connections", "150"]).await;
    assert!(!process.log().contains("--max-connections"), "{}", process.log());
}

#[tokio::test]
async fn too_few_descriptors_are_an_error_at_start() {
    let mut command = limited(BINARY, "-n 40");
    command.env_clear().args(["serve", "--standalone"]);
    let ended = run(command).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("limit of 40 open files"), "{}", ended.stderr);
    assert!(ended.stderr.contains("ulimit -Hn"), "{}", ended.stderr);
}
