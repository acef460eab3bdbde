//! The reference renderer: every rule of the specification, written plainly with `serde_json`.
//!
//! Read it next to `docs/spec/linkerd/injection.md` ("L§") and `docs/spec/linkerd/template.md` ("T§"): it has
//! one function per section, is slow and simple, and shares nothing with the product except the
//! parsers of Go's numbers, durations and quantities. It gives injectd's answers, including the
//! deliberate differences of `docs/differences.md`.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "for tests only"
)]
#![expect(clippy::disallowed_types, reason = "values and reviews are trees, slow and obvious")]

pub mod annotations;
mod debug;
mod decide;
pub mod env_list;
mod init;
pub mod json;
mod mounts;
pub mod object;
mod overrides;
pub mod owner;
mod params;
mod patch;
mod ports;
mod proxy;
mod proxy_env;
pub mod release;
mod security;
mod tracing;
mod validator;
pub mod values;
mod volumes;
pub mod yaml;

use serde_json::{Map, Value};

use json::WrongType;
use object::{Envelope, Workload};
pub use owner::{Event, OwnerReferences};
pub use release::Release;
use values::Values;

/// Looks up the owners of an object by kind, namespace and name; `None` is 404.
pub type Lookup<'a> = &'a dyn Fn(&str, &str, &str) -> Option<OwnerReferences>;

/// The input that an answer depends on.
pub struct Input<'a> {
    /// The release to follow.
    pub release: Release,
    /// The mounted values: a tree with the scalar types of YAML 1.1.
    pub values: &'a Value,
    /// The bytes of the trust bundle file.
    pub trust_roots: &'a [u8],
    /// The flag `-linkerd-namespace`.
    pub control_plane_namespace: &'a str,
    /// The annotations of the request's namespace; `None` if it does not exist.
    pub namespace_annotations: Option<&'a Map<String, Value>>,
    /// Looks up an object's owner references in the cluster.
    pub lookup: Lookup<'a>,
    /// The `AdmissionReview`.
    pub review: &'a Value,
}

/// The answer to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The full sidecar.
    Injected {
        /// The operations in order.
        patch: Vec<Value>,
    },
    /// Only the opaque-ports annotation.
    Annotated {
        /// The operations in order.
        patch: Vec<Value>,
    },
    /// A skipped pod.
    Skipped {
        /// The reasons, with upstream's order and short names.
        reasons: Vec<&'static str>,
    },
    /// Any other object, without a patch.
    Allowed,
    /// `allowed: false`, with a message.
    Denied(String),
    /// Not a review: HTTP 400.
    NotAReview,
}

/// An answer and its event.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer to the API server.
    pub answer: Answer,
    /// The event that is sent, if there is one.
    pub event: Option<Event>,
}

impl Outcome {
    fn quiet(answer: Answer) -> Self {
        Self { answer, event: None }
    }

    fn denied(reason: impl Into<String>) -> Self {
        Self::quiet(Answer::Denied(reason.into()))
    }
}

/// The settings and the parts of the review, for all sections.
pub struct Context<'a> {
    pub release: Release,
    pub values: Values,
    pub trust_roots: &'a [u8],
    pub control_plane_namespace: &'a str,
    pub namespace_annotations: Map<String, Value>,
    pub workload: Workload,
    pub owner: Option<(String, String)>,
}

/// L§0, L§2: the answer to a review and its event.
pub fn review(input: &Input<'_>) -> Outcome {
    review_with(input, Values::read(input.values, input.release).as_ref())
}

/// The same with values that are already read; ignores the values of the input.
pub fn review_with(input: &Input<'_>, values: Result<&Values, &String>) -> Outcome {
    match answer(input, values) {
        Ok(outcome) => outcome,
        Err(WrongType(what)) => Outcome::denied(what),
    }
}

fn answer(input: &Input<'_>, values: Result<&Values, &String>) -> Result<Outcome, WrongType> {
    let Some(envelope) = Envelope::read(input.review) else {
        return Ok(Outcome::quiet(Answer::NotAReview));
    };
    if envelope.asks_for_nothing() {
        return Ok(Outcome::quiet(Answer::Allowed));
    }
    let Some(namespace_annotations) = input.namespace_annotations else {
        return Ok(Outcome::denied("the namespace does not exist"));
    };
    let values = match values {
        Ok(values) => values.clone(),
        Err(refused) => return Ok(Outcome::denied(refused.as_str())),
    };
    let workload = Workload::read(&envelope)?;
    let owner = owner::of_pod(&workload, &envelope.namespace, input.lookup);
    let mut context = Context {
        release: input.release,
        values,
        trust_roots: input.trust_roots,
        control_plane_namespace: input.control_plane_namespace,
        namespace_annotations: namespace_annotations.clone(),
        workload,
        owner: owner.clone(),
    };
    let post = |reasons: Option<&[&'static str]>| {
        let (kind, name) = owner.as_ref().filter(|_| !envelope.dry_run)?;
        owner::event(kind, name, &envelope.namespace, reasons, input.lookup)
    };
    let Some(reasons) = decide::reasons(&context) else {
        return Ok(match patch::inject(&mut context) {
            Ok(patch) => Outcome { answer: Answer::Injected { patch }, event: post(None) },
            Err(denial) => Outcome::denied(denial),
        });
    };
    let event = post(Some(&reasons));
    let answer = match ports::opaque_ports_patch(&context) {
        Some(patch) => Answer::Annotated { patch },
        None if context.workload.kind == "pod" => Answer::Skipped { reasons },
        None => Answer::Allowed,
    };
    Ok(Outcome { answer, event })
}

/// The wrong type in a field of the object, if there is one.
pub fn wrong_type(review: &Value) -> Option<String> {
    let envelope = Envelope::read(review).filter(|envelope| !envelope.asks_for_nothing())?;
    Workload::read(&envelope).err().map(|WrongType(what)| what)
}

/// Whether the request is allowed without a patch (L§2.12).
pub fn asks_for_nothing(review: &Value) -> bool {
    Envelope::read(review).is_some_and(|envelope| envelope.asks_for_nothing())
}

/// L§2.4: the text of a skip reason.
pub fn sentence(reason: &str) -> &'static str {
    decide::sentence(reason)
}
