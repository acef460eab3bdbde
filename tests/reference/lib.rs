//! The reference renderer: every rule of the specification in plain words over `serde_json`.
//!
//! It exists to be read next to `linkerd.md` ("L§") and `linkerd-template.md` ("T§"): one function
//! per section, no speed, no cleverness, nothing shared with the product but Go's readers of
//! numbers, durations and quantities. It gives injectd's answers, so the deliberate differences of
//! `docs/differences.md` are already in it. Not for use outside of tests; a test target that
//! includes it needs `use injectd::go;` at its root.

pub(crate) mod annotations;
mod debug;
mod decide;
pub(crate) mod env_list;
mod init;
pub(crate) mod json;
mod mounts;
pub(crate) mod object;
mod overrides;
pub(crate) mod owner;
mod params;
mod patch;
mod ports;
mod proxy;
mod proxy_env;
pub(crate) mod release;
mod security;
mod tracing;
mod validator;
pub(crate) mod values;
mod volumes;

use serde_json::{Map, Value};

use json::WrongType;
use object::{Envelope, Workload};
pub(crate) use owner::{Event, OwnerReferences};
pub(crate) use release::Release;
use values::Values;

/// Finds an object by kind, namespace and name, and tells its owners; `None` is 404.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str, &str, &str) -> Option<OwnerReferences>;

/// All that an answer depends on.
pub(crate) struct Input<'a> {
    /// Whose behaviour is wanted.
    pub(crate) release: Release,
    /// The mounted values: a YAML tree whose scalars are typed as YAML 1.1 types them.
    pub(crate) values: &'a Value,
    /// The bytes of the trust bundle file.
    pub(crate) trust_roots: &'a [u8],
    /// The flag `-linkerd-namespace`.
    pub(crate) control_plane_namespace: &'a str,
    /// The annotations of the request's namespace; `None` if there is no such namespace.
    pub(crate) namespace_annotations: Option<&'a Map<String, Value>>,
    /// Asks the cluster for an object's owner references.
    pub(crate) lookup: Lookup<'a>,
    /// The `AdmissionReview`.
    pub(crate) review: &'a Value,
}

/// What the API server is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
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
    /// A pod left alone.
    Skipped {
        /// Why, in upstream's order and upstream's short names.
        reasons: Vec<&'static str>,
    },
    /// Anything else left alone.
    Allowed,
    /// `allowed: false`, with a reason for people.
    Denied(String),
    /// Not a review: HTTP 400.
    NotAReview,
}

/// An answer and the event it leads to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// What the API server is told.
    pub(crate) answer: Answer,
    /// What is posted to the cluster, if anything.
    pub(crate) event: Option<Event>,
}

impl Outcome {
    fn quiet(answer: Answer) -> Self {
        Self { answer, event: None }
    }

    fn denied(reason: impl Into<String>) -> Self {
        Self::quiet(Answer::Denied(reason.into()))
    }
}

/// The settings and the pieces of the review every section works with.
pub(crate) struct Context<'a> {
    pub(crate) release: Release,
    pub(crate) values: Values,
    pub(crate) trust_roots: &'a [u8],
    pub(crate) control_plane_namespace: &'a str,
    pub(crate) namespace_annotations: Map<String, Value>,
    pub(crate) workload: Workload,
    pub(crate) owner: Option<(String, String)>,
}

/// L§0, L§2, design §6: the answer to a review and its event.
pub(crate) fn review(input: &Input<'_>) -> Outcome {
    review_with(input, Values::read(input.values, input.release).as_ref())
}

/// The same under values that were read before; those of the input do not matter then.
pub(crate) fn review_with(input: &Input<'_>, values: Result<&Values, &String>) -> Outcome {
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
        let owner = owner.as_ref().filter(|_| !envelope.dry_run)?;
        owner::event(owner, &envelope.namespace, reasons, input.lookup)
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

/// The wrong type in a field of the object that is read, if there is one.
pub(crate) fn wrong_type(review: &Value) -> Option<String> {
    let envelope = Envelope::read(review).filter(|envelope| !envelope.asks_for_nothing())?;
    Workload::read(&envelope).err().map(|WrongType(what)| what)
}

/// Whether the request is one that nothing is done for (design §6).
pub(crate) fn asks_for_nothing(review: &Value) -> bool {
    Envelope::read(review).is_some_and(|envelope| envelope.asks_for_nothing())
}

/// L§2.4: the sentence for a skip reason.
pub(crate) fn sentence(reason: &str) -> &'static str {
    decide::sentence(reason)
}
