//! The object of a review as gRPC requests: for ghz, and for h2load.

use std::{fs, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_api::v1::InjectRequest;
use injectd_harness::{expect::Outcome, http2};
use prost::Message as _;
use serde_json::{Value, json};

/// The body of a call of Inject.
pub(crate) fn body(review: &Path) -> Outcome<Vec<u8>> {
    Ok(http2::message(&request(review)?.encode_to_vec(), false))
}

/// Data for ghz: one request, or the requests of a stream. Each has its own uid, so that ghz encodes it
/// once and not per call.
pub(crate) fn data(review: &Path, count: u32) -> Outcome<Value> {
    let InjectRequest { namespace, kind, object, .. } = request(review)?;
    let object = BASE64_STANDARD.encode(object);
    let request = |uid: u32| json!({"uid": uid.to_string(), "namespace": namespace, "kind": kind, "object": object});
    Ok(match count {
        1 => request(1),
        // ghz reads a list as the requests of a stream.
        _ => (1..=count).map(|uid| json!({"request": request(uid)})).collect(),
    })
}

fn request(review: &Path) -> Outcome<InjectRequest> {
    let review: Value = serde_json::from_slice(&fs::read(review)?)?;
    let request = &review["request"];
    Ok(InjectRequest {
        uid: "1".to_owned(),
        namespace: request["namespace"].as_str().unwrap_or_default().to_owned(),
        kind: "Pod".to_owned(),
        object: request["object"].to_string().into_bytes().into(),
        ..InjectRequest::default()
    })
}
