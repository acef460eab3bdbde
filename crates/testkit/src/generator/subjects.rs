//! The fast core and the reference with one configuration, and their answers to reviews.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use injectd_core::injector::Answer as CoreAnswer;
use injectd_core::linkerd::events;
use injectd_core::linkerd::release::Release as CoreRelease;
use injectd_core::linkerd::snapshot::{Config as CoreConfig, Snapshot};
use injectd_core::objects::Objects;
use injectd_core::outcome::Outcome;
use injectd_core::standalone::Standalone;
use serde_json::{Map, Value, json};

use super::configs::Config;
use super::exclusions;
use crate::reference::owner::{self, OwnerReferences};
use crate::reference::values::Values;
use crate::reference::{self, Answer, Event, Input, Release};
use crate::{Injector, yaml};

/// The compared parts of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The verdict, or `not a review`.
    pub verdict: &'static str,
    /// The reasons for a skip.
    pub reasons: Vec<&'static str>,
    /// The patch.
    pub patch: Option<Vec<Value>>,
    /// The event.
    pub event: Option<Event>,
}

/// The product's whole answer.
#[derive(Debug)]
pub struct Answered {
    /// The bytes that are sent.
    pub body: Vec<u8>,
    /// The compared parts.
    pub seen: Seen,
    /// All reasons, also of objects that are not pods or are annotated.
    pub all_reasons: Vec<&'static str>,
}

/// The product and the reference, ready to answer.
pub struct Subjects {
    /// The configuration.
    pub config: Config,
    /// The product, or why it rejects the configuration.
    pub injector: Result<Injector, String>,
    /// The release in use.
    pub release: Release,
    /// Whether the configuration is one of the exclusions.
    pub left_out: bool,
    /// The values as the reference reads them, or why it rejects them.
    pub values: Result<Values, String>,
}

impl Subjects {
    /// Reads the configuration with the product and with the reference.
    pub fn of(config: Config) -> Self {
        let text = config.yaml();
        let snapshot = Snapshot::new(
            CoreConfig {
                values: &text,
                trust_roots: &config.trust_roots,
                control_plane_namespace: &config.control_plane_namespace,
                fallback_release: config.fallback.map(core_release),
            },
            1,
        );
        let objects = Arc::new(objects(&config));
        let injector = snapshot
            .map(|snapshot| Injector::new(snapshot, Standalone::Listed(Arc::clone(&objects))));
        let tree = yaml::tree(&text);
        let release = tree.as_ref().ok().map(|tree| Release::of_values(tree, config.fallback));
        let release = release.unwrap_or(Release::OLDEST);
        let left_out = tree.as_ref().is_ok_and(exclusions::config);
        let values = tree.and_then(|tree| Values::read(&tree, release));
        Self {
            injector: injector.map_err(|error| error.to_string()),
            config,
            release,
            values,
            left_out,
        }
    }

    /// Whether both accept (true) or both reject (false) the configuration; else the error of one.
    pub fn agree_to_serve(&self) -> Result<bool, String> {
        match (&self.injector, &self.values) {
            (Ok(_), Ok(_)) => Ok(true),
            (Err(_), Err(_)) => Ok(false),
            (Ok(_), Err(why)) => Err(format!("only the reference rejects the values: {why}")),
            (Err(why), Ok(_)) => Err(format!("only the product rejects the values: {why}")),
        }
    }

    /// The product's answer to a body. The error is an invalid answer.
    pub fn product(&self, body: &[u8], review: &Value) -> Result<Answered, String> {
        let injector = self.injector.as_ref().map_err(Clone::clone)?;
        let answer = injector.review(body).now_or_never();
        match answer.expect("a review must not wait without a cluster") {
            Ok(answer) => self.answered(answer, review),
            Err(_) => {
                Ok(Answered { body: Vec::new(), seen: not_a_review(), all_reasons: Vec::new() })
            }
        }
    }

    /// The reference's answer.
    pub fn reference(&self, review: &Value) -> Seen {
        let request = review["request"].as_object();
        let namespace = request.and_then(|request| request.get("namespace")?.as_str());
        let namespace = namespace.unwrap_or_default();
        let lookup = |kind: &str, namespace: &str, name: &str| {
            let owner = self.owner(kind, namespace, name)?;
            Some(references_of(owner))
        };
        let no_tree = Value::Null;
        let input = Input {
            release: self.release,
            values: &no_tree,
            trust_roots: &self.config.trust_roots,
            control_plane_namespace: &self.config.control_plane_namespace,
            namespace_annotations: self.namespace(namespace),
            lookup: &lookup,
            review,
        };
        seen_of(reference::review_with(&input, self.values.as_ref()))
    }

    fn namespace(&self, name: &str) -> Option<&Map<String, Value>> {
        self.config.namespaces.get(name)?.as_object()
    }

    fn owner(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        let mut owners = self.config.owners.iter();
        owners.find(|owner| {
            let meta = &owner["metadata"];
            owner["kind"] == kind && meta["namespace"] == namespace && meta["name"] == name
        })
    }

    fn answered(&self, answer: CoreAnswer<'_>, asked: &Value) -> Result<Answered, String> {
        let fault = |what: &str| format!("{what}: {}", String::from_utf8_lossy(&answer.body));
        let review: Value =
            serde_json::from_slice(&answer.body).map_err(|_| fault("the answer is not JSON"))?;
        let response = &review["response"];
        let outcome = &answer.outcome;
        let verdict = outcome.verdict.as_str();
        let (denied, patched) = (verdict == "denied", ["injected", "annotated"].contains(&verdict));
        let named = |name: &str| match asked[name].as_str() {
            None | Some("") => review.get(name).is_none(),
            Some(text) => review[name] == text,
        };
        let message = response["status"]["message"].as_str().unwrap_or_default();
        let is_valid = response["uid"] == asked["request"]["uid"]
            && named("kind")
            && named("apiVersion")
            && response["allowed"] == !denied
            && denied != message.is_empty()
            && patched == (response["patchType"] == "JSONPatch")
            && patched == response["patch"].is_string()
            && patched == response.get("patchType").is_some();
        if !is_valid {
            return Err(fault("the answer is not a valid review"));
        }
        let patch = response["patch"].as_str().map(|patch| {
            let json = STANDARD.decode(patch).map_err(|_| fault("the patch is not base64"))?;
            serde_json::from_slice(&json).map_err(|_| fault("the patch is not a list"))
        });
        let all_reasons: Vec<_> = outcome.reasons.iter().map(|(_, reason)| reason.code).collect();
        let skipped = verdict == "skipped";
        let seen = Seen {
            verdict,
            reasons: if skipped { all_reasons.clone() } else { Vec::new() },
            patch: patch.transpose()?,
            event: self.event(outcome),
        };
        Ok(Answered { body: answer.body, seen, all_reasons })
    }

    /// The event as it would be sent.
    fn event(&self, outcome: &Outcome<'_>) -> Option<Event> {
        let (event, injector) = (outcome.event.as_ref()?, self.injector.as_ref().ok()?);
        let object = events::involved_object(injector.lookups(), event).now_or_never();
        let object = object.expect("a list must not wait")?;
        Some(Event {
            reason: events::reason(event.reasons),
            message: events::message(event.reasons),
            regarding: owner::Regarding {
                api_version: object.api_version,
                kind: object.kind,
                name: object.name.into_owned(),
                namespace: event.namespace.to_string(),
            },
        })
    }
}

/// The product's name for a release.
fn core_release(release: Release) -> CoreRelease {
    let (year, month, number) = release.edge;
    if release.stable_2_14 {
        CoreRelease::stable_2_14()
    } else {
        CoreRelease::edge(year, month, number)
    }
}

fn objects(config: &Config) -> Objects {
    let mut objects = Objects::default();
    let namespaces = config.namespaces.iter().map(|(name, annotations)| {
        json!({"kind": "Namespace", "metadata": {"name": name, "annotations": annotations}})
    });
    for object in namespaces.chain(config.owners.iter().cloned()) {
        objects.add(&object).expect("an object of the cluster must have a kind and a name");
    }
    objects
}

fn references_of(owner: &Value) -> OwnerReferences {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &owner["metadata"];
    let parents = meta["ownerReferences"].as_array().into_iter().flatten();
    let parents = parents.map(|parent| (text(&parent["kind"]), text(&parent["name"])));
    OwnerReferences { uid: text(&meta["uid"]), owners: parents.collect() }
}

fn not_a_review() -> Seen {
    Seen { verdict: "not a review", reasons: Vec::new(), patch: None, event: None }
}

fn seen_of(outcome: reference::Outcome) -> Seen {
    let mut seen = not_a_review();
    seen.event = outcome.event;
    seen.verdict = match outcome.answer {
        Answer::NotAReview => "not a review",
        Answer::Allowed => "allowed",
        Answer::Denied(_) => "denied",
        Answer::Injected { patch } => {
            seen.patch = Some(patch);
            "injected"
        }
        Answer::Annotated { patch } => {
            seen.patch = Some(patch);
            "annotated"
        }
        Answer::Skipped { reasons } => {
            seen.reasons = reasons;
            "skipped"
        }
    };
    seen
}
