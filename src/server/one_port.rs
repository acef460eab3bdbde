//! Two services on one port: one for gRPC calls, one for all other requests.

use futures_util::{FutureExt as _, future::BoxFuture};
use http_body_util::Either;
use hyper::{HeaderMap, Request, Response, body::Incoming, header::CONTENT_TYPE};

use super::{Caller, HttpService, Overload, Permit};

/// Prefix of the content type of every gRPC message over HTTP/2.
const GRPC_CONTENT_TYPE: &[u8] = b"application/grpc";

/// Two services on one port.
#[derive(Debug, Clone)]
pub struct OnePort<W, G> {
    /// Answers requests that are not gRPC calls.
    pub webhook: W,
    /// Answers gRPC calls.
    pub grpc: G,
}

/// Whether a request is a gRPC call.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE);
    // `application/grpc+proto` and other encodings are gRPC, too.
    content_type.is_some_and(|value| value.as_bytes().starts_with(GRPC_CONTENT_TYPE))
}

impl<W: HttpService, G: HttpService> HttpService for OnePort<W, G> {
    type Body = Either<W::Body, G::Body>;
    type Future = BoxFuture<'static, Response<Self::Body>>;

    fn answer(&self, request: Request<Incoming>, slot: Permit) -> Self::Future {
        if is_grpc(request.headers()) {
            let answer = self.grpc.answer(request, slot);
            answer.map(|response| response.map(Either::Right)).boxed()
        } else {
            let answer = self.webhook.answer(request, slot);
            answer.map(|response| response.map(Either::Left)).boxed()
        }
    }

    fn of_caller(self, caller: Caller) -> Self {
        let webhook = self.webhook.of_caller(caller.clone());
        Self { webhook, grpc: self.grpc.of_caller(caller) }
    }

    fn reject(&self, why: Overload, request: &Request<Incoming>) -> Response<Self::Body> {
        if is_grpc(request.headers()) {
            self.grpc.reject(why, request).map(Either::Right)
        } else {
            self.webhook.reject(why, request).map(Either::Left)
        }
    }
}
