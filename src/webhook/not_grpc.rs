//! gRPC calls to a port that serves only the webhook.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Response,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};

use crate::server::HttpResponse;

/// Prefix of the content type of every gRPC message over HTTP/2.
const CONTENT_TYPE_PREFIX: &[u8] = b"application/grpc";
/// `UNIMPLEMENTED` of `google.rpc.Code`.
const UNIMPLEMENTED: &str = "12";

/// Whether a request is a gRPC call.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(CONTENT_TYPE_PREFIX))
}

/// A gRPC status without a message ("Trailers-Only").
pub(super) fn unimplemented() -> HttpResponse {
    let mut response = Response::new(Full::<Bytes>::default());
    let text = "gRPC is not served on this port: use --grpc-addr or --grpc-on-webhook";
    let fields = [
        (CONTENT_TYPE, "application/grpc"),
        (HeaderName::from_static("grpc-status"), UNIMPLEMENTED),
        (HeaderName::from_static("grpc-message"), text),
    ];
    let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(fields);
    response
}
