//! Request bodies: read whole, with a size limit for each and a memory budget for all.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::{
    Version,
    body::{Body as _, Incoming},
};
use injectd_api::MAX_MESSAGE_BYTES;
use injectd_core::review::MAX_BODY_BYTES;
use injectd_telemetry::metrics::RejectReason;
use memmap2::MmapMut;
use tracing::debug;

use super::Rejection;
use crate::server::{BodyBudget, BudgetExceeded, Permit, discard};

/// A message of gRPC has the same limit as a body.
const _: () = assert!(MAX_BODY_BYTES == MAX_MESSAGE_BYTES);
/// Size from which a body of known length that arrives in pieces gets its own mapped pages. They
/// return to the system with the body; the allocator would keep freed memory for each thread.
const MAPPED_BODY_BYTES: usize = 32 << 10;
/// Pages that a body gets before it has arrived; more come as it does. A caller that announces a large body
/// and does not send it takes no more than these: a limit on the data of a process (`RLIMIT_DATA`) counts
/// mapped pages.
const FIRST_MAPPED_BYTES: usize = 256 << 10;

/// A whole body, and the memory it takes.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) bytes: Bytes,
    _permit: Permit,
}

/// The received part of a body that arrives in pieces.
#[derive(Debug)]
enum Pieces {
    Allocated(BytesMut),
    Mapped { pages: MmapMut, len: usize, announced: usize },
}

impl Body {
    /// Reads a body. The rest of a rejected body is discarded, so that the client reads the
    /// response.
    pub(super) async fn read(
        mut incoming: Incoming,
        version: Version,
        budget: &BodyBudget,
    ) -> Result<Self, Rejection> {
        let read = Self::collect(&mut incoming, budget).await;
        let is_too_large =
            |error: &Rejection| matches!(error.why, RejectReason::TooLarge | RejectReason::Bodies);
        if read.as_ref().is_err_and(is_too_large) {
            discard(version, incoming);
        }
        read
    }

    /// Collects a body; one that arrives in one piece is not copied.
    async fn collect(incoming: &mut Incoming, budget: &BodyBudget) -> Result<Self, Rejection> {
        let announced = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
        must_fit(announced)?;
        let mut read = 0;
        let mut in_one = Bytes::new();
        let mut pieces = None;
        let mut permit = Permit::default();
        while let Some(data) = next_data(incoming).await? {
            read += data.len();
            must_fit(read)?;
            // The budget is asked before the bytes are copied: what it refuses must not take memory
            // first.
            let held = bytes_held(read, announced);
            budget
                .take(&mut permit, held)
                .map_err(|BudgetExceeded| Rejection::budget_exceeded())?;
            if data.len() == announced {
                in_one = data;
                continue;
            }
            let pieces = match &mut pieces {
                Some(pieces) => pieces,
                None => pieces.insert(Pieces::of(announced)?),
            };
            pieces.push(&data)?;
        }
        let bytes = pieces.map_or(in_one, Pieces::join);
        Ok(Self { bytes, _permit: permit })
    }
}

/// Bytes that are held for the first `read` bytes of a body. The buffer for a body of unknown length
/// doubles as it grows, and so do the pages of a large one, up to the announced length.
fn bytes_held(read: usize, announced: usize) -> usize {
    if read > announced {
        2 * read
    } else if read <= FIRST_MAPPED_BYTES {
        read
    } else {
        announced.min(2 * read)
    }
}

fn must_fit(bytes: usize) -> Result<(), Rejection> {
    if bytes > MAX_BODY_BYTES {
        let text = format!("the body is larger than {MAX_BODY_BYTES} bytes");
        return Err(Rejection::new(RejectReason::TooLarge, &text));
    }
    Ok(())
}

impl Pieces {
    /// A buffer for a body of `announced` bytes; 0 if the length is unknown.
    fn of(announced: usize) -> Result<Self, Rejection> {
        if announced < MAPPED_BODY_BYTES {
            return Ok(Self::Allocated(BytesMut::with_capacity(announced)));
        }
        let pages = map(announced.min(FIRST_MAPPED_BYTES))?;
        Ok(Self::Mapped { pages, len: 0, announced })
    }

    /// Fails if a mapped body exceeds its announced length.
    fn push(&mut self, data: &[u8]) -> Result<(), Rejection> {
        match self {
            Self::Allocated(bytes) => bytes.extend_from_slice(data),
            Self::Mapped { pages, len, announced } => {
                let end = *len + data.len();
                if end > *announced {
                    let text = "the body exceeds its announced length";
                    return Err(Rejection::new(RejectReason::Aborted, text));
                }
                if end > pages.len() {
                    let mut more = map((2 * end).min(*announced))?;
                    more[..*len].copy_from_slice(&pages[..*len]);
                    *pages = more;
                }
                pages[*len..end].copy_from_slice(data);
                *len = end;
            }
        }
        Ok(())
    }

    fn join(self) -> Bytes {
        match self {
            Self::Allocated(bytes) => bytes.freeze(),
            Self::Mapped { pages, len, .. } => Bytes::from_owner(pages).slice(..len),
        }
    }
}

/// New pages.
fn map(bytes: usize) -> Result<MmapMut, Rejection> {
    MmapMut::map_anon(bytes).map_err(|error| {
        debug!(%error, bytes, "cannot map memory for a body");
        Rejection::new(RejectReason::Bodies, "no memory for a large body")
    })
}

/// The next bytes; skips frames without data. HTTP/2 may end a body with an empty frame.
async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, Rejection> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Rejection::new(RejectReason::Aborted, &format!("the body is incomplete: {error}"))
        })?;
        match frame.into_data() {
            Ok(data) if !data.is_empty() => return Ok(Some(data)),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_in_order_wherever_they_are_kept() {
        for len in [MAPPED_BODY_BYTES - 1, MAPPED_BODY_BYTES, 3 * MAPPED_BODY_BYTES + 1, 3 << 20] {
            let body: Vec<u8> = (0_u8..251).cycle().take(len).collect();
            let mut pieces = Pieces::of(len).expect("there must be pages");
            assert_eq!(matches!(pieces, Pieces::Mapped { .. }), len >= MAPPED_BODY_BYTES);
            for piece in body.chunks(16_000) {
                pieces.push(piece).expect("there must be room");
            }
            assert_eq!(pieces.join(), body);
        }
    }

    #[test]
    fn pages_come_as_the_body_does() {
        let announced = 10 << 20;
        let mut pieces = Pieces::of(announced).expect("there must be pages");
        let mut read = 0;
        while read < announced {
            let Pieces::Mapped { pages, .. } = &pieces else { panic!("not mapped") };
            let held = bytes_held(read, announced).max(FIRST_MAPPED_BYTES);
            assert!(pages.len() <= held, "{} pages for {read}", pages.len());
            pieces.push(&[b' '; 16 << 10]).expect("there must be room");
            read += 16 << 10;
        }
        assert_eq!(bytes_held(announced, announced), announced);
    }

    #[test]
    fn more_than_announced_is_an_error() {
        let mut pieces = Pieces::of(MAPPED_BODY_BYTES).expect("there must be pages");
        pieces.push(&vec![b' '; MAPPED_BODY_BYTES]).expect("there must be room");
        pieces.push(b" ").expect_err("there must be no room");
    }
}
