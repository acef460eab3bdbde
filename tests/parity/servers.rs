//! The same review through both servers: the webhook's patch, byte for byte.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use injectd::grpc::v1::InjectRequest;
use injectd_profiles::Injector;
use serde_json::{Value, value::RawValue};
use tonic::Code;

use super::corpus::Case;
use crate::server;

/// The parts of a review that a gRPC request has.
#[derive(serde::Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: String,
    #[serde(default)]
    kind: Value,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    dry_run: bool,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Sends a case to both servers, and panics if they disagree. Returns false for requests that gRPC
/// does not have: deletions, invalid reviews, and requests that contradict their object.
pub(crate) async fn must_agree(injector: Arc<Injector>, case: &Case) -> bool {
    let Ok(Review { request }) = serde_json::from_slice(&case.body) else { return false };
    let is_whole = request.sub_resource.is_empty()
        && !matches!(&*request.operation, "DELETE" | "CONNECT")
        && request.object.get() != "null";
    if !is_whole {
        return false;
    }
    // A gRPC request must not contradict its object, whose own kind and namespace win.
    let object: Value = serde_json::from_str(request.object.get()).unwrap_or_default();
    let own =
        |pointer| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let requested_kind = request.kind["kind"].as_str().unwrap_or_default();
    let kind = own("/kind").unwrap_or(requested_kind);
    let namespace = own("/metadata/namespace").unwrap_or(&request.namespace);
    if kind.is_empty() || namespace != request.namespace {
        return false;
    }
    let message = InjectRequest {
        uid: request.uid,
        namespace: namespace.to_owned(),
        kind: kind.to_owned(),
        object: request.object.get().to_owned().into(),
        dry_run: request.dry_run,
        ..InjectRequest::default()
    };
    let Ok(answer) = injector.review(&case.body).await else { return false };
    let answered = server::client(Arc::clone(&injector)).await.inject(message).await;
    let answer: Value = serde_json::from_slice(&answer.body).expect("an answer");
    let answer = &answer["response"];
    match answered {
        Ok(response) => {
            let response = response.into_inner();
            let patch = answer["patch"].as_str().map(|text| STANDARD.decode(text));
            let patch = patch.transpose().expect("base64").unwrap_or_default();
            assert_eq!(response.patch, patch, "{}", case.id);
            assert_eq!(answer["allowed"], true, "{}", case.id);
            let and_more = usize::from(response.omitted_warnings > 0);
            let warnings = answer["warnings"].as_array().map_or(0, Vec::len);
            assert_eq!(response.warnings.len() + and_more, warnings, "{}", case.id);
        }
        Err(status) => {
            assert_eq!(answer["allowed"], false, "{}: {status}", case.id);
            let expected = [Code::FailedPrecondition, Code::InvalidArgument];
            assert!(expected.contains(&status.code()), "{}: {status}", case.id);
        }
    }
    true
}
