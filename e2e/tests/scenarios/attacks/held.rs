//! Attackers that hold resources of the server: streams, bodies, answers, requests.

use std::{collections::BTreeSet, time::Duration};

use injectd_harness::{
    expect::{Outcome, failed},
    http2::{
        DATA, END_HEADERS, END_STREAM, HEADERS,
        connection::{Connection, INITIAL_WINDOW_SIZE},
        frame,
    },
};
use injectd_testkit::reviews::TYPICAL;
use tokio::time::timeout;

use super::crowd::{Attacker, PAUSE};

/// Streams of a connection that [`refusals`] does not hold, but uses for requests.
const SPARE: usize = 20;
/// A window that stays closed for so long is one of a server that takes no more.
const PATIENCE: Duration = Duration::from_millis(200);

/// A connection with as many streams as the server allows.
struct Streams {
    connection: Connection,
    live: BTreeSet<u32>,
    next: u32,
}

impl Streams {
    async fn open(it: &Attacker, settings: &[(u16, u32)]) -> Outcome<Self> {
        let connection = Connection::open_with(&it.place.webhook(), settings).await?;
        let mut streams = Self { connection, live: BTreeSet::new(), next: 1 };
        // The server's settings.
        streams.connection.read(PAUSE).await;
        Ok(streams)
    }

    /// Reads frames; returns how many streams may be opened, and how many have ended.
    async fn room(&mut self) -> Outcome<(usize, usize)> {
        self.connection.read(PAUSE).await;
        if self.connection.is_over {
            return Err(failed("the server has closed the connection"));
        }
        let before = self.live.len();
        for stream in self.connection.take_ended() {
            self.live.remove(&stream);
        }
        let room = self.connection.limit.saturating_sub(self.live.len());
        Ok((room, before - self.live.len()))
    }

    /// Ids of streams, which the caller opens.
    fn begin(&mut self, count: usize) -> Vec<u32> {
        let ids: Vec<u32> = (self.next..).step_by(2).take(count).collect();
        self.next += 2 * u32::try_from(count).unwrap_or_default();
        self.live.extend(&ids);
        ids
    }
}

/// `POST /?timeout=10s` of a body of JSON, with its length if it is known.
pub(super) fn head(stream: u32, flags: u8, length: Option<usize>) -> Vec<u8> {
    // Literals and entries of the static table (RFC 7541): POST, https; :path, :authority, content-type.
    let mut block = b"\x83\x87\x04\x0d/?timeout=10s\x01\x09localhost".to_vec();
    block.extend(b"\x0f\x10\x10application/json");
    if let Some(length) = length {
        let length = length.to_string();
        block.extend(
            [&[0x0f, 0x0d, u8::try_from(length.len()).unwrap_or(0)][..], length.as_bytes()]
                .concat(),
        );
    }
    frame(HEADERS, END_HEADERS | flags, stream, &block)
}

/// As many streams as the server allows, with bodies that begin with this and do not end.
pub(super) async fn endless_streams(it: &Attacker, body: &[u8]) -> Outcome {
    let mut streams = Streams::open(it, &[]).await?;
    loop {
        let (room, ended) = streams.room().await?;
        it.counts.add("streams", room);
        it.counts.add("streams ended by the server", ended);
        let block: Vec<u8> = streams
            .begin(room)
            .into_iter()
            .flat_map(|stream| {
                let data = if body.is_empty() { Vec::new() } else { frame(DATA, 0, stream, body) };
                [head(stream, 0, None), data].concat()
            })
            .collect();
        streams.connection.send(&block).await;
    }
}

/// A request of HTTP/1.1 that announces 3 MiB, sends 1 MiB and stops.
pub(super) async fn stalled_body(it: &Attacker) -> Outcome {
    let mut request = it.place.request(&vec![b' '; 3 << 20]);
    request.truncate(request.len() - (2 << 20));
    let mut connection = it.place.endpoint.connect().await?;
    if timeout(Duration::from_secs(1), connection.send(&request)).await.is_err() {
        it.counts.add("not taken", 1);
    }
    it.counts.add("bodies", 1);
    connection.receive().await?;
    it.counts.add("answered", 1);
    Ok(())
}

/// Complete reviews, with a window of zero bytes for their answers.
pub(super) async fn untaken_answers(it: &Attacker) -> Outcome {
    let mut streams = Streams::open(it, &[(INITIAL_WINDOW_SIZE, 0)]).await?;
    loop {
        let (room, _) = streams.room().await?;
        for stream in streams.begin(room.min(SPARE)) {
            streams.connection.send(&head(stream, 0, None)).await;
            let body = TYPICAL.as_bytes();
            if streams.connection.write(stream, body, PATIENCE).await < body.len() {
                break;
            }
            streams.connection.end(stream).await;
            it.counts.add("reviews", 1);
        }
    }
}

/// Streams that do not end, and complete requests beyond them.
pub(super) async fn refusals(it: &Attacker) -> Outcome {
    let mut streams = Streams::open(it, &[]).await?;
    let (room, _) = streams.room().await?;
    let held = streams.begin(room.saturating_sub(SPARE));
    let heads: Vec<u8> = held.into_iter().flat_map(|stream| head(stream, 0, None)).collect();
    streams.connection.send(&heads).await;
    loop {
        let (room, ended) = streams.room().await?;
        it.counts.add("requests", room);
        it.counts.add("requests ended", ended);
        let requests = streams.begin(room);
        let empty = |stream| head(stream, END_STREAM, Some(0));
        streams.connection.send(&requests.into_iter().flat_map(empty).collect::<Vec<_>>()).await;
    }
}
