//! The same review through both doors: the webhook's patch, byte for byte.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use injectd::{grpc::v1::InjectRequest, injector::Injector};
use serde_json::{Value, value::RawValue};
use tonic::Code;

use super::corpus::Case;
use crate::door;

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

/// Whether both doors were asked; panics where they do not agree. What gRPC has no words for, a
/// deletion or a review that is none, is passed over.
pub(crate) async fn must_agree(injector: Arc<Injector>, case: &Case) -> bool {
    let Ok(Review { request }) = serde_json::from_slice(&case.body) else { return false };
    let is_whole = request.sub_resource.is_empty()
        && !matches!(&*request.operation, "DELETE" | "CONNECT")
        && request.object.get() != "null";
    if !is_whole {
        return false;
    }
    let message = InjectRequest {
        uid: request.uid,
        namespace: request.namespace,
        kind: request.kind["kind"].as_str().unwrap_or_default().to_owned(),
        object: request.object.get().to_owned().into(),
        dry_run: request.dry_run,
        ..InjectRequest::default()
    };
    let Ok(answer) = injector.review(&case.body).await else { return false };
    let answered = door::client(Arc::clone(&injector)).await.inject(message).await;
    let answer: Value = serde_json::from_slice(&answer.body).expect("an answer");
    let answer = &answer["response"];
    match answered {
        Ok(response) => {
            let response = response.into_inner();
            let patch = answer["patch"].as_str().map(|text| STANDARD.decode(text));
            let patch = patch.transpose().expect("base64").unwrap_or_default();
            assert_eq!(response.patch, patch, "{}", case.id);
            assert_eq!(answer["allowed"], true, "{}", case.id);
            let words: Vec<_> = response.warnings.iter().collect();
            let warnings = answer["warnings"].as_array().map_or(0, Vec::len);
            assert_eq!(words.len(), warnings, "{}", case.id);
        }
        Err(status) => {
            assert_eq!(answer["allowed"], false, "{}: {status}", case.id);
            let expected = [Code::FailedPrecondition, Code::InvalidArgument];
            assert!(expected.contains(&status.code()), "{}: {status}", case.id);
        }
    }
    true
}
