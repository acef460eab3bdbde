//! Load over the limits: rejected clients are asked to retry, and other clients are not affected.

use tokio::io::AsyncWriteExt as _;

use super::{
    client::{Connection, REVIEW, connect, head, http1_config, read_to_close, tcp, try_connect},
    process::{Process, soon},
};

const OVER_CONNECTIONS: &str = r#"injectd_connections_rejected_total{server="webhook"}"#;
const BROKEN_CONNECTIONS: &str =
    r#"injectd_connections_failed_total{server="webhook",reason="error"}"#;
const OVER_BODIES: &str = r#"injectd_requests_rejected_total{server="webhook",reason="bodies"}"#;

/// A review of this many bytes.
fn padded(bytes: usize) -> String {
    format!("{REVIEW}{}", " ".repeat(bytes - REVIEW.len()))
}

#[tokio::test]
async fn a_connection_over_the_limit_gets_503_and_further_ones_are_closed() {
    let process = Process::serve(&["--max-connections", "4"]).await;
    let mut kept = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::open(process.webhook).await;
        connection.must_inject().await;
        kept.push(connection);
    }
    let answer = Connection::open(process.webhook).await.review(REVIEW).await;
    answer.must_ask_for_a_retry();
    assert_eq!(answer.header("connection"), Some("close"));
    process.has_connections(4).await;
    let mut silent = Vec::new();
    silent.push(connect(process.webhook).await);
    assert!(try_connect(process.webhook, &http1_config()).await.is_err(), "must be closed");
    process.counts(OVER_CONNECTIONS, 3.0).await;
    for connection in &mut kept {
        connection.must_inject().await;
    }
    drop((kept, silent));
    process.has_connections(0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_client_that_sends_a_review_still_reads_the_rejection() {
    let process = Process::serve(&["--max-connections", "1"]).await;
    let mut kept = Connection::open(process.webhook).await;
    kept.must_inject().await;
    for bytes in [1 << 10, 10 << 10].repeat(10) {
        let mut rejected = Connection::open(process.webhook).await;
        let answer = rejected.try_review(&padded(bytes)).await;
        answer.unwrap_or_else(|error| panic!("{bytes} bytes: {error:?}")).must_ask_for_a_retry();
        process.has_connections(1).await;
    }
    kept.must_inject().await;
}

#[tokio::test]
async fn many_concurrent_handshakes_do_not_block_other_clients() {
    let process = Process::serve(&[]).await;
    let mut begun = Vec::new();
    for _ in 0..600 {
        let mut stream = tcp(process.webhook).await;
        // The beginning of a handshake record.
        soon("write", stream.write_all(&[22, 3, 1])).await.expect("must be sent");
        begun.push(stream);
    }
    process.has_connections(600).await;
    let mut connection = Connection::open(process.webhook).await;
    connection.must_inject().await;
    assert_eq!(process.metric(OVER_CONNECTIONS).await, Some(0.0));
    drop((begun, connection));
    process.has_connections(0).await;
}

#[tokio::test]
async fn a_header_that_is_too_large_gets_431() {
    let process = Process::serve(&[]).await;
    for (bytes, status) in [(12 << 10, "200"), (20 << 10, "431")] {
        let field = format!("x-padding: {}\r\nconnection: close\r\n\r\n", "x".repeat(bytes));
        let head = head("/", REVIEW.len()).replace("\r\n\r\n", &format!("\r\n{field}"));
        let mut connection = connect(process.webhook).await;
        let asked = format!("{head}{REVIEW}");
        soon("write", connection.write_all(asked.as_bytes())).await.expect("must be sent");
        let answer = read_to_close(&mut connection).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{bytes} bytes: {answer}");
    }
    process.counts(BROKEN_CONNECTIONS, 1.0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn large_bodies_over_the_memory_limit_get_503() {
    let process = Process::serve(&["--max-body-memory", "1500000"]).await;
    // Two connections have a guaranteed share of 375,000 bytes each.
    let in_share = padded(300_000);
    let over_all = padded(2_000_000);
    let mut first = connect(process.webhook).await;
    let (most, rest) = in_share.split_at(250_000);
    let asked = format!("{}{most}", head("/", in_share.len()));
    soon("write", first.write_all(asked.as_bytes())).await.expect("must be sent");
    process.counts(r#"injectd_reviews_in_flight{server="webhook"}"#, 1.0).await;
    // Larger than the limit: it is rejected whatever the first connection holds by now.
    let answer = Connection::open(process.webhook).await.review(&over_all).await;
    answer.must_ask_for_a_retry();
    process.counts(OVER_BODIES, 1.0).await;
    process.must_still_serve().await;
    let last = head("/", REVIEW.len()).replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    let rest = format!("{rest}{last}{REVIEW}");
    soon("write", first.write_all(rest.as_bytes())).await.expect("must be sent");
    soon("flush", first.flush()).await.expect("must be sent");
    let answers = read_to_close(&mut first).await;
    assert_eq!(answers.matches(r#""verdict":"injected""#).count(), 2, "{answers}");
    Connection::open(process.webhook).await.review(&padded(1_000_000)).await;
}
