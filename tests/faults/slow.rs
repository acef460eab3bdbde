//! Slow clients: each is limited by a timeout, and other clients do not wait for it.

use std::{iter::repeat, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, split},
    net::TcpSocket,
    time::interval,
};
use tokio_rustls::TlsConnector;

use super::{
    client::{self, Connection, REVIEW, connect, head, http1_config, read_to_close, tcp},
    process::{Process, soon},
};

/// Interval between two bytes of a slow client.
const DRIP_INTERVAL: Duration = Duration::from_millis(20);

const SLOW_BODIES: &str = r#"injectd_requests_rejected_total{server="webhook",reason="slow_body"}"#;
const SLOW_HANDSHAKES: &str =
    r#"injectd_handshakes_failed_total{server="webhook",reason="timeout"}"#;
const FAILED_HANDSHAKES: &str =
    r#"injectd_handshakes_failed_total{server="webhook",reason="error"}"#;

#[tokio::test]
async fn a_slow_header_times_out() {
    let process = Process::serve(&["--header-timeout", "300ms"]).await;
    let (mut answers, mut requests) = split(connect(process.webhook).await);
    let mut drips = interval(DRIP_INTERVAL);
    let drip = async {
        // The value of the last field never ends.
        for byte in b"POST / HTTP/1.1\r\nhost: ".iter().chain(repeat(&b'x')) {
            drips.tick().await;
            if requests.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    let mut heard = Vec::new();
    let closed = async {
        tokio::select! {
            () = drip => {}
            _ = answers.read_to_end(&mut heard) => {}
        }
    };
    soon("close", closed).await;
    assert!(!String::from_utf8_lossy(&heard).contains("200 OK"));
    process.has_connections(0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let process = Process::serve(&["--header-timeout", "300ms"]).await;
    let mut connection = Connection::open(process.webhook).await;
    connection.must_inject().await;
    process.has_connections(0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_body_that_times_out_gets_503_and_the_connection_is_closed() {
    let process = Process::serve(&["--body-timeout", "300ms"]).await;
    let mut stream = connect(process.webhook).await;
    let begun = format!("{}{}", head("/", REVIEW.len()), &REVIEW[..100]);
    soon("write", stream.write_all(begun.as_bytes())).await.expect("must be sent");
    let answer = read_to_close(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    process.counts(SLOW_BODIES, 1.0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_body_after_the_api_servers_timeout_is_not_reviewed() {
    let process = Process::serve(&[]).await;
    let mut stream = connect(process.webhook).await;
    let begun = format!("{}{}", head("/?timeout=1s", REVIEW.len()), &REVIEW[..100]);
    soon("write", stream.write_all(begun.as_bytes())).await.expect("must be sent");
    let answer = read_to_close(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let reviewed = r#"injectd_reviews_total{server="webhook",kind="pod",verdict="injected"}"#;
    assert_eq!(process.metric(reviewed).await, Some(0.0));
    process.must_still_serve().await;
    assert_eq!(process.metric(reviewed).await, Some(1.0));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_closed_and_others_are_served() {
    let process = Process::serve(&["--write-timeout", "300ms"]).await;
    let socket = TcpSocket::new_v4().expect("a socket must open");
    socket.set_recv_buffer_size(4096).expect("a buffer must be small");
    let stream = soon("connection", socket.connect(process.webhook)).await.expect("must be open");
    let connector = TlsConnector::from(Arc::new(http1_config()));
    let name = "localhost".try_into().expect("must be a name");
    let mut stream =
        soon("TLS", connector.connect(name, stream)).await.expect("the TLS handshake must succeed");
    let request = format!("{}{REVIEW}", head("/", REVIEW.len()));
    let closed = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    let served = async {
        for _ in 0..5 {
            process.must_still_serve().await;
        }
    };
    tokio::join!(soon("close", closed), served);
    process.has_connections(0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn an_endless_handshake_times_out() {
    let process = Process::serve(&["--handshake-timeout", "300ms"]).await;
    let mut silent = tcp(process.webhook).await;
    let mut half = tcp(process.webhook).await;
    // A TLS record that is shorter than announced.
    half.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1]).await.expect("must be sent");
    for stream in [&mut silent, &mut half] {
        assert_eq!(read_to_close(stream).await, "");
    }
    process.counts(SLOW_HANDSHAKES, 2.0).await;
    process.has_connections(0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn connections_without_tls_1_3_are_refused() {
    let process = Process::serve(&[]).await;
    let mut plain = tcp(process.webhook).await;
    plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("must be sent");
    let heard = read_to_close(&mut plain).await;
    assert!(!heard.starts_with("HTTP/"), "{heard}");
    process.counts(FAILED_HANDSHAKES, 1.0).await;
    let old = client::config(&rustls::version::TLS12, None, "http/1.1");
    let refused = client::try_connect(process.webhook, &old).await;
    assert!(refused.is_err(), "TLS 1.2 must be refused");
    process.counts(FAILED_HANDSHAKES, 2.0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn short_connections_leave_nothing_behind() {
    let process = Process::serve(&[]).await;
    for number in 0..500 {
        let mut stream = tcp(process.webhook).await;
        if number % 3 == 0 {
            stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1]).await.expect("must be sent");
        } else if number % 50 == 1 {
            drop(stream);
            drop(connect(process.webhook).await);
        }
    }
    process.counts(r#"injectd_connections_total{server="webhook"}"#, 500.0).await;
    process.has_connections(0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_client_that_closes_during_a_review_leaves_nothing_in_flight() {
    let process = Process::serve(&[]).await;
    let mut stream = connect(process.webhook).await;
    let begun = format!("{}{}", head("/", REVIEW.len()), &REVIEW[..100]);
    soon("write", stream.write_all(begun.as_bytes())).await.expect("must be sent");
    let in_flight = r#"injectd_reviews_in_flight{server="webhook"}"#;
    process.counts(in_flight, 1.0).await;
    drop(stream);
    process.has_connections(0).await;
    assert_eq!(process.metric(in_flight).await, Some(0.0));
}
