//! Callers that take memory or time: what they get is bounded, and others are served as before.
//!
//! A short run has fewer of them.

use std::{collections::BTreeMap, fs, io::Write as _, time::Duration};

use flate2::{Compress, Compression, FlushCompress, write::GzEncoder};
use futures_util::stream;
use injectd_api::{
    client::Connect,
    v1::{InjectRequest, inject_stream_response::Result as Answer},
};
use injectd_harness::{
    expect::{Outcome, eventually, expect, failed},
    http2::{CANCEL, DATA, END_STREAM, RST_STREAM, call, connection::Connection, frame, message},
    lab::{Bench, root},
    scenario::{note, with_binary},
};
use prost::Message as _;
use serde_json::Value;
use tokio::time::Instant;

use super::server::{
    INJECT, STREAM, Server, answers_of, expect_injected, of_stream, request, with_server,
};

const MAX_BYTES: usize = 10 << 20;
/// What the allocator may keep.
const NOISE_KIB: u64 = 16 << 10;
/// Of a connection whose client does not read: a window of 1 MiB, requests and answers of one stream,
/// and what the allocator keeps.
const SLOW_READER_KIB: u64 = 3 << 10;
const SLOW_READER_BYTES: usize = 8 << 20;
/// Twice `--max-body-memory`.
const MAX_UNPACKED_KIB: u64 = (2 * 64) << 10;

/// A server that is warm, and the memory it has then.
struct Measured {
    server: Server,
    before: u64,
}

impl Measured {
    async fn start(bench: &Bench, flags: &[&str]) -> Outcome<Self> {
        Self::warm(Server::new(bench, flags)?).await
    }

    async fn warm(mut server: Server) -> Outcome<Self> {
        server.start().await?;
        let large = padded(0)?;
        let requests: Vec<_> =
            (0..2_000).map(|number| of_stream(&number.to_string(), large.clone())).collect();
        let mut client = server.any_client().await?;
        let mut answers = answers_of(&mut client, stream::iter(requests)).await?;
        while let Some(answer) = answers.message().await? {
            match answer.result {
                Some(Answer::Response(response)) => expect_injected(&response)?,
                other => return Err(failed(format!("the answer: {other:?}"))),
            }
        }
        let before = server.injectd.resident_kib()?;
        Ok(Self { server, before })
    }

    async fn connect(&self) -> Outcome<Connection> {
        Connection::open(&self.server.raw()?).await
    }

    /// The memory that the server has more than when it was warm.
    fn grown_kib(&mut self) -> Outcome<u64> {
        Ok(self.server.injectd.resident_kib()?.saturating_sub(self.before))
    }

    /// How much more memory the server has while so many clients send until it takes no more, and read
    /// no answer.
    async fn with_slow_readers(&mut self, connections: u32, streams: u32) -> Outcome<u64> {
        let one = message_of_stream("1")?;
        let data = one.repeat(SLOW_READER_BYTES / one.len());
        let (mut opened, mut is_all_taken) = (Vec::new(), true);
        for _ in 0..connections {
            let mut connection = self.connect().await?;
            for index in 0..streams {
                connection.call(2 * index + 1, STREAM, &[]).await;
                let patience = Duration::from_millis(if index == 0 { 200 } else { 20 });
                let sent = connection.write(2 * index + 1, &data, patience).await;
                is_all_taken &= sent == data.len();
            }
            opened.push(connection);
        }
        let grown = self.grown_kib()?;
        self.server.expect_well().await?;
        let what = format!("{connections} connections of {streams} streams");
        expect(format!("whether the server takes all, {what}"), false, is_all_taken)?;
        expect_at_most(NOISE_KIB + SLOW_READER_KIB * u64::from(connections), grown, &what)?;
        Ok(grown)
    }

    /// Fails unless the server is well and has at most this much more memory.
    async fn expect_at_most(&mut self, kib: u64, what: &str) -> Outcome {
        let grown = self.grown_kib()?;
        self.server.expect_well().await?;
        expect_at_most(kib, grown, what)
    }

    /// Fails unless the memory of closed connections is returned, and then ends the server.
    async fn end_small(mut self) -> Outcome {
        eventually("memory is returned", async || {
            // The allocator returns memory while the server answers requests.
            self.expect_at_most(NOISE_KIB, "after").await
        })
        .await?;
        self.server.injectd.terminate().await
    }
}

fn expect_at_most(kib: u64, found: u64, what: &str) -> Outcome {
    note(&format!("{what}: {} MiB more", found >> 10));
    expect(format!("whether {found} KiB are at most {kib} KiB, {what}"), true, found <= kib)
}

/// The pod of the load test.
fn large_object() -> Outcome<Vec<u8>> {
    let review = fs::read(root().join("loadtest/review-12k.json"))?;
    let review: Value = serde_json::from_slice(&review)?;
    Ok(review["request"]["object"].to_string().into())
}

/// The same with white space before it.
fn padded(bytes: usize) -> Outcome<InjectRequest> {
    let object = [vec![b' '; bytes], large_object()?].concat().into();
    Ok(InjectRequest { object, namespace: "fulfilment".to_owned(), ..request() })
}

fn message_of_stream(uid: &str) -> Outcome<Vec<u8>> {
    Ok(message(&of_stream(uid, padded(0)?).encode_to_vec(), false))
}

#[tokio::test]
async fn clients_that_do_not_read_take_a_bounded_memory_each() -> Outcome {
    with_binary(async |bench| {
        let mut it = Measured::start(bench, &["--max-connections", "100"]).await?;
        let extents: &[_] = &[(1, 1), (1, 50), (20, 4), (60, 2)];
        let extents = if bench.is_long { extents } else { &extents[..3] };
        let mut most = 0;
        for &(connections, streams) in extents {
            most = it.with_slow_readers(connections, streams).await?.max(most);
        }
        // What the C library keeps for later is used again: their memory is free.
        let &(connections, streams) = extents.last().ok_or_else(|| failed("no extent"))?;
        let again = it.with_slow_readers(connections, streams).await?;
        expect_at_most(most + NOISE_KIB, again, "the same again")?;
        it.server.injectd.terminate().await
    })
    .await
}

#[tokio::test]
async fn streams_that_stop_inside_a_message_take_no_memory() -> Outcome {
    with_binary(async |bench| {
        let mut it = Measured::start(bench, &[]).await?;
        let mut connection = it.connect().await?;
        let half = message_of_stream("half")?;
        for index in 0..200 {
            connection.call(2 * index + 1, STREAM, &[]).await;
            connection.send(&frame(DATA, 0, 2 * index + 1, &half[..20])).await;
        }
        connection.read(Duration::from_millis(200)).await;
        it.expect_at_most(NOISE_KIB, "200 half messages").await?;
        connection.read(Duration::ZERO).await;
        expect("whether the connection is closed", false, connection.is_over)?;
        drop(connection);
        it.end_small().await
    })
    .await
}

#[tokio::test]
async fn streams_that_are_reset_at_once_take_no_memory() -> Outcome {
    const AT_ONCE: u32 = 100;
    with_binary(async |bench| {
        let mut it = Measured::start(bench, &[]).await?;
        let (mut sent, mut goaways) = (0, BTreeMap::<_, u32>::new());
        while sent < 10_000 {
            let mut connection = it.connect().await?;
            let mut stream = 1;
            while sent < 10_000 && !connection.is_over && connection.goaway.is_none() {
                let pair = |offset: u32| {
                    let stream = stream + 2 * offset;
                    let reset = frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
                    [call(stream, STREAM, &[]), reset].concat()
                };
                connection.send(&(0..AT_ONCE).flat_map(pair).collect::<Vec<_>>()).await;
                connection.read(Duration::ZERO).await;
                (sent, stream) = (sent + AT_ONCE, stream + 2 * AT_ONCE);
            }
            connection.read(Duration::from_millis(50)).await;
            *goaways.entry(connection.goaway).or_default() += 1;
        }
        note(&format!("connections by the code of GOAWAY: {goaways:?}"));
        it.expect_at_most(NOISE_KIB, "10000 resets").await?;
        it.end_small().await
    })
    .await
}

#[tokio::test]
async fn the_limit_of_a_message_is_for_its_size_when_decompressed() -> Outcome {
    /// The largest number of unanswered requests of a stream.
    const BOMBS: usize = 64;
    with_binary(async |bench| {
        let mut server = Server::new(bench, &[])?;
        // The C library gives large blocks back at once. Else it keeps some, more on a busy machine, and
        // this would not measure what the server holds.
        server.injectd.set_variable("MALLOC_MMAP_THRESHOLD_", "131072");
        let mut it = Measured::warm(server).await?;
        let large = padded(MAX_BYTES - (16 << 10))?;
        let packed = gzip(&of_stream("bomb", large).encode_to_vec())?;
        for (what, path, sent) in [
            ("one message of 400 MiB", INJECT, message(&zeros(400)?, true)),
            ("64 messages of 10 MiB", STREAM, message(&packed, true).repeat(BOMBS)),
        ] {
            let mut connection = it.connect().await?;
            connection.call(1, path, &[("grpc-encoding", "gzip")]).await;
            // The server does not take all of it, because this client does not read all answers.
            connection.write(1, &sent, Duration::from_secs(2)).await;
            connection.send(&frame(DATA, END_STREAM, 1, b"")).await;
            let (mut most, end) = (0, Instant::now() + Duration::from_secs(3));
            while Instant::now() < end && !connection.has_ended(1) && !connection.is_over {
                connection.read(Duration::from_millis(10)).await;
                most = it.grown_kib()?.max(most);
            }
            drop(connection);
            it.server.expect_well().await?;
            expect_at_most(MAX_UNPACKED_KIB, most, &format!("{what}, {} KiB", sent.len() >> 10))?;
        }
        it.end_small().await
    })
    .await
}

fn gzip(data: &[u8]) -> Outcome<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data)?;
    Ok(encoder.finish()?)
}

/// gzip of this many MiB of zeros, whose checksum is wrong: the same blocks over and over, because to
/// compress all takes long.
fn zeros(mib: usize) -> Outcome<Vec<u8>> {
    let mut block = Vec::with_capacity(64 << 10);
    let mut deflate = Compress::new(Compression::fast(), false);
    deflate.compress_vec(&vec![0; 1 << 20], &mut block, FlushCompress::Full)?;
    expect("whether the block is whole", 1 << 20, deflate.total_in())?;
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    // An empty last block, the checksum and the length.
    Ok([&head[..], &block.repeat(mib), &[3, 0], &[0; 8]].concat())
}

#[tokio::test]
async fn calls_whose_messages_never_end_are_ended_and_do_not_keep_others_waiting() -> Outcome {
    never_ending(INJECT, &[]).await
}

#[tokio::test]
async fn a_callers_long_deadline_does_not_keep_an_unending_message() -> Outcome {
    never_ending(INJECT, &[("grpc-timeout", "1H")]).await
}

#[tokio::test]
async fn streams_whose_messages_never_end_are_ended_and_do_not_keep_others_waiting() -> Outcome {
    never_ending(STREAM, &[]).await
}

/// Streams that together ask for all memory for bodies, and never send the rest.
async fn never_ending(path: &str, headers: &[(&str, &str)]) -> Outcome {
    with_server(&["--body-timeout", "5s", "--write-timeout", "5s"], async |server| {
        let data = &message(&vec![b'x'; MAX_BYTES], false)[..4 << 20];
        let mut opened = Vec::new();
        for _ in 0..16 {
            let mut connection = Connection::open(&server.raw()?).await?;
            connection.call(1, path, headers).await;
            connection.write(1, data, Duration::from_secs(1)).await;
            opened.push(connection);
        }
        // Within the share of memory that each connection has.
        server.expect_served(&Connect::default(), padded(1 << 20)?).await?;
        eventually("all streams are ended", async || {
            for connection in &mut opened {
                // Answers PINGs, as any client does.
                connection.read(Duration::from_millis(20)).await;
            }
            let open = opened.iter().filter(|stream| !stream.has_ended(1)).count();
            if open > 0 { Err(failed(format!("{open} are open"))) } else { Ok(()) }
        })
        .await?;
        server.injectd.terminate().await
    })
    .await
}
