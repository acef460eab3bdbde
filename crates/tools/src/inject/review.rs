//! The review of an object of a manifest, as an API server would ask for it.

use injectd_command::CommandError;
use injectd_core::{linkerd::events, object::Kind, outcome::Verdict};
use injectd_profiles::Injector;
use json_patch::PatchOperation;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::pods;
use crate::manifests::text;

/// Asks an injector about objects.
pub(super) struct Reviewer<'a> {
    pub(super) runtime: Runtime,
    pub(super) injector: Injector,
    /// The namespace of objects that do not set one.
    pub(super) namespace: &'a str,
}

/// The answer to the review of an object.
pub(super) struct Reviewed {
    pub(super) verdict: Verdict,
    pub(super) reasons: Vec<&'static str>,
    pub(super) reasons_in_words: String,
    pub(super) warnings: Vec<String>,
    pub(super) patch: json_patch::Patch,
}

impl Reviewer<'_> {
    /// Reviews an object. The inner error is the reason of a denial.
    pub(super) fn review(
        &self,
        object: &Value,
        kind: Kind,
    ) -> Result<Result<Reviewed, String>, CommandError> {
        let review = self.review_of(object, kind);
        let answer = self.runtime.block_on(self.injector.review(&review));
        let answer =
            answer.map_err(|error| CommandError::failed("cannot review an object", error))?;
        let outcome = answer.outcome;
        if let Some(denial) = &outcome.denial {
            return Ok(Err(denial.to_string()));
        }
        Ok(Ok(Reviewed {
            verdict: outcome.verdict,
            reasons: outcome.reasons.iter().map(|(_, reason)| reason.code).collect(),
            reasons_in_words: events::in_words(outcome.reasons),
            warnings: outcome.warnings.lines().collect(),
            patch: patch_of(&answer.body).map_err(|error| {
                CommandError::failed("cannot decode the generated patch", error)
            })?,
        }))
    }

    /// The review that an API server would send. An API server sets the namespace of every object.
    fn review_of(&self, object: &Value, kind: Kind) -> Vec<u8> {
        let mut object = object.clone();
        let namespace = match text(&object, "/metadata/namespace") {
            "" => self.namespace.to_owned(),
            namespace => namespace.to_owned(),
        };
        // A namespace overrides the template of a workload, but not its pods: what the template says
        // is said by the workload.
        let prefix = kind.path_prefix();
        for (key, value) in pods::linkerd_annotations(&object, prefix) {
            pods::annotate(&mut object, "", &key, &value);
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".to_owned(), namespace.as_str().into());
        }
        let request = json!({
            "uid": "inject",
            "kind": {"kind": kind.as_str()},
            "namespace": namespace,
            "object": object,
        });
        json!({ "request": request }).to_string().into_bytes()
    }
}

/// Applies the patch of an answer. Linkerd's injector replaces metadata that say nothing, such as
/// `creationTimestamp: null`, with an empty mapping; here they stay.
pub(super) fn apply(object: &mut Value, patch: &json_patch::Patch) -> Result<(), String> {
    let is_needed = |operation: &&PatchOperation| match operation {
        PatchOperation::Add(add) if add.value == json!({}) => {
            !object.pointer(add.path.as_str()).is_some_and(Value::is_object)
        }
        _ => true,
    };
    let needed: Vec<PatchOperation> = patch.0.iter().filter(is_needed).cloned().collect();
    json_patch::patch(object, &needed).map_err(|error| format!("cannot apply the patch: {error}"))
}

fn patch_of(answer: &[u8]) -> Result<json_patch::Patch, Box<dyn std::error::Error + Send + Sync>> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let answer: Value = serde_json::from_slice(answer)?;
    let Some(patch) = answer.pointer("/response/patch").and_then(Value::as_str) else {
        return Ok(json_patch::Patch::default());
    };
    Ok(serde_json::from_slice(&STANDARD.decode(patch)?)?)
}
