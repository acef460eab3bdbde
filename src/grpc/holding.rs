//! Response bodies that count as a request until they are sent.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Body, Frame, SizeHint},
};
use tonic::Status;

use super::body::budget_exceeded;
use crate::server::{BodyBudget, BudgetExceeded, Permit};

/// The body of a response, the request's slot, and memory for the frame that is being sent.
#[derive(Debug)]
pub struct Holding {
    body: tonic::body::Body,
    _slot: Permit,
    budget: BodyBudget,
    permit: Permit,
}

impl Holding {
    pub(super) fn new(body: tonic::body::Body, slot: Permit, budget: BodyBudget) -> Self {
        Self { body, _slot: slot, budget, permit: Permit::default() }
    }
}

impl Body for Holding {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        // hyper polls for the next frame once this one is sent.
        let sending = frame.iter().flatten().find_map(Frame::data_ref).map_or(0, Bytes::len);
        if let Err(BudgetExceeded) = this.budget.take(&mut this.permit, sending) {
            let mut trailers = HeaderMap::new();
            Status::from(budget_exceeded()).add_header(&mut trailers)?;
            this.body = tonic::body::Body::empty();
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
