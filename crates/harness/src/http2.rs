//! HTTP/2 frame by frame (RFC 9113), for clients that break the rules, which a library does not let
//! them. [`connection`] counts windows as a client must; [`client`] is a library's, for any body.

use tokio::io::{AsyncRead, AsyncReadExt as _};

pub mod client;
pub mod connection;

/// What a connection begins with.
// The numbers here come from RFC 9113. No library is used, because it would not send what the
// attacks send.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// The kinds of frames.
/// A part of a body.
pub const DATA: u8 = 0;
/// Opens a stream, or ends it as trailers.
pub const HEADERS: u8 = 1;
/// Ends a stream at once.
pub const RST_STREAM: u8 = 3;
/// Parameters of the connection.
pub const SETTINGS: u8 = 4;
/// Is answered.
pub const PING: u8 = 6;
/// Ends the connection.
pub const GOAWAY: u8 = 7;
/// Allows the other side to send more.
pub const WINDOW_UPDATE: u8 = 8;
/// More of the block of [`HEADERS`].
pub const CONTINUATION: u8 = 9;

// Flags.
/// Of [`SETTINGS`] and [`PING`].
pub const ACK: u8 = 1;
/// Of [`DATA`] and [`HEADERS`]: the last frame of this side.
pub const END_STREAM: u8 = 1;
/// Of [`HEADERS`]: the block is whole.
pub const END_HEADERS: u8 = 4;

/// The code of a stream that its caller no longer needs.
pub const CANCEL: u32 = 8;
/// `POST https://localhost/` from the static table.
pub const POST: &[u8] = b"\x83\x87\x84\x01\x09localhost";

const HEAD_BYTES: usize = 9;

/// A received frame.
#[derive(Debug)]
pub struct Frame {
    /// One of the kinds above.
    pub kind: u8,
    /// Flags, whose meaning depends on the kind.
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
    /// What follows the head.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Reads the next frame; `None` once the connection is closed.
    pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Self> {
        let mut head = [0; HEAD_BYTES];
        stream.read_exact(&mut head).await.ok()?;
        let mut frame = Self::of_head(head);
        stream.read_exact(&mut frame.payload).await.ok()?;
        Some(frame)
    }

    /// Takes the next frame from what was received; `None` if it is not whole.
    fn take(received: &mut Vec<u8>) -> Option<Self> {
        let mut frame = Self::of_head(*received.first_chunk()?);
        let end = HEAD_BYTES + frame.payload.len();
        let payload = received.get(HEAD_BYTES..end)?;
        frame.payload.copy_from_slice(payload);
        received.drain(..end);
        Some(frame)
    }

    /// A frame whose payload is not read yet.
    fn of_head([length @ .., kind, flags, a, b, c, d]: [u8; HEAD_BYTES]) -> Self {
        let length: [u8; 3] = length;
        let length = length.into_iter().fold(0, |length, byte| length << 8 | usize::from(byte));
        Self { kind, flags, stream: u32::from_be_bytes([a, b, c, d]), payload: vec![0; length] }
    }
}

/// The bytes of a frame.
///
/// # Panics
///
/// If the payload is longer than a frame can be.
#[must_use]
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame must be small").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The frame that opens a call of gRPC, with these headers besides those that each call has.
#[must_use]
pub fn call(stream: u32, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let usual = [
        (":method", "POST"),
        (":scheme", "https"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let mut block = Vec::new();
    for (name, value) in usual.iter().chain(headers) {
        // A literal field without indexing (RFC 7541).
        block.push(0);
        push_text(&mut block, name);
        push_text(&mut block, value);
    }
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// A string literal: its length, of which seven bits are in the first byte, and its bytes.
fn push_text(block: &mut Vec<u8>, text: &str) {
    // RFC 7541: seven bits have the length of a text; with all of them set, more bytes follow.
    const MOST: u8 = 127;
    let length = text.len();
    if let Some(length) = u8::try_from(length).ok().filter(|&length| length < MOST) {
        block.push(length);
    } else {
        block.push(MOST);
        let mut rest = length - usize::from(MOST);
        while rest > usize::from(MOST) {
            block.push(u8::try_from(rest & 127).unwrap_or_default() | 128);
            rest >>= 7;
        }
        block.push(u8::try_from(rest).unwrap_or_default());
    }
    block.extend(text.as_bytes());
}

/// A message of gRPC: whether it is compressed, its length, its bytes.
///
/// # Panics
///
/// If the message is longer than one can be.
#[must_use]
pub fn message(data: &[u8], is_compressed: bool) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("a message must be small").to_be_bytes();
    [&[u8::from(is_compressed)], &length[..], data].concat()
}
