//! The effect of an answer on the API server, and the differences between two answers.

use std::error::Error;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use injectd_cluster::causes::with_causes;
use injectd_core::{injector::UNREADABLE_OBJECT, linkerd::differences};
use serde_json::{Map, Value};

/// The audit annotation with the reasons for a skip.
pub(super) const REASONS: &str = "reasons";

/// The effect of an answer on the API server.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meaning {
    /// Allowed, with the operations of the patch, which may be empty.
    Allowed(Vec<Value>),
    /// Denied, with the message.
    Denied(String),
    /// Allowed, with a patch that is not JSON.
    BrokenPatch,
    /// The connection closed early, or the review could not be read: the failure policy decides.
    NoAnswer,
}

/// An answer to compare.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) meaning: Meaning,
    /// The reason for a skip, if known.
    pub(super) reason: Option<String>,
}

impl Answer {
    /// Reads an `AdmissionReview`, with the reason from its audit annotations.
    ///
    /// `None` without `response.allowed`.
    pub(super) fn of(answer: &[u8]) -> Option<Self> {
        let tree: Value = serde_json::from_slice(answer).ok()?;
        let reason = &tree["response"]["auditAnnotations"][REASONS];
        Some(Self { meaning: Meaning::read(&tree)?, reason: reason.as_str().map(str::to_owned) })
    }

    pub(super) fn none(error: &(dyn Error + 'static)) -> Self {
        Self { meaning: Meaning::NoAnswer, reason: Some(with_causes(error)) }
    }
}

/// A place where two answers differ.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    /// The place, which is the same in every review with the same cause.
    pub(super) place: String,
    /// The other injector's value, as JSON.
    pub(super) theirs: String,
    /// Our value, as JSON.
    pub(super) ours: String,
    /// The row of `docs/differences.md` that explains the difference.
    pub(super) row: Option<&'static str>,
}

impl Difference {
    /// Two answers of different kinds.
    pub(super) fn of_answers(theirs: &Meaning, ours: &Meaning, row: Option<&'static str>) -> Self {
        let (theirs, ours) = (theirs.description(), ours.description());
        Self { place: "answer".to_owned(), theirs, ours, row }
    }
}

impl Meaning {
    /// Reads an `AdmissionReview` of version v1 or v1beta1; `None` without `response.allowed`.
    fn read(answer: &Value) -> Option<Self> {
        let response = &answer["response"];
        Some(match (response["allowed"].as_bool()?, response["patch"].as_str()) {
            (false, _) => {
                let message = response["status"]["message"].as_str().unwrap_or_default();
                Self::Denied(message.to_owned())
            }
            (true, None | Some("")) => Self::Allowed(Vec::new()),
            (true, Some(patch)) => {
                // Empty text is not JSON either: a patch that is not Base64 is a broken one.
                let json = STANDARD.decode(patch).unwrap_or_default();
                serde_json::from_slice(&json).map_or(Self::BrokenPatch, Self::Allowed)
            }
        })
    }

    fn description(&self) -> String {
        match self {
            Self::Allowed(patch) if patch.is_empty() => "allowed".to_owned(),
            Self::Allowed(patch) => format!("allowed with {} operations", patch.len()),
            Self::Denied(message) => format!("denied: {message}"),
            Self::BrokenPatch => "allowed with a patch that is not JSON".to_owned(),
            Self::NoAnswer => "no answer".to_owned(),
        }
    }
}

/// What names the row of `docs/differences.md` that explains a difference at a place.
pub(super) type Explain = fn(place: &str, theirs: &Value, ours: &Value) -> Option<&'static str>;

/// The differences between two answers of Linkerd's injectors; empty if they have the same effect.
pub(super) fn differences(theirs: &Meaning, ours: &Meaning, has_object: bool) -> Vec<Difference> {
    let mut found = Vec::new();
    match (theirs, ours) {
        (Meaning::Allowed(theirs), Meaning::Allowed(ours)) if has_object || ours == theirs => {
            compare_patches(theirs, ours, &mut found);
        }
        // The texts are for people, and the pod is refused by both.
        (Meaning::Denied(_), Meaning::Denied(_)) => {}
        (theirs, ours) if theirs == ours => {}
        (theirs, ours) => {
            let row = if has_object { row_of_answers(theirs, ours) } else { Some("no-object") };
            found.push(Difference::of_answers(theirs, ours, row));
        }
    }
    found
}

/// The row that explains two answers of different kinds.
fn row_of_answers(theirs: &Meaning, ours: &Meaning) -> Option<&'static str> {
    match (theirs, ours) {
        (Meaning::BrokenPatch, _) => Some("invalid-patch"),
        (Meaning::NoAnswer, _) => Some("panic"),
        (_, Meaning::Denied(text)) if text.starts_with(UNREADABLE_OBJECT) => Some("exact-types"),
        (Meaning::Denied(text), _) if text.starts_with("error unmarshaling JSON") => {
            Some("unread-fields")
        }
        _ => None,
    }
}

fn compare_patches(theirs: &[Value], ours: &[Value], found: &mut Vec<Difference>) {
    let paths = |patch: &[Value]| -> Vec<String> {
        patch.iter().map(|operation| operation["path"].to_string()).collect()
    };
    let (their_paths, our_paths) = (paths(theirs), paths(ours));
    if their_paths != our_paths {
        let extra = |from: &[String], others: &[String]| -> String {
            from.iter().filter(|path| !others.contains(path)).cloned().collect::<Vec<_>>().join(" ")
        };
        let (only_theirs, only_ours) =
            (extra(&their_paths, &our_paths), extra(&our_paths, &their_paths));
        let place = match (only_theirs.is_empty(), only_ours.is_empty()) {
            (true, true) => "order of operations".to_owned(),
            _ => format!("operations: -{only_theirs} +{only_ours}"),
        };
        found.push(Difference { place, theirs: only_theirs, ours: only_ours, row: None });
        return;
    }
    for (theirs, ours) in theirs.iter().zip(ours) {
        let place = ours["value"]["name"].as_str().or(ours["path"].as_str()).unwrap_or_default();
        walk(place, &theirs["value"], &ours["value"], explain, found);
    }
}

fn explain(place: &str, theirs: &Value, ours: &Value) -> Option<&'static str> {
    match theirs {
        Value::Object(map) if is_error(map) => Some("invalid-container"),
        _ => differences::explain(place, theirs, ours),
    }
}

/// Whether a value is Linkerd's text about a container that it could not make.
fn is_error(map: &Map<String, Value>) -> bool {
    map.len() == 1 && map.contains_key("Error")
}

/// Adds the differences between two values below a place.
pub(super) fn walk(
    place: &str,
    theirs: &Value,
    ours: &Value,
    explain: Explain,
    found: &mut Vec<Difference>,
) {
    if theirs == ours {
        return;
    }
    match (theirs, ours) {
        (Value::Object(left), Value::Object(right)) if !is_error(left) => {
            let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
            for key in keys {
                walk(&format!("{place}/{key}"), &theirs[key], &ours[key], explain, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (theirs, item)) in left.iter().zip(right).enumerate() {
                walk(&format!("{place}/{}", step(right, at)), theirs, item, explain, found);
            }
        }
        _ => {
            let row = explain(place, theirs, ours);
            let (place, theirs, ours) = (place.to_owned(), theirs.to_string(), ours.to_string());
            found.push(Difference { place, theirs, ours, row });
        }
    }
}

/// The path step of a list item: its name, the option before it, or its index.
fn step(list: &[Value], at: usize) -> String {
    let before = at.checked_sub(1).and_then(|before| list[before].as_str());
    match (list[at]["name"].as_str(), before) {
        (Some(name), _) => name.to_owned(),
        (None, Some(option)) if option.starts_with("--") => option.to_owned(),
        (None, _) => at.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(patch: &Value) -> Meaning {
        let patch = STANDARD.encode(patch.to_string());
        read(&json!({"response": {"allowed": true, "patch": patch}}))
    }

    fn read(answer: &Value) -> Meaning {
        Meaning::read(answer).expect("must contain response.allowed")
    }

    fn places(theirs: &Meaning, ours: &Meaning) -> Vec<(String, Option<&'static str>)> {
        let found = differences(theirs, ours, true);
        found.into_iter().map(|found| (found.place, found.row)).collect()
    }

    #[test]
    fn answers_are_compared_by_meaning() {
        let theirs = json!([{"op": "add", "path": "/a", "value": {"x": 1, "y": 2}}]);
        let ours = json!([{"value": {"y": 2, "x": 1}, "path": "/a", "op": "add"}]);
        assert!(places(&answer(&theirs), &answer(&ours)).is_empty());
        let allowed = json!({"response": {"allowed": true}});
        assert_eq!(read(&allowed), Meaning::Allowed(Vec::new()));
        let broken = json!({"response": {"allowed": true, "patch": STANDARD.encode("[")}});
        assert_eq!(read(&broken), Meaning::BrokenPatch);
    }

    #[test]
    fn text_without_response_allowed_is_not_an_answer() {
        for text in ["", "closed", "{}", r#"{"response":{"uid":"u1"}}"#] {
            assert!(Answer::of(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_difference_has_the_same_place_whatever_the_order_of_items() {
        let container = |uid: &str, log: &str| {
            answer(&json!([{"path": "/spec/initContainers/0", "value": {"name": "linkerd-init",
                "args": ["--proxy-uid", uid], "env": [{"name": "LOG", "value": log}]}}]))
        };
        assert_eq!(
            places(&container("1e+06", "a"), &container("1000000", "b")),
            [
                ("linkerd-init/args/--proxy-uid".to_owned(), Some("scientific-numbers")),
                ("linkerd-init/env/LOG/value".to_owned(), None),
            ]
        );
    }

    #[test]
    fn missing_and_added_operations_are_listed() {
        let patch = |paths: &[&str]| {
            answer(&paths.iter().map(|path| json!({"path": path, "value": {}})).collect())
        };
        let found = places(&patch(&["/a", "/b"]), &patch(&["/a", "/c"]));
        assert_eq!(found[0].0, r#"operations: -"/b" +"/c""#);
        assert_eq!(
            places(&patch(&["/a", "/b"]), &patch(&["/b", "/a"]))[0].0,
            "order of operations"
        );
    }

    #[test]
    fn different_verdicts_are_a_difference_unless_a_row_explains_it() {
        let injected = answer(&json!([{"path": "/a", "value": 1}]));
        assert_eq!(
            places(&Meaning::Denied("x".to_owned()), &injected),
            [("answer".to_owned(), None)]
        );
        assert_eq!(places(&Meaning::NoAnswer, &injected), [("answer".to_owned(), Some("panic"))]);
        let found = differences(&injected, &Meaning::Allowed(Vec::new()), false);
        assert_eq!(found[0].row, Some("no-object"));
    }
}
