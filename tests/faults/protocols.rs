//! Protocol negotiation, announced body sizes, and gRPC calls to the webhook.

use injectd_harness::http2::{
    END_HEADERS, END_STREAM, Frame, HEADERS, POST, PREFACE, SETTINGS, frame,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    client::{Connection, REVIEW, config, connect, head, read_to_close, try_connect},
    http2::open,
    process::{Process, soon},
};

#[tokio::test]
async fn a_connection_uses_the_protocol_that_alpn_negotiated() {
    let process = Process::serve(&[]).await;
    let http2 = config(&rustls::version::TLS13, None, "h2");
    let mut stream =
        try_connect(process.webhook, &http2).await.expect("the TLS handshake must succeed");
    let request = format!("{}{REVIEW}", head("/", REVIEW.len()));
    soon("write", stream.write_all(request.as_bytes())).await.expect("must be sent");
    let answer = read_to_close(&mut stream).await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");

    let mut stream = connect(process.webhook).await;
    let preface = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    soon("write", stream.write_all(&preface)).await.expect("must be sent");
    let answer = read_to_close(&mut stream).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer:?}");
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_body_with_a_content_length_over_the_limit_is_rejected_immediately() {
    let process = Process::serve(&[]).await;
    for (bytes, more) in [(10_usize << 30, ""), (11 << 20, "expect: 100-continue\r\n")] {
        let head = head("/", bytes).replace("\r\n\r\n", &format!("\r\n{more}\r\n"));
        let mut stream = connect(process.webhook).await;
        let begun = if more.is_empty() { format!("{head}{{") } else { head };
        soon("write", stream.write_all(begun.as_bytes())).await.expect("must be sent");
        let mut answer = [0; 12];
        soon("answer", stream.read_exact(&mut answer)).await.expect("must be answered");
        assert_eq!(&answer, b"HTTP/1.1 413", "{bytes}");
    }
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_grpc_call_to_the_webhook_gets_a_grpc_status_immediately() {
    let process = Process::serve(&[]).await;
    let mut stream = open(&process).await;
    // content-type: application/grpc, as a literal with an indexed name.
    let call = [POST, b"\x0f\x10\x10application/grpc"].concat();
    let call = frame(HEADERS, END_HEADERS, 1, &call);
    soon("write", stream.write_all(&call)).await.expect("must be sent");
    let ended = async {
        loop {
            match Frame::read(&mut stream).await {
                Some(found) if found.kind == HEADERS => return found.flags & END_STREAM != 0,
                Some(_) => {}
                None => return false,
            }
        }
    };
    assert!(soon("answer", ended).await, "the response must have trailers only");
    let refused = r#"injectd_requests_rejected_total{server="webhook",reason="grpc"}"#;
    process.counts(refused, 1.0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_large_review_is_answered_like_a_small_one_and_on_another_thread() {
    let process = Process::serve(&["--worker-threads", "1"]).await;
    let large = format!("{REVIEW}{}", " ".repeat(3 << 20));
    let mut connection = Connection::open(process.webhook).await;
    let small = connection.review(REVIEW).await;
    let before = process.threads().len();
    let large = connection.review(&large).await;
    assert_eq!(small.body, large.body);
    assert_eq!(process.threads().len(), before + 1, "{:?}", process.threads());
}
