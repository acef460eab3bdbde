//! The form in which answers are compared, and the comparison.

use json_patch::Patch;
use serde_json::{Value, json};

use crate::compare::values;

/// An answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The injector does not start, so there is no answer.
    Refused,
    /// The connection was closed.
    Closed,
    /// A status without a review.
    Status(u16),
    /// A review.
    Review(Review),
}

/// The parts of a review that are compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Review {
    /// Its `apiVersion` and `kind`; empty if it has none.
    pub(crate) type_meta: [String; 2],
    /// `response.uid`.
    pub(crate) uid: String,
    /// The decision.
    pub(crate) verdict: Verdict,
}

/// The decision of a review.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Allowed without a patch.
    Skipped,
    /// The patched pod.
    Injected(Value),
    /// A patch that does not apply to its own object.
    BrokenPatch(Patch),
    /// The message.
    Denied(String),
}

impl Answer {
    /// A review with its decoded patch.
    pub(crate) fn of_review(review: &Value, patch: Option<&Patch>, object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let response = &review["response"];
        let is_patch = response["patchType"] == "JSONPatch";
        assert_eq!(is_patch, patch.is_some(), "a patch must have its type: {response}");
        let verdict = match (response["allowed"].as_bool(), patch) {
            (Some(true), None) => Verdict::Skipped,
            (Some(true), Some(patch)) => {
                let mut pod = object.clone();
                match json_patch::patch(&mut pod, patch) {
                    Ok(()) => Verdict::Injected(pod),
                    Err(_) => Verdict::BrokenPatch(patch.clone()),
                }
            }
            _ => Verdict::Denied(text(&response["status"]["message"])),
        };
        Self::Review(Review {
            type_meta: [text(&review["apiVersion"]), text(&review["kind"])],
            uid: text(&response["uid"]),
            verdict,
        })
    }

    /// The review, if this is one.
    pub(crate) fn review(&self) -> Option<&Review> {
        match self {
            Self::Review(review) => Some(review),
            Self::Refused | Self::Closed | Self::Status(_) => None,
        }
    }

    /// The patched pod.
    pub(crate) fn pod(&self) -> Option<&Value> {
        match &self.review()?.verdict {
            Verdict::Injected(pod) => Some(pod),
            _ => None,
        }
    }

    /// The message of a denial.
    pub(crate) fn denial(&self) -> Option<&str> {
        match &self.review()?.verdict {
            Verdict::Denied(message) => Some(message),
            _ => None,
        }
    }

    /// The review with another verdict.
    pub(crate) fn with_verdict(&self, verdict: Verdict) -> Option<Self> {
        Some(Self::Review(Review { verdict, ..self.review()?.clone() }))
    }

    fn name(&self) -> String {
        match self {
            Self::Refused => "no start".to_owned(),
            Self::Closed => "closed".to_owned(),
            Self::Status(status) => format!("status {status}"),
            Self::Review(review) => match &review.verdict {
                Verdict::Skipped => "skipped".to_owned(),
                Verdict::Injected(_) => "injected".to_owned(),
                Verdict::BrokenPatch(_) => "patch does not apply".to_owned(),
                Verdict::Denied(message) => format!("denied: {message}"),
            },
        }
    }
}

/// The first difference between the expected and the actual answer, if there is one.
pub(crate) fn first_difference(expected: &Answer, got: &Answer) -> Option<String> {
    let (Answer::Review(wanted), Answer::Review(found)) = (expected, got) else {
        return (expected != got).then(|| verdicts(expected, got));
    };
    match (&wanted.verdict, &found.verdict) {
        (Verdict::Skipped, Verdict::Skipped) => None,
        (Verdict::Injected(wanted), Verdict::Injected(found)) => {
            values("", &normal(wanted), &normal(found)).map(|difference| format!("pod{difference}"))
        }
        (Verdict::Denied(wanted), Verdict::Denied(found)) => {
            (beginning(wanted) != beginning(found)).then(|| verdicts(expected, got))
        }
        _ => Some(verdicts(expected, got)),
    }
    .or_else(|| {
        let differs = wanted.uid != found.uid || wanted.type_meta != found.type_meta;
        differs.then(|| {
            let of = |review: &Review| format!("{:?} {:?}", review.uid, review.type_meta);
            format!("uid and type: {} != {}", of(wanted), of(found))
        })
    })
}

fn verdicts(expected: &Answer, got: &Answer) -> String {
    format!("verdict: {} != {}", expected.name(), got.name())
}

/// A message up to the first name or position in it.
fn beginning(message: &str) -> &str {
    let end = message.find(['"', '\'']).unwrap_or(message.len());
    let template = message.find("template: inject:").unwrap_or(end);
    &message[..end.min(template)]
}

/// The pod in the form in which two are compared, with JSON in its texts as JSON.
fn normal(pod: &Value) -> Value {
    let mut pod = injectd_merge::normal(pod);
    parse_texts(&mut pod);
    pod
}

fn parse_texts(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(parse_texts),
        Value::Array(items) => items.iter_mut().for_each(parse_texts),
        Value::String(text) => {
            let trimmed = text.trim();
            if trimmed.starts_with(['{', '['])
                && let Ok(parsed) = serde_json::from_str::<Value>(trimmed)
            {
                *value = json!({ "json": parsed });
            }
        }
        _ => {}
    }
}
