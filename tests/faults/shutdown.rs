//! Signals, and their effect on requests in flight.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;

use super::{
    client::{Connection, REVIEW, connect, head, http1_config, read_to_close, try_connect},
    process::{Process, injectd, soon, until},
};

/// Far below the timeouts that these tests set.
const AT_ONCE: Duration = Duration::from_secs(5);
pub(super) const IN_FLIGHT: &str = r#"injectd_reviews_in_flight{server="webhook"}"#;

/// Waits for the end of the process, which must come soon and with exit code 0.
pub(super) async fn ends_at_once(process: &mut Process) {
    let begin = Instant::now();
    let status = process.ends().await;
    assert_eq!(status.code(), Some(0), "{}", process.log());
    assert!(begin.elapsed() < AT_ONCE, "took {:?}", begin.elapsed());
}

async fn is_not_ready(process: &Process) {
    until("not ready", async || (process.page("/ready").await.0 == 500).then_some(())).await;
}

/// Sends half a review, which stays in flight until the other half is sent.
async fn half_a_review(
    process: &Process,
) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    let mut stream = connect(process.webhook).await;
    let begun = format!("{}{}", head("/", REVIEW.len()), &REVIEW[..100]);
    soon("write", stream.write_all(begun.as_bytes())).await.expect("must be sent");
    process.counts(IN_FLIGHT, 1.0).await;
    stream
}

/// Sends reviews on one connection until an answer has `connection: close`. Returns the number of
/// answers.
async fn load(mut connection: Connection) -> u32 {
    for answered in 1.. {
        let answer = connection.try_review(REVIEW).await;
        let answer = answer.expect("a review that was sent must be answered");
        assert!(answer.is_injection(), "{answer:?}");
        if answer.header("connection") == Some("close") {
            return answered;
        }
    }
    unreachable!("a load must end")
}

#[tokio::test]
async fn a_drain_answers_every_review_and_sends_clients_elsewhere() {
    let mut process = Process::serve(&["--drain-delay", "1s"]).await;
    assert_eq!(process.page("/ready").await.0, 200);
    let mut loads = Vec::new();
    for _ in 0..8 {
        loads.push(tokio::spawn(load(Connection::open(process.webhook).await)));
    }
    let reviewed = r#"injectd_reviews_total{server="webhook",kind="pod",verdict="injected"}"#;
    process.counts(reviewed, 100.0).await;
    process.signal(Signal::TERM);
    is_not_ready(&process).await;
    for load in loads {
        assert!(soon("load", load).await.expect("every review must be answered") > 1);
    }
    // Endpoints are updated with a delay, so late clients must still be served.
    let late = Connection::open(process.webhook).await.review(REVIEW).await;
    assert!(late.is_injection(), "{late:?}");
    assert_eq!(late.header("connection"), Some("close"));
    ends_at_once(&mut process).await;
}

#[tokio::test]
async fn a_review_in_flight_at_the_end_of_the_drain_delay_is_answered() {
    let mut process = Process::serve(&["--drain-delay", "100ms"]).await;
    let mut stream = half_a_review(&process).await;
    let mut idle = Connection::open(process.webhook).await;
    idle.must_inject().await;
    process.signal(Signal::TERM);
    // New connections are refused, and idle ones are closed.
    until("closed server", async || {
        try_connect(process.webhook, &http1_config()).await.is_err().then_some(())
    })
    .await;
    process.has_connections(1).await;
    assert_eq!(process.page("/ready").await.0, 500);
    soon("write", stream.write_all(&REVIEW.as_bytes()[100..])).await.expect("must be sent");
    let answer = read_to_close(&mut stream).await;
    assert!(answer.contains(r#""verdict":"injected""#), "{answer}");
    ends_at_once(&mut process).await;
}

#[tokio::test]
async fn a_second_signal_ends_the_process_immediately() {
    let args = ["--drain-delay", "1m", "--drain-timeout", "1m", "--body-timeout", "1m"];
    let mut process = Process::serve(&args).await;
    let _stream = half_a_review(&process).await;
    process.signal(Signal::TERM);
    is_not_ready(&process).await;
    process.signal(Signal::TERM);
    ends_at_once(&mut process).await;
    assert!(process.log().contains("received a second signal"), "{}", process.log());
}

#[tokio::test]
async fn an_interrupt_without_load_ends_the_process_immediately() {
    let mut process = Process::serve(&["--drain-delay", "1m", "--drain-timeout", "1m"]).await;
    let mut idle = Connection::open(process.webhook).await;
    idle.must_inject().await;
    process.signal(Signal::INT);
    ends_at_once(&mut process).await;
}

#[tokio::test]
async fn a_drain_ends_in_time_with_requests_in_flight() {
    let mut process = Process::serve(&["--drain-timeout", "200ms", "--body-timeout", "1m"]).await;
    let _stream = half_a_review(&process).await;
    process.signal(Signal::INT);
    ends_at_once(&mut process).await;
    assert!(process.log().contains("requests in flight"), "{}", process.log());
}

#[tokio::test]
async fn a_killed_process_can_restart_on_its_ports() {
    let process = Process::serve(&[]).await;
    let mut kept = Connection::open(process.webhook).await;
    kept.must_inject().await;
    let addresses = [process.webhook, process.admin].map(|addr| addr.to_string());
    process.kill().await;
    assert!(kept.try_review(REVIEW).await.is_err(), "the server must be gone");
    let [addr, metrics_addr] = &addresses;
    let args = [
        "serve",
        "--standalone",
        "--addr",
        addr,
        "--metrics-addr",
        metrics_addr,
        "--grpc-addr",
        "",
    ];
    let process = Process::announced(injectd(&args)).await;
    assert_eq!(process.webhook.to_string(), *addr);
    process.must_still_serve().await;
    assert_eq!(process.page("/ready").await.0, 200);
}
