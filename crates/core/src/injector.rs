//! The steps of a review, in order. Read this file first.
//!
//! Decode, namespace, decide, workload, template, render, encode. Only the two lookups may wait;
//! everything else is synchronous and pure.

use std::{borrow::Cow, sync::Arc, time::Instant};

use arc_swap::ArcSwap;

use crate::{
    linkerd::{
        annotate::opaque_ports_patch,
        decide, events,
        overrides::Overrides,
        render::{Injection, OpaquePorts},
        snapshot::Snapshot,
        workload::{Owner, owner_kind},
    },
    lookups::{Annotations, LookupError, Lookups},
    outcome::{
        Event, InvolvedObject, Outcome, Regarding, SkipReasons, Verdict, Warnings, Workload,
        bounded_name,
    },
    patch::PatchBuffer,
    pod::{Kind, Metadata, Object, POD_TEMPLATE_HASH, Spec, Text},
    review::{self, DecodeError, Request, Subject},
};

/// Start of the denial of an object with a wrong type in a field that injection reads.
pub const UNREADABLE_OBJECT: &str = "the object cannot be understood";

/// The injection core, which every server calls.
#[derive(Debug)]
pub struct Injector<L> {
    snapshot: ArcSwap<Snapshot>,
    lookups: L,
}

/// Why a review failed.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The body is not a review with a uid, so no response can be addressed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The lookup of the namespace failed.
    #[error("cannot look up the annotations of namespace {0:?}")]
    Namespace(String, #[source] LookupError),
    /// Too many reviews wait for the lookup of owners.
    #[error("cannot look up the owner {0:?}")]
    Owner(String, #[source] LookupError),
}

/// The answer to a review, and its outcome.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The `AdmissionReview` to send back, as JSON.
    pub body: Vec<u8>,
    /// For metrics, the log line and the event.
    pub outcome: Outcome<'a>,
}

/// Facts that the caller supplies in place of lookups, and its deadline.
#[derive(Debug, Default)]
pub struct CallerFacts<'a> {
    /// Annotations of the namespace, at least those that injection reads.
    pub namespace_annotations: Option<Annotations>,
    /// The workload for the labels of an injected pod.
    pub workload: Option<Workload<'a>>,
    /// When the caller stops waiting: an owner whose lookup takes longer is derived from the pod's
    /// labels.
    pub deadline: Option<Instant>,
}

impl<L: Lookups> Injector<L> {
    /// An injector with this configuration.
    #[must_use]
    pub fn new(snapshot: Snapshot, lookups: L) -> Self {
        Self { snapshot: ArcSwap::from_pointee(snapshot), lookups }
    }

    /// The source of lookups.
    #[must_use]
    pub fn lookups(&self) -> &L {
        &self.lookups
    }

    /// The configuration in use.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Replaces the configuration; reviews in flight keep theirs.
    pub fn replace_snapshot(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
    }

    /// The involved object of an event: the root owner, if its kind gets events and it exists.
    pub async fn involved_object<'a>(&'a self, event: &Event<'a>) -> Option<InvolvedObject<'a>> {
        let workload = match &event.regarding {
            Regarding::Workload(workload) => workload.clone(),
            Regarding::Owner { owner, pod_template_hash } => {
                let pod_template_hash = pod_template_hash.as_deref();
                let owner =
                    Owner { namespace: &event.namespace, reference: owner, pod_template_hash };
                owner.resolve(&self.lookups, None).await.ok()?
            }
        };
        let (api_version, kind) = events::involved_kind(&workload.kind)?;
        let exists = self.lookups.has(&event.namespace, kind, &workload.name);
        (exists && !workload.name.is_empty()).then_some(InvolvedObject {
            api_version,
            kind,
            name: workload.name,
            object_uid: workload.object_uid,
        })
    }

    /// Answers a review.
    ///
    /// # Errors
    /// When the body is not a review: no response can be addressed. When a lookup fails: a retry
    /// may succeed.
    pub async fn review<'a>(&'a self, body: &'a [u8]) -> Result<Answer<'a>, ReviewError> {
        self.review_by(None, body).await
    }

    /// Answers a review by the caller's deadline.
    ///
    /// # Errors
    /// As [`Injector::review`].
    pub async fn review_by<'a>(
        &'a self,
        deadline: Option<Instant>,
        body: &'a [u8],
    ) -> Result<Answer<'a>, ReviewError> {
        let request = review::decode(body)?;
        let mut patch = review::patch_buffer();
        let facts = CallerFacts { deadline, ..CallerFacts::default() };
        let outcome = self.answer(&request, facts, &mut patch).await?;
        Ok(Answer { body: review::encode(&request, &outcome, patch), outcome })
    }

    /// Decides about a request and writes its patch, for a server with its own wire format.
    ///
    /// # Errors
    /// When a lookup fails.
    pub async fn answer<'a>(
        &'a self,
        request: &Request<'a>,
        facts: CallerFacts<'a>,
        patch: &mut PatchBuffer,
    ) -> Result<Outcome<'a>, ReviewError> {
        let snapshot = self.snapshot.load_full();
        let mut outcome = Outcome::of(request, &snapshot);
        let object = match &request.subject {
            Subject::Object(object) => object,
            Subject::Absent => return Ok(outcome),
            Subject::Unreadable(error) => {
                outcome.deny(format!("{UNREADABLE_OBJECT}: {error}").into());
                return Ok(outcome);
            }
        };
        let namespace = match facts.namespace_annotations {
            Some(annotations) => annotations,
            None => match self.lookups.namespace(&request.namespace).await {
                Ok(Some(annotations)) => annotations,
                Ok(None) => {
                    // The API server's text.
                    let reason = format!("namespaces \"{}\" not found", &*request.namespace);
                    outcome.deny(reason.into());
                    return Ok(outcome);
                }
                Err(error) => {
                    return Err(ReviewError::Namespace(request.namespace.to_string(), error));
                }
            },
        };
        let pod = object.pod(request.kind);
        let annotations = pod.map_or(&object.metadata.annotations, |(pod, _)| &pod.annotations);
        let workload = (request.kind != Kind::Pod).then_some(&object.metadata.annotations);
        let namespace = namespace.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let overrides = snapshot.overrides(annotations, workload, namespace);
        outcome.annotation_at = decide::annotation_at(&overrides);
        outcome.reasons =
            snapshot.decider.decide(request.kind, pod.map(|(_, spec)| spec), &overrides);
        let review = Review { request, object, snapshot: &snapshot, overrides: &overrides };
        match pod {
            Some(pod) if outcome.reasons.is_empty() => {
                let workload = match facts.workload {
                    Some(workload) => Some(workload),
                    None => self.workload_of(request, object, facts.deadline).await?,
                };
                review.inject(pod, workload, patch, &mut outcome);
            }
            _ => {
                if request.kind == Kind::Pod {
                    let known = facts.workload.as_ref();
                    outcome.owner_kind = self.kind_of_skipped_owner(request, object, known).await;
                }
                review.leave_alone(patch, &mut outcome);
            }
        }
        Ok(outcome)
    }

    /// The workload for the labels of an injected pod.
    async fn workload_of<'a>(
        &'a self,
        request: &Request<'a>,
        object: &Object<'a>,
        deadline: Option<Instant>,
    ) -> Result<Option<Workload<'a>>, ReviewError> {
        if request.kind != Kind::Pod {
            let kind = Cow::Borrowed(request.kind.as_str());
            let name = object.metadata.name.0.clone();
            return Ok(Some(Workload { kind, name, object_uid: Cow::Borrowed("") }));
        }
        let Some(owner) = owner_of(request, object) else { return Ok(None) };
        let workload = owner.resolve(&self.lookups, deadline).await;
        let name = || owner.reference.name.to_string();
        workload.map(Some).map_err(|error| ReviewError::Owner(name(), error))
    }

    /// The owner's kind in the counters for a pod that is not injected, without a request to the
    /// API server.
    async fn kind_of_skipped_owner<'a>(
        &self,
        request: &Request<'a>,
        object: &Object<'a>,
        known: Option<&Workload<'_>>,
    ) -> &'static str {
        if let Some(workload) = known {
            return owner_kind(&workload.kind);
        }
        match owner_of(request, object) {
            Some(owner) => owner_kind(&owner.known_kind(&self.lookups).await),
            None => Kind::Pod.as_str(),
        }
    }
}

/// The owner of the pod under review.
fn owner_of<'o, 'a>(request: &'o Request<'a>, object: &'o Object<'a>) -> Option<Owner<'o, 'a>> {
    let reference = object.metadata.owner()?;
    let pod_template_hash = object.metadata.labels.get(POD_TEMPLATE_HASH);
    Some(Owner { namespace: &request.namespace, reference, pod_template_hash })
}

/// A review of an object, with the configuration that was in use when it began.
#[derive(Clone, Copy)]
struct Review<'r, 'a> {
    request: &'r Request<'a>,
    object: &'r Object<'a>,
    snapshot: &'r Snapshot,
    overrides: &'r Overrides<'r>,
}

impl<'a> Review<'_, 'a> {
    fn inject(
        self,
        (metadata, spec): (&Metadata<'a>, &Spec<'a>),
        workload: Option<Workload<'a>>,
        patch: &mut PatchBuffer,
        outcome: &mut Outcome<'a>,
    ) {
        let Self { request, object, snapshot, overrides } = self;
        if let Some(workload) = &workload {
            outcome.owner_kind = owner_kind(&workload.kind);
        }
        let (compiled, lookup) = snapshot.template(overrides, request.kind.path_prefix());
        outcome.template = Some(lookup);
        outcome.warnings.clone_from(&compiled.warnings);
        let template = match &compiled.template {
            Ok(template) => template,
            Err(denial) => return outcome.deny(denial.clone()),
        };
        let injection = Injection {
            snapshot,
            kind: request.kind,
            metadata,
            spec,
            overrides,
            workload: workload.as_ref(),
            namespace: match request.kind {
                Kind::Pod => &request.namespace,
                _ => &object.metadata.namespace,
            },
            opaque_ports: &OpaquePorts::of(snapshot, spec, overrides),
        };
        template.render(injection, patch, &mut outcome.warnings);
        outcome.verdict = Verdict::Injected;
        let regarding = workload.map(Regarding::Workload);
        outcome.event = regarding.and_then(|regarding| self.event(regarding, outcome.reasons));
    }

    /// Adds no sidecar; at most the opaque-ports annotation, which every proxy of the mesh reads.
    fn leave_alone(self, patch: &mut PatchBuffer, outcome: &mut Outcome<'a>) {
        let Self { request, object, snapshot, overrides } = self;
        let hash = object.metadata.labels.get(POD_TEMPLATE_HASH);
        let regarding = object.metadata.owner().cloned().map(|owner| Regarding::owner(owner, hash));
        outcome.event = regarding.and_then(|regarding| self.event(regarding, outcome.reasons));
        if let Some(segment) = opaque_ports_patch(snapshot, request.kind, object, overrides) {
            outcome.verdict = Verdict::Annotated;
            patch.begin(segment.base64_len());
            patch.segment(&segment);
        } else if request.kind == Kind::Pod {
            outcome.verdict = Verdict::Skipped;
        }
    }

    /// The event on the owner, if the object is a pod that will be stored.
    fn event(self, regarding: Regarding<'a>, reasons: SkipReasons) -> Option<Event<'a>> {
        let is_due = self.request.kind == Kind::Pod && !self.request.dry_run;
        let namespace = self.request.namespace.clone();
        let event = Event { namespace, regarding, reasons };
        (is_due && event.is_bounded()).then_some(event)
    }
}

impl<'a> Outcome<'a> {
    fn of(request: &Request<'a>, snapshot: &Snapshot) -> Self {
        let name = match &request.subject {
            Subject::Object(object) => bounded_name(object.metadata.name_or_prefix()),
            Subject::Absent | Subject::Unreadable(_) => Text::default(),
        };
        Self {
            uid: request.uid.clone(),
            kind: request.kind,
            namespace: bounded_name(&request.namespace),
            name,
            owner_kind: match (&request.subject, request.kind) {
                (Subject::Object(object), Kind::Pod) => match object.metadata.owner() {
                    Some(owner) => owner_kind(&owner.kind),
                    None => "pod",
                },
                _ => "",
            },
            annotation_at: "",
            verdict: Verdict::Allowed,
            reasons: SkipReasons::default(),
            denial: None,
            warnings: Warnings::default(),
            template: None,
            event: None,
            generation: snapshot.generation,
            release: snapshot.release,
        }
    }
}
