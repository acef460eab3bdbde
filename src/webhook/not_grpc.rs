//! gRPC calls to a port that serves only the webhook.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Response,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};

use crate::server::HttpResponse;

/// `UNIMPLEMENTED` of `google.rpc.Code`.
const UNIMPLEMENTED: &str = "12";

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
