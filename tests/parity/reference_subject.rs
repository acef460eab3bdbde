//! The reference renderer as a subject: reads the bytes of a request.

use serde_json::{Value, json};

use super::corpus::{Case, ConfigSet};
use super::subject::{Answered, SeenEvent, Subject, SubjectAnswer};
use injectd_testkit::reference::{self, Answer, Input, Outcome, Release};

/// See [`reference`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReferenceSubject;

impl Subject for ReferenceSubject {
    fn answer(&mut self, release: Release, config: &ConfigSet, case: &Case) -> SubjectAnswer {
        let values = match &config.values {
            Ok(values) => values,
            Err(error) => return SubjectAnswer::Refused(error.clone()),
        };
        if let Err(error) = reference::values::Values::read(values, release) {
            return SubjectAnswer::Refused(error);
        }
        SubjectAnswer::Answered(Box::new(match review_of(&case.body) {
            Some(review) => answered(release, values, config, case, &review),
            None => not_a_review(),
        }))
    }
}

/// The body as JSON. A string with half of a surrogate pair becomes an object, which is a wrong
/// type in a field that is read, and has no effect elsewhere.
pub(crate) fn review_of(body: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(body).ok()?;
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&without_half_pairs(text))).ok()
}

/// Whether a JSON string token contains an escape of half of a surrogate pair.
pub(crate) fn has_half_pair(token: &str) -> bool {
    let mut rest = token;
    while let Some(at) = rest.find('\\') {
        rest = &rest[at + 1..];
        let Some(code) = unicode_escape(rest) else {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        rest = &rest[5..];
        let low = rest.strip_prefix('\\').and_then(unicode_escape);
        let pair = low.is_some_and(|low| (0xDC00..=0xDFFF).contains(&low));
        match code {
            0xD800..=0xDBFF if pair => rest = &rest[6..],
            0xD800..=0xDFFF => return true,
            _ => {}
        }
    }
    false
}

fn unicode_escape(after_backslash: &str) -> Option<u32> {
    let digits = after_backslash.strip_prefix('u')?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

fn without_half_pairs(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        let (before, token) = rest.split_at(start);
        let length = token_length(token);
        let (token, after) = token.split_at(length);
        out.push_str(before);
        out.push_str(if has_half_pair(token) { "{}" } else { token });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The length of the JSON string that `text` starts with.
fn token_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn not_a_review() -> Answered {
    Answered {
        status: 400,
        review: None,
        patch: None,
        verdict: "http-400".to_owned(),
        reasons: Vec::new(),
        event: None,
    }
}

fn answered(
    release: Release,
    values: &Value,
    config: &ConfigSet,
    case: &Case,
    review: &Value,
) -> Answered {
    let namespace = review["request"]["namespace"].as_str().unwrap_or_default();
    let annotations = case.namespace_annotations(namespace);
    let lookup = |kind: &str, namespace: &str, name: &str| {
        let object = case.object(kind, namespace, name)?;
        let references = object["metadata"]["ownerReferences"].as_array();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let references = references.into_iter().flatten();
        Some(references.map(|owner| (text(&owner["kind"]), text(&owner["name"]))).collect())
    };
    let outcome = reference::review(&Input {
        release,
        values,
        trust_roots: &config.trust_roots,
        control_plane_namespace: "linkerd",
        namespace_annotations: annotations.as_ref(),
        lookup: &lookup,
        review,
    });
    dress(review, outcome)
}

/// Converts an outcome to an `AdmissionReview`.
fn dress(review: &Value, outcome: Outcome) -> Answered {
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    let mut answered = not_a_review();
    answered.status = 200;
    let verdict = match outcome.answer {
        Answer::NotAReview => return not_a_review(),
        Answer::Injected { patch } => {
            answered.patch = Some(patch);
            "injected"
        }
        Answer::Annotated { patch } => {
            answered.patch = Some(patch);
            "annotated"
        }
        Answer::Skipped { reasons } => {
            answered.reasons = reasons.iter().map(|&reason| reason.to_owned()).collect();
            "skipped"
        }
        Answer::Allowed => "allowed",
        Answer::Denied(reason) => {
            response["allowed"] = false.into();
            response["status"] = json!({"message": reason});
            "denied"
        }
    };
    if answered.patch.is_some() {
        response["patchType"] = "JSONPatch".into();
    }
    verdict.clone_into(&mut answered.verdict);
    let (version, kind) = (&review["apiVersion"], &review["kind"]);
    answered.review = Some(json!({"apiVersion": version, "kind": kind, "response": response}));
    answered.event = outcome.event.map(|event| SeenEvent {
        kind: "Normal".to_owned(),
        reason: event.reason.to_owned(),
        message: event.message,
        component: "linkerd-proxy-injector".to_owned(),
        regarding: [
            event.regarding.api_version.to_owned(),
            event.regarding.kind.to_owned(),
            event.regarding.name,
            event.regarding.namespace,
        ],
    });
    answered
}

#[cfg(test)]
mod tests {
    use super::{has_half_pair, review_of};

    #[test]
    fn half_a_pair_is_found_after_other_escapes() {
        assert!(has_half_pair(r"\n\ud83d x"));
        assert!(has_half_pair(r"\ude00"));
        assert!(!has_half_pair(r"\ud83d\ude00"));
        assert!(!has_half_pair(r"\\ud83d"));
    }

    #[test]
    fn a_string_with_half_a_pair_becomes_an_object() {
        let review = review_of(br#"{"a": "\ud83d", "b": "\\ud83d"}"#).expect("must be read");
        assert!(review["a"].is_object());
        assert_eq!(review["b"], r"\ud83d");
    }
}
