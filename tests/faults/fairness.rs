//! Connections that take as much as they can, and a well-behaved one, which must still be served.

use injectd_harness::http2::{DATA, END_HEADERS, END_STREAM, HEADERS, POST, SETTINGS, frame};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use tokio_rustls::client::TlsStream;

use super::{
    client::{Connection, REVIEW, connect, head},
    http2::open,
    process::{Process, soon, until},
    shutdown::IN_FLIGHT,
};

const REFUSED: &str = r#"injectd_requests_rejected_total{server="webhook",reason="requests"}"#;
/// `SETTINGS_INITIAL_WINDOW_SIZE`: 0.
const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

/// A connection with this many open requests, without their bodies.
async fn with_open_streams(process: &Process, streams: u32) -> TlsStream<TcpStream> {
    let mut connection = open(process).await;
    let begun = |stream| frame(HEADERS, END_HEADERS, 2 * stream + 1, POST);
    let begun: Vec<u8> = (0..streams).flat_map(begun).collect();
    soon("write", connection.write_all(&begun)).await.expect("must be sent");
    connection
}

/// A connection that has sent this many bytes of an unfinished body.
async fn with_open_body(process: &Process, sent: usize) -> TlsStream<TcpStream> {
    let mut connection = connect(process.webhook).await;
    let begun = format!("{}{}", head("/", sent + 1), " ".repeat(sent));
    soon("write", connection.write_all(begun.as_bytes())).await.expect("must be sent");
    connection
}

async fn must_inject_often(connection: &mut Connection) {
    for _ in 0..20 {
        connection.must_inject().await;
    }
}

#[tokio::test]
async fn streams_without_bodies_do_not_block_other_connections() {
    let process = Process::serve(&["--max-requests", "100"]).await;
    let mut behaved = Connection::open(process.webhook).await;
    behaved.must_inject().await;
    let mut hogs = Vec::new();
    for _ in 0..8 {
        hogs.push(with_open_streams(&process, 100).await);
    }
    // Of 800 requests, 100 are within the limit, and seven connections get their share of 50.
    process.counts(REFUSED, 800.0 - 100.0 - 7.0 * 50.0).await;
    must_inject_often(&mut behaved).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_rejected_stream_releases_its_slot_immediately() {
    let process = Process::serve(&["--max-requests", "10"]).await;
    let mut hogs = Vec::new();
    for _ in 0..20 {
        hogs.push(with_open_streams(&process, 100).await);
    }
    process.counts(REFUSED, 2000.0 - 60.0).await;
    let in_flight = process.metric(IN_FLIGHT).await.expect("a gauge");
    assert!(in_flight <= 60.0, "{in_flight} of 2,000 requests are still held");
    process.must_still_serve().await;
}

#[tokio::test]
async fn an_answer_that_is_not_read_counts_as_a_request() {
    let process = Process::serve(&["--max-requests", "10"]).await;
    let mut stalled = open(&process).await;
    let mut requests = frame(SETTINGS, 0, 0, NO_WINDOW);
    for number in 0..30 {
        let stream = 2 * number + 1;
        requests.extend(frame(HEADERS, END_HEADERS, stream, POST));
        requests.extend(frame(DATA, END_STREAM, stream, REVIEW.as_bytes()));
    }
    soon("write", stalled.write_all(&requests)).await.expect("must be sent");
    process.counts(REFUSED, 20.0).await;
    process.must_still_serve().await;
    drop(stalled);
    process.has_connections(0).await;
    let refused = process.metric(REFUSED).await;
    must_inject_often(&mut Connection::open(process.webhook).await).await;
    assert_eq!(process.metric(REFUSED).await, refused, "all slots must be free again");
}

#[tokio::test]
async fn a_rejection_that_is_not_read_counts_as_a_request() {
    let process = Process::serve(&["--max-requests", "10"]).await;
    let mut stalled = open(&process).await;
    // GET, which is rejected with a text.
    let get = [b"\x82".as_slice(), &POST[1..]].concat();
    let mut requests = frame(SETTINGS, 0, 0, NO_WINDOW);
    for number in 0..30 {
        requests.extend(frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &get));
    }
    soon("write", stalled.write_all(&requests)).await.expect("must be sent");
    process.counts(REFUSED, 20.0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn large_unfinished_bodies_do_not_block_other_bodies() {
    let process = Process::serve(&["--max-body-memory", "1000000"]).await;
    let mut hogs = Vec::new();
    for number in 1..=4 {
        hogs.push(with_open_body(&process, 900_000).await);
        until("a hog", async || {
            let refused = r#"injectd_requests_rejected_total{server="webhook",reason="bodies"}"#;
            let [in_flight, refused] =
                [process.metric(IN_FLIGHT).await?, process.metric(refused).await?];
            (in_flight + refused >= f64::from(number)).then_some(())
        })
        .await;
    }
    let review = format!("{REVIEW}{}", " ".repeat(60_000 - REVIEW.len()));
    let mut behaved = Connection::open(process.webhook).await;
    for _ in 0..20 {
        let answer = behaved.review(&review).await;
        assert!(answer.is_injection(), "{answer:?}");
    }
}
