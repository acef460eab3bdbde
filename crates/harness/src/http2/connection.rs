//! A connection that keeps to the server's windows, and reads only when a test asks it to.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::client::TlsStream;

use super::{
    ACK, DATA, END_STREAM, Frame, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, call, frame,
};
use crate::{
    client::Webhook,
    expect::{DEADLINE, Outcome},
};

const MAX_CONCURRENT_STREAMS: u16 = 3;
/// A setting: the bytes that a stream may carry before the other side allows more.
pub const INITIAL_WINDOW_SIZE: u16 = 4;
/// The streams of a connection until the server announces its limit (RFC 9113 recommends 100).
const STREAMS: usize = 100;
// RFC 9113. The window of the connection begins with it whatever the settings say.
const FIRST_WINDOW: i64 = 65_535;
/// The largest payload of a frame that a server accepts by default.
const FRAME_BYTES: usize = 16 << 10;
/// How long one look for frames takes.
// Long enough for a frame on the loopback, short enough that a held connection still acts.
const LOOK: Duration = Duration::from_millis(50);

/// HTTP/2 over TLS. It reads frames of the server only in [`Connection::read`] and
/// [`Connection::write`], and never enlarges the server's windows.
#[derive(Debug)]
pub struct Connection {
    stream: TlsStream<TcpStream>,
    received: Vec<u8>,
    /// The bytes that the server accepts: on the connection, on a new stream, and by stream.
    window: i64,
    first_window: i64,
    windows: HashMap<u32, i64>,
    /// How many streams the server allows at once.
    pub limit: usize,
    /// Whether one side has closed it.
    pub is_over: bool,
    /// The streams that the server has ended, and the codes of those that it has reset.
    ended: BTreeSet<u32>,
    resets: BTreeMap<u32, u32>,
    /// The code with which the server ends the connection.
    pub goaway: Option<u32>,
}

impl Connection {
    /// Connects and sends empty settings.
    ///
    /// # Errors
    ///
    /// Fails if the server does not accept it.
    pub async fn open(server: &Webhook<'_>) -> Outcome<Self> {
        Self::open_with(server, &[]).await
    }

    /// Connects and sends these settings, `(key, value)`.
    ///
    /// # Errors
    ///
    /// As [`Connection::open`].
    pub async fn open_with(server: &Webhook<'_>, settings: &[(u16, u32)]) -> Outcome<Self> {
        let mut connection = Self {
            stream: timeout(DEADLINE, server.connect(&["h2"])).await??,
            received: Vec::new(),
            window: FIRST_WINDOW,
            first_window: FIRST_WINDOW,
            windows: HashMap::new(),
            limit: STREAMS,
            is_over: false,
            ended: BTreeSet::new(),
            resets: BTreeMap::new(),
            goaway: None,
        };
        let settings = settings
            .iter()
            .flat_map(|(key, value)| [&key.to_be_bytes()[..], &value.to_be_bytes()].concat());
        let settings = frame(SETTINGS, 0, 0, &settings.collect::<Vec<_>>());
        connection.send(&[PREFACE, &settings].concat()).await;
        Ok(connection)
    }

    /// Sends all of it; `false` if the server does not take it in time, or has closed.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        let sent = timeout(DEADLINE, sent).await;
        self.is_over |= matches!(sent, Ok(Err(_)));
        matches!(sent, Ok(Ok(())))
    }

    /// Begins a call of gRPC.
    pub async fn call(&mut self, stream: u32, path: &str, headers: &[(&str, &str)]) -> bool {
        self.windows.insert(stream, self.first_window);
        self.send(&call(stream, path, headers)).await
    }

    /// Sends data as far as the server's windows allow, and gives up when they stay closed for
    /// `patience`. Returns the number of bytes sent.
    pub async fn write(&mut self, stream: u32, data: &[u8], patience: Duration) -> usize {
        let (mut sent, mut end) = (0, Instant::now() + patience);
        while sent < data.len() && !self.is_over && !self.resets.contains_key(&stream) {
            self.read(Duration::ZERO).await;
            let window = self.window.min(self.window_of(stream));
            // A window may be negative after a change of the settings (RFC 9113, 6.9.2).
            let room = usize::try_from(window).unwrap_or(0).min(FRAME_BYTES).min(data.len() - sent);
            if room == 0 {
                if Instant::now() > end {
                    break;
                }
                self.read(LOOK).await;
                continue;
            }
            if !self.send(&frame(DATA, 0, stream, &data[sent..sent + room])).await {
                break;
            }
            self.widen(0, -i64::try_from(room).unwrap_or(0));
            self.widen(stream, -i64::try_from(room).unwrap_or(0));
            sent += room;
            end = Instant::now() + patience;
        }
        sent
    }

    /// Ends a stream.
    pub async fn end(&mut self, stream: u32) -> bool {
        self.send(&frame(DATA, END_STREAM, stream, &[])).await
    }

    /// Reads what the server sends for so long, and acknowledges as any client.
    pub async fn read(&mut self, patience: Duration) {
        let end = Instant::now() + patience;
        while !self.is_over {
            match timeout_at(end, self.stream.read_buf(&mut self.received)).await {
                Err(_) => return,
                Ok(Ok(1..)) => {}
                Ok(Ok(0) | Err(_)) => self.is_over = true,
            }
            while let Some(frame) = Frame::take(&mut self.received) {
                self.take(&frame).await;
            }
        }
    }

    /// The streams that the server has ended or reset since the last call.
    pub fn take_ended(&mut self) -> BTreeSet<u32> {
        let mut ended = std::mem::take(&mut self.ended);
        ended.extend(std::mem::take(&mut self.resets).into_keys());
        for stream in &ended {
            self.windows.remove(stream);
        }
        ended
    }

    /// Whether the server has ended or reset a stream.
    #[must_use]
    pub fn has_ended(&self, stream: u32) -> bool {
        self.ended.contains(&stream) || self.resets.contains_key(&stream)
    }

    async fn take(&mut self, frame: &Frame) {
        let is_ack = frame.flags & ACK != 0;
        let number = |at: usize| {
            frame
                .payload
                .get(at..)
                .and_then(<[u8]>::first_chunk)
                .map_or(0, |bytes| u32::from_be_bytes(*bytes))
        };
        match frame.kind {
            SETTINGS if !is_ack => {
                for setting in frame.payload.as_chunks::<6>().0 {
                    self.apply(*setting);
                }
                self.send(&super::frame(SETTINGS, ACK, 0, &[])).await;
            }
            PING if !is_ack => {
                self.send(&super::frame(PING, ACK, 0, &frame.payload)).await;
            }
            WINDOW_UPDATE => self.widen(frame.stream, number(0).into()),
            HEADERS | DATA if frame.flags & END_STREAM != 0 => {
                self.ended.insert(frame.stream);
            }
            RST_STREAM => {
                self.resets.insert(frame.stream, number(0));
            }
            GOAWAY => self.goaway = Some(number(4)),
            _ => {}
        }
    }

    fn apply(&mut self, [a, b, value @ ..]: [u8; 6]) {
        let (key, value) = (u16::from_be_bytes([a, b]), u32::from_be_bytes(value));
        if key == MAX_CONCURRENT_STREAMS {
            self.limit = usize::try_from(value).unwrap_or(STREAMS);
        } else if key == INITIAL_WINDOW_SIZE {
            let value = i64::from(value);
            for window in self.windows.values_mut() {
                *window += value - self.first_window;
            }
            self.first_window = value;
        }
    }

    fn window_of(&self, stream: u32) -> i64 {
        self.windows.get(&stream).copied().unwrap_or(self.first_window)
    }

    /// Changes the window of a stream, or of the connection.
    fn widen(&mut self, stream: u32, bytes: i64) {
        let window = match stream {
            0 => &mut self.window,
            _ => self.windows.entry(stream).or_insert(self.first_window),
        };
        *window += bytes;
    }
}
