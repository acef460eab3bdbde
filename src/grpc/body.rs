//! Request bodies of the gRPC server: the memory budget and the timeout apply to each message while
//! it is read.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use injectd_telemetry::metrics::{RejectReason, ReviewMetrics};
use tokio::time::{Sleep, sleep};
use tonic::Status;

use super::failure::Failure;
use crate::server::{BodyBudget, BudgetExceeded, Permit};

/// A flag and the length of the message (gRPC over HTTP/2, "Length-Prefixed-Message").
const PREFIX_BYTES: usize = 5;

/// The memory budget and the timeout of messages that are being read.
#[derive(Debug, Clone, Default)]
pub(super) struct Bodies {
    budget: BodyBudget,
    timeout: Duration,
    metrics: ReviewMetrics,
}

/// A body that takes memory from the budget while a message is incomplete.
#[derive(Debug)]
pub(super) struct Bounded {
    body: Incoming,
    bodies: Bodies,
    messages: Messages,
    permit: Permit,
    /// Deadline of the incomplete message.
    end: Option<Pin<Box<Sleep>>>,
}

/// The position of a body in its messages.
#[derive(Debug, Default)]
struct Messages {
    prefix: Vec<u8>,
    /// Bytes of the message that are received, and that are missing.
    read: usize,
    rest: usize,
}

impl Bodies {
    /// For the bodies of a caller with this budget.
    pub(super) fn new(budget: BodyBudget, timeout: Duration, metrics: ReviewMetrics) -> Self {
        Self { budget, timeout, metrics }
    }

    /// The memory of the caller.
    pub(super) fn budget(&self) -> &BodyBudget {
        &self.budget
    }

    /// Applies the budget and the timeout to a body.
    pub(super) fn bounded(&self, body: Incoming) -> Bounded {
        let (bodies, messages) = (self.clone(), Messages::default());
        Bounded { body, bodies, messages, permit: Permit::default(), end: None }
    }

    /// Takes memory for a message that is being answered.
    pub(super) fn take(&self, message_bytes: usize) -> Result<Permit, Failure> {
        let mut permit = Permit::default();
        self.resize(&mut permit, message_bytes)?;
        Ok(permit)
    }

    /// Resizes the memory that a message has taken.
    pub(super) fn resize(&self, permit: &mut Permit, bytes: usize) -> Result<(), Failure> {
        self.budget.take(permit, bytes).map_err(|BudgetExceeded| {
            self.metrics.rejected(RejectReason::Bodies);
            budget_exceeded()
        })
    }
}

impl Bounded {
    /// Takes memory for an incomplete message, and returns that of complete ones.
    fn take(&mut self, data: Bytes) -> Result<(), Failure> {
        self.messages.pass(data);
        if self.messages.is_under_way() {
            // The time of a message counts from its first byte. Between messages a stream may be
            // idle for minutes.
            let end = || Box::pin(sleep(self.bodies.timeout));
            self.end.get_or_insert_with(end);
        } else {
            self.end = None;
        }
        self.bodies.resize(&mut self.permit, self.messages.read)
    }
}

/// The budget has no memory for a message or a response.
pub(super) fn budget_exceeded() -> Failure {
    Failure::overloaded("too many large messages in memory")
}

impl Messages {
    fn is_under_way(&self) -> bool {
        self.rest > 0 || !self.prefix.is_empty()
    }

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
        let frame = match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(Some(Err(Status::from_error(error.into()))));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {
                let Some(end) = &mut this.end else { return Poll::Pending };
                ready!(end.as_mut().poll(context));
                // Returned at once: the body may live until the client has read the error.
                this.permit = Permit::default();
                this.bodies.metrics.rejected(RejectReason::SlowBody);
                return Poll::Ready(Some(Err(Failure::late().into())));
            }
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
