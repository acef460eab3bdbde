//! The interface of subjects, and the form in which answers are compared.

use serde_json::Value;

use super::corpus::{Case, ConfigSet};
use injectd_testkit::reference::{self, Release};

/// Anything that answers reviews: the reference, the product, another injector.
pub(crate) trait Subject {
    /// Answers one case under a configuration.
    fn answer(&mut self, release: Release, config: &ConfigSet, case: &Case) -> SubjectAnswer;
}

/// The result of a subject.
#[derive(Clone, Debug)]
pub(crate) enum SubjectAnswer {
    /// The subject does not start with this configuration, with the reason.
    Refused(String),
    /// The subject answered.
    Answered(Box<Answered>),
}

/// An answer of a subject.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The `AdmissionReview`; its `response.patch` is ignored.
    pub(crate) review: Option<Value>,
    /// The decoded patch.
    pub(crate) patch: Option<Vec<Value>>,
    /// `injected`, `annotated`, `skipped`, `allowed`, `denied` or `http-400`.
    pub(crate) verdict: String,
    /// Skip reasons by their short names (`host_network_enabled`), in order.
    pub(crate) reasons: Vec<String>,
    /// The event that is sent.
    pub(crate) event: Option<SeenEvent>,
}

/// The parts of an event that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenEvent {
    /// `Normal`.
    pub(crate) kind: String,
    /// `Injected` or `InjectionSkipped`.
    pub(crate) reason: String,
    /// The message.
    pub(crate) message: String,
    /// The source component.
    pub(crate) component: String,
    /// `apiVersion`, `kind`, `name`, `namespace` of the object it is about.
    pub(crate) regarding: [String; 4],
}

/// The parts of an answer that are compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The configuration was rejected; then the other fields have no meaning.
    pub(crate) refused: bool,
    /// The HTTP status; `None` for a closed connection.
    pub(crate) status: Option<u16>,
    /// `apiVersion` and `kind` of the review.
    pub(crate) type_meta: Option<[String; 2]>,
    /// `response.uid`.
    pub(crate) uid: Option<String>,
    /// `response.allowed`.
    pub(crate) allowed: Option<bool>,
    /// `response.patchType`.
    pub(crate) patch_type: Option<String>,
    /// Whether there is a `response.status.message`.
    pub(crate) has_message: bool,
    /// The patch.
    pub(crate) patch: Option<Vec<Value>>,
    /// The verdict.
    pub(crate) verdict: String,
    /// The texts of the skip reasons.
    pub(crate) reasons: Option<String>,
    /// The event.
    pub(crate) event: Option<SeenEvent>,
}

impl Seen {
    /// A rejected configuration.
    pub(crate) fn refused() -> Self {
        Self { refused: true, ..Self::status(0, "refused") }
    }

    /// An answer that is not a review.
    pub(crate) fn status(status: u16, verdict: &str) -> Self {
        Self {
            refused: false,
            status: Some(status),
            type_meta: None,
            uid: None,
            allowed: None,
            patch_type: None,
            has_message: false,
            patch: None,
            verdict: verdict.to_owned(),
            reasons: None,
            event: None,
        }
    }

    /// Upstream's recorded answer. Upstream sends at most one event.
    pub(crate) fn of_case(case: &Case) -> Self {
        let mut seen = Self::status(0, &case.verdict);
        seen.status = case.status;
        if let Some(review) = &case.response {
            seen.read_review(review);
        }
        seen.patch.clone_from(&case.patch);
        seen.reasons.clone_from(&case.reasons);
        seen.event = case.events.first().map(SeenEvent::of_object);
        seen
    }

    /// The result of a subject.
    pub(crate) fn of_answer(answer: &SubjectAnswer) -> Self {
        let answered = match answer {
            SubjectAnswer::Refused(_) => return Self::refused(),
            SubjectAnswer::Answered(answered) => answered,
        };
        let mut seen = Self::status(answered.status, &answered.verdict);
        if let Some(review) = &answered.review {
            seen.read_review(review);
        }
        seen.patch.clone_from(&answered.patch);
        if answered.verdict == "skipped" {
            let reasons = answered.reasons.iter();
            let sentences: Vec<_> = reasons.map(|reason| reference::sentence(reason)).collect();
            seen.reasons = Some(sentences.join(", "));
        }
        seen.event.clone_from(&answered.event);
        seen
    }

    fn read_review(&mut self, review: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let meta = |name: &str| text(&review[name]).unwrap_or_default();
        self.type_meta = Some([meta("apiVersion"), meta("kind")]);
        let response = &review["response"];
        self.uid = text(&response["uid"]);
        self.allowed = response["allowed"].as_bool();
        self.patch_type = text(&response["patchType"]);
        let message = response["status"]["message"].as_str();
        self.has_message = message.is_some_and(|message| !message.is_empty());
    }
}

impl SeenEvent {
    fn of_object(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let about = &event["involvedObject"];
        let about = ["apiVersion", "kind", "name", "namespace"].map(|name| text(&about[name]));
        Self {
            kind: text(&event["type"]),
            reason: text(&event["reason"]),
            message: text(&event["message"]),
            component: text(&event["source"]["component"]),
            regarding: about,
        }
    }
}
