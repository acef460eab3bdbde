//! Reading ahead: one system call in place of many small reads.
//!
//! The buffer belongs to the thread. A connection holds it only until its bytes are consumed, so a
//! connection that waits for bytes holds no buffer.

use std::{
    cell::Cell,
    io::{self, IoSlice},
    mem,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Size of the buffer for encrypted bytes; rustls itself reads 4 KB at a time.
// Two records of TLS, so that the second one is read with the first.
const READ_BUFFER_BYTES: usize = 32 << 10;
/// Bytes after which the task yields for the first time since the stream was empty: a usual review is
/// smaller.
const FIRST_TURN_BYTES: usize = READ_BUFFER_BYTES;
/// Bytes after which it yields from then on. A flood of small frames, such as PING, takes a
/// millisecond for so many, and other connections wait for it.
const NEXT_TURN_BYTES: usize = 4 << 10;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The poll in progress on this thread. No two polls have the same number: a task may go on on
    /// another thread.
    // 40 bits are a trillion polls of a thread, which no process gets to.
    static POLLS: Cell<u64> = Cell::new(THREADS.fetch_add(1, Relaxed) << 40);
}

/// Threads that polled connections so far.
static THREADS: AtomicU64 = AtomicU64::new(0);

/// A connection that reads by [`ReadAhead`], whose turn ends with the poll.
#[derive(Debug)]
pub(super) struct InTurns<C>(pub(super) C);

impl<C: Future + Unpin> Future for InTurns<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        POLLS.set(POLLS.get() + 1);
        Pin::new(&mut self.0).poll(context)
    }
}

/// A stream with read-ahead; writes are not buffered.
#[derive(Debug)]
pub(super) struct ReadAhead<S> {
    stream: S,
    ahead: Vec<u8>,
    taken: usize,
    /// Bytes until the task yields.
    turn: usize,
    /// The poll that ended the last turn. HTTP/2 may read again in the same poll.
    ended_in: u64,
}

impl<S> ReadAhead<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, ahead: Vec::new(), taken: 0, turn: FIRST_TURN_BYTES, ended_in: u64::MAX }
    }
}

impl<S: AsyncRead + Unpin> ReadAhead<S> {
    /// Reads from the stream if the buffer is empty; yields at the end of a turn.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = POLLS.get();
        if self.turn == 0 {
            self.turn = NEXT_TURN_BYTES;
            self.ended_in = poll;
            context.waker().wake_by_ref();
        }
        if self.ended_in == poll {
            return Poll::Pending;
        }
        if !self.ahead.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.ahead = SPARE.take();
        self.ahead.reserve(READ_BUFFER_BYTES);
        let read = poll_read_buf(Pin::new(&mut self.stream), context, &mut self.ahead);
        if read.is_pending() {
            self.turn = FIRST_TURN_BYTES;
        }
        read.map_ok(drop)
    }

    /// Returns the buffer to the thread once all of it is consumed.
    fn give_back(&mut self) {
        let is_held = self.ahead.capacity() > 0;
        if is_held && self.taken == self.ahead.len() {
            self.taken = 0;
            self.ahead.clear();
            SPARE.set(mem::take(&mut self.ahead));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let filled = this.poll_fill(context);
        if filled.is_ready() {
            let rest = &this.ahead[this.taken..];
            let taken = rest.len().min(out.remaining()).min(this.turn);
            out.put_slice(&rest[..taken]);
            this.taken += taken;
            this.turn -= taken;
        }
        this.give_back();
        filled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Reads in a poll of its own; `None` if the stream has to wait.
    fn poll_once<S: AsyncRead + Unpin>(
        stream: &mut ReadAhead<S>,
        piece: &mut [u8],
    ) -> Option<usize> {
        let mut read = InTurns(Box::pin(stream.read(piece)));
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(&mut read).poll(&mut context) {
            Poll::Ready(read) => Some(read.expect("must be read")),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn what_is_read_ahead_is_taken_in_order_and_the_buffer_given_back() {
        let (mut client, server) = tokio::io::duplex(2 * READ_BUFFER_BYTES);
        let sent: Vec<u8> = (0_u8..251).cycle().take(READ_BUFFER_BYTES + 10_000).collect();
        client.write_all(&sent).await.expect("must be written");
        client.shutdown().await.expect("must end");
        let mut stream = ReadAhead::new(server);
        let mut found = Vec::new();
        let mut held = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let len = InTurns(Box::pin(stream.read(&mut piece))).await.expect("must be read");
            if len == 0 {
                break;
            }
            found.extend_from_slice(&piece[..len]);
            held.push(stream.ahead.len());
        }
        assert!(found == sent, "other bytes");
        // The whole buffer until its eighth piece, then 10,000 bytes until their third.
        assert_eq!(held, [vec![READ_BUFFER_BYTES; 7], vec![0], vec![10_000; 2], vec![0]].concat());
        assert_eq!(stream.ahead.capacity(), 0, "held at the end");
    }

    #[tokio::test]
    async fn a_stream_that_never_runs_dry_yields_to_others() {
        let mut stream = ReadAhead::new(tokio::io::repeat(7));
        let mut piece = vec![0; 2 * READ_BUFFER_BYTES];
        for expected in [FIRST_TURN_BYTES, NEXT_TURN_BYTES, NEXT_TURN_BYTES] {
            assert_eq!(poll_once(&mut stream, &mut piece), Some(expected));
            assert_eq!(poll_once(&mut stream, &mut piece), None, "it must wait for its next turn");
        }
    }

    #[tokio::test]
    async fn the_buffer_of_the_thread_outlives_the_end_of_a_turn() {
        let mut stream = ReadAhead::new(tokio::io::repeat(7));
        let mut piece = vec![0; FIRST_TURN_BYTES];
        assert_eq!(poll_once(&mut stream, &mut piece), Some(FIRST_TURN_BYTES));
        assert_eq!(poll_once(&mut stream, &mut piece), None, "the turn has ended");
        assert_eq!(SPARE.take().capacity(), READ_BUFFER_BYTES);
    }

    #[tokio::test]
    async fn a_turn_does_not_begin_in_the_poll_that_ended_the_last_one() {
        let mut stream = ReadAhead::new(tokio::io::repeat(7));
        let mut piece = vec![0; FIRST_TURN_BYTES];
        assert_eq!(poll_once(&mut stream, &mut piece), Some(FIRST_TURN_BYTES));
        for _ in 0..3 {
            let read = futures_util::poll!(std::pin::pin!(stream.read(&mut piece)));
            assert!(read.is_pending(), "it must wait for its next turn");
        }
        assert_eq!(poll_once(&mut stream, &mut piece), Some(NEXT_TURN_BYTES));
    }

    #[tokio::test]
    async fn a_stream_that_ran_dry_has_a_long_turn_again() {
        let (mut client, server) = tokio::io::duplex(2 * READ_BUFFER_BYTES);
        let mut stream = ReadAhead::new(server);
        let mut piece = vec![0; READ_BUFFER_BYTES];
        for _ in 0..2 {
            client.write_all(&piece).await.expect("must be written");
            assert_eq!(poll_once(&mut stream, &mut piece), Some(FIRST_TURN_BYTES));
            for _ in 0..2 {
                assert_eq!(poll_once(&mut stream, &mut piece), None, "then the stream is dry");
            }
        }
    }

    #[tokio::test]
    async fn streams_of_a_thread_share_a_buffer_and_no_bytes() {
        let mut clients = Vec::new();
        let mut streams = Vec::new();
        for text in ["first", "other"] {
            let (mut client, server) = tokio::io::duplex(16);
            client.write_all(text.as_bytes()).await.expect("must be written");
            clients.push(client);
            streams.push(ReadAhead::new(server));
        }
        let mut found = [0; 5];
        streams[0].read_exact(&mut found[..2]).await.expect("must be read");
        let [rest, other] = [&mut [0; 3][..], &mut [0; 5]];
        streams[1].read_exact(other).await.expect("must be read");
        streams[0].read_exact(rest).await.expect("must be read");
        assert_eq!((&found[..2], &*rest, &*other), (&b"fi"[..], &b"rst"[..], &b"other"[..]));

        let waiting = futures_util::poll!(std::pin::pin!(streams[0].read(&mut found)));
        assert!(waiting.is_pending());
        assert!(streams.iter().all(|stream| stream.ahead.capacity() == 0), "a buffer is held");
        assert_eq!(SPARE.take().capacity(), READ_BUFFER_BYTES);
    }
}
