//! Room for messages: bodies of all callers together take only so much memory.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::failure::Failure;

/// What every message has room for.
const FIRST_BYTES: usize = 16 << 10;
/// A flag and the length of the message (gRPC over HTTP/2, "Length-Prefixed-Message").
const PREFIX_BYTES: usize = 5;

/// Memory for messages that are being read.
#[derive(Debug, Clone)]
pub(super) struct Room(Arc<Semaphore>);

/// A body that takes room while a message is incomplete.
#[derive(Debug)]
pub(super) struct Bounded {
    body: Incoming,
    room: Room,
    messages: Messages,
    held: Option<OwnedSemaphorePermit>,
}

/// Where in its messages a body is.
#[derive(Debug, Default)]
struct Messages {
    prefix: Vec<u8>,
    /// Bytes of the message so far, and to come.
    read: usize,
    rest: usize,
}

impl Room {
    pub(super) fn new(bytes: u32) -> Self {
        Self(Arc::new(Semaphore::new(bytes as usize)))
    }

    pub(super) fn bounded(&self, body: Incoming) -> Bounded {
        Bounded { body, room: self.clone(), messages: Messages::default(), held: None }
    }
}

impl Bounded {
    /// Takes room for what a message has beyond its first bytes, and gives back what is complete.
    fn take(&mut self, data: Bytes) -> Result<(), Failure> {
        self.messages.pass(data);
        let needed = self.messages.read.saturating_sub(FIRST_BYTES);
        if needed == 0 {
            self.held = None;
            return Ok(());
        }
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = u32::try_from(needed.saturating_sub(held)).unwrap_or(u32::MAX);
        let more = Arc::clone(&self.room.0).try_acquire_many_owned(missing);
        let more = more.map_err(|_| Failure::overloaded("too many large messages at a time"))?;
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        Ok(())
    }
}

impl Messages {
    fn pass(&mut self, mut data: Bytes) {
        while !data.is_empty() {
            if self.rest == 0 {
                let missing = (PREFIX_BYTES - self.prefix.len()).min(data.len());
                self.prefix.extend_from_slice(&data[..missing]);
                data.advance(missing);
                if let [_, a, b, c, d] = *self.prefix {
                    self.rest = u32::from_be_bytes([a, b, c, d]) as usize;
                    self.read = 0;
                    self.prefix.clear();
                }
            } else {
                let passed = self.rest.min(data.len());
                data.advance(passed);
                self.rest -= passed;
                self.read = if self.rest == 0 { 0 } else { self.read + passed };
            }
        }
    }
}

impl Body for Bounded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(Status::from_error(error.into())))),
            None => return Poll::Ready(None),
        };
        let taken = match frame.data_ref() {
            Some(data) => this.take(data.clone()),
            None => Ok(()),
        };
        Poll::Ready(Some(taken.map(|()| frame).map_err(Status::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_after(pieces: &[&[u8]]) -> (usize, usize) {
        let mut messages = Messages::default();
        for piece in pieces {
            messages.pass(Bytes::copy_from_slice(piece));
        }
        (messages.read, messages.rest)
    }

    #[test]
    fn messages_are_followed_across_pieces() {
        let two = [0, 0, 0, 0, 2, 7, 7];
        assert_eq!(read_after(&[]), (0, 0));
        assert_eq!(read_after(&[&two]), (0, 0));
        assert_eq!(read_after(&[&two[..3], &two[3..6]]), (1, 1));
        assert_eq!(read_after(&[&two[..3], &two[3..6], &two[6..], &two[..6]]), (1, 1));
        assert_eq!(read_after(&[&[0, 0, 0, 0, 0], &[0, 0, 0, 1, 0, 9, 9]]), (2, 254));
    }
}
