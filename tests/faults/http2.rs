//! Attacks that are specific to HTTP/2, frame by frame.

use injectd_harness::http2::{
    ACK, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, GOAWAY, HEADERS, PING, POST,
    PREFACE, RST_STREAM, SETTINGS, frame,
};
use rustix::process::Signal;
use tokio::{
    io::{AsyncWriteExt as _, split},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use super::{
    client::{REVIEW, config, try_connect},
    process::{Process, soon},
    shutdown::{IN_FLIGHT, ends_at_once},
};

/// Allowed memory growth after a flood, in KiB.
const MAX_GROWTH_KIB: u64 = 32 << 10;

pub(super) async fn open(process: &Process) -> TlsStream<TcpStream> {
    let config = config(&rustls::version::TLS13, None, "h2");
    let mut stream =
        try_connect(process.webhook, &config).await.expect("the TLS handshake must succeed");
    let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    soon("write", stream.write_all(&begin)).await.expect("must be sent");
    stream
}

/// Sends frames until the connection is closed or all are sent. Returns whether the server sent
/// GOAWAY.
async fn flood(process: &Process, frames: impl Iterator<Item = Vec<u8>>) -> bool {
    let (mut answers, mut requests) = split(open(process).await);
    let send = async {
        for frame in frames {
            if requests.write_all(&frame).await.is_err() {
                return;
            }
        }
        // The server may already have closed the connection.
        drop(requests.write_all(&frame(PING, 0, 0, &[0; 8])).await);
        drop(requests.flush().await);
    };
    let listen = async {
        while let Some(Frame { kind, .. }) = Frame::read(&mut answers).await {
            match kind {
                GOAWAY => return true,
                PING => return false,
                _ => {}
            }
        }
        false
    };
    let ((), said_goodbye) = soon("flood", async { tokio::join!(send, listen) }).await;
    said_goodbye
}

/// Reads the body of the next answer.
async fn answer(stream: &mut TlsStream<TcpStream>) -> String {
    let mut answer = Vec::new();
    while let Some(received) = soon("frame", Frame::read(stream)).await {
        if received.kind == DATA {
            answer.extend(received.payload);
            if received.flags & END_STREAM != 0 {
                break;
            }
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn resets() -> impl Iterator<Item = Vec<u8>> {
    (0..10_000).map(|number| {
        let stream = 2 * number + 1;
        let reset = frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
        [frame(HEADERS, END_HEADERS, stream, POST), reset].concat()
    })
}

async fn memory_must_hold(process: &Process, before: u64) {
    let after = process.resident_kib();
    assert!(after < before + MAX_GROWTH_KIB, "grew from {before} to {after} KiB");
    process.has_connections(0).await;
    process.must_still_serve().await;
}

#[tokio::test]
async fn immediate_resets_of_streams_close_the_connection_and_take_no_memory() {
    let process = Process::serve(&[]).await;
    process.must_still_serve().await;
    let before = process.resident_kib();
    for _ in 0..5 {
        assert!(flood(&process, resets()).await, "the server must end a flood with GOAWAY");
    }
    memory_must_hold(&process, before).await;
    let in_flight = process.metric(IN_FLIGHT).await;
    assert_eq!(in_flight, Some(0.0));
}

#[tokio::test]
async fn an_endless_header_closes_the_connection_and_takes_no_memory() {
    let process = Process::serve(&[]).await;
    process.must_still_serve().await;
    let before = process.resident_kib();
    let begin = frame(HEADERS, END_STREAM, 1, POST);
    // A header field without indexing: `a: ` and 4,000 bytes.
    let field = [b"\x00\x01a\x7f\xa1\x1e".as_slice(), &[b'x'; 4000]].concat();
    let more = std::iter::repeat_n(frame(CONTINUATION, 0, 1, &field), 10_000);
    flood(&process, std::iter::once(begin).chain(more)).await;
    memory_must_hold(&process, before).await;
}

#[tokio::test]
async fn pings_and_settings_take_no_memory() {
    let process = Process::serve(&[]).await;
    process.must_still_serve().await;
    let before = process.resident_kib();
    let pair = [frame(PING, ACK, 0, &[1; 8]), frame(SETTINGS, 0, 0, &[])].concat();
    flood(&process, std::iter::repeat_n(pair, 20_000)).await;
    memory_must_hold(&process, before).await;
}

#[tokio::test]
async fn a_review_in_flight_is_answered_and_the_client_gets_goaway() {
    let mut process = Process::serve(&[]).await;
    let mut stream = open(&process).await;
    let begun = frame(HEADERS, END_HEADERS, 1, POST);
    soon("write", stream.write_all(&begun)).await.expect("must be sent");
    process.counts(IN_FLIGHT, 1.0).await;
    process.signal(Signal::INT);
    process.logs("shutting down").await;
    let body = frame(DATA, END_STREAM, 1, REVIEW.as_bytes());
    soon("write", stream.write_all(&body)).await.expect("must be sent");
    let (mut answer, mut has_goaway) = (Vec::new(), false);
    while let Some(received) = soon("frame", Frame::read(&mut stream)).await {
        match received.kind {
            DATA => answer.extend(received.payload),
            GOAWAY => has_goaway = true,
            // The server waits for this acknowledgement before its second GOAWAY. After that, the
            // connection may be closed.
            PING if received.flags & ACK == 0 => {
                drop(stream.write_all(&frame(PING, ACK, 0, &received.payload)).await);
            }
            _ => {}
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains(r#""verdict":"injected""#), "{answer}");
    assert!(has_goaway, "the server must send GOAWAY");
    ends_at_once(&mut process).await;
}

#[tokio::test]
async fn a_body_may_end_with_an_empty_frame() {
    let mut process = Process::serve(&[]).await;
    let length = format!("\x0f\x0d\x03{}", REVIEW.len());
    let (first, second) = REVIEW.as_bytes().split_at(100);
    let in_one: &[_] = &[REVIEW.as_bytes()];
    for length in [length.as_bytes(), b""] {
        let mut stream = open(&process).await;
        for (number, pieces) in [(1, in_one), (3, &[first, b"", second])] {
            let mut request = frame(HEADERS, END_HEADERS, number, &[POST, length].concat());
            for piece in pieces {
                request.extend(frame(DATA, 0, number, piece));
            }
            request.extend(frame(DATA, END_STREAM, number, b""));
            soon("write", stream.write_all(&request)).await.expect("must be sent");
            let answer = answer(&mut stream).await;
            assert!(answer.contains(r#""verdict":"injected""#), "{answer}");
        }
    }
    process.signal(Signal::INT);
    ends_at_once(&mut process).await;
}
