//! The way of a review, in order. The file to read first.
//!
//! Decode, namespace, decide, workload, template, render, encode. Only the two lookups may wait;
//! everything else is synchronous and pure.

use std::{borrow::Cow, sync::Arc};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::{
    cluster::LookupError,
    linkerd::{
        annotations::Annotation,
        decide, events,
        overrides::Overrides,
        render::{Injection, OpaquePorts},
        snapshot::Snapshot,
    },
    metrics::CacheMetrics,
    namespaces::{Annotations, NamespaceError, Namespaces},
    outcome::{
        Event, InvolvedObject, Outcome, Regarding, SkipReasons, Verdict, Warnings, Workload,
        bounded_denial, bounded_name,
    },
    patch::{Reply, Segment, Sink, write_add, write_add_string},
    pod::{Kind, Metadata, Object, POD_TEMPLATE_HASH, Spec, Text},
    review::{self, DecodeError, Request, Subject},
    workloads::Workloads,
};

mod owner;

use self::owner::owner_kind;

/// How a denial begins for an object with a wrong type in a field that is read.
pub const UNREADABLE_OBJECT: &str = "the object cannot be understood";

/// The injection core: what every door calls.
#[derive(Debug)]
pub struct Injector {
    snapshot: ArcSwap<Snapshot>,
    namespaces: Namespaces,
    workloads: Workloads,
    template_metrics: CacheMetrics,
}

/// Why a review got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// There is nobody to answer.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The annotations of the namespace are not known.
    #[error("the annotations of namespace {0:?} are not known")]
    Cluster(String, #[source] LookupError),
    /// The owner of the pod is not known, and is not looked for.
    #[error("the owner {0:?} is not known")]
    Owner(String, #[source] LookupError),
}

/// An answer, and what became of the review.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The `AdmissionReview` to send back, as JSON.
    pub body: Vec<u8>,
    /// For metrics, the log line and the event.
    pub outcome: Outcome<'a>,
}

/// What the caller of a door knows better than the cluster.
#[derive(Debug, Default)]
pub struct Known<'a> {
    /// Annotations of the namespace, those that matter at least.
    pub namespace_annotations: Option<Annotations>,
    /// What an injected pod is labelled after.
    pub workload: Option<Workload<'a>>,
}

impl Injector {
    /// An injector that serves with this configuration.
    #[must_use]
    pub fn new(snapshot: Snapshot, namespaces: Namespaces, workloads: Workloads) -> Self {
        let snapshot = ArcSwap::from_pointee(snapshot);
        Self { snapshot, namespaces, workloads, template_metrics: CacheMetrics::default() }
    }

    /// The same injector, which counts what its cache of templates finds.
    #[must_use]
    pub fn counting(self, template_metrics: CacheMetrics) -> Self {
        Self { template_metrics, ..self }
    }

    /// The configuration in force.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Swaps the configuration; reviews under way keep the one they began with.
    pub fn replace_snapshot(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
    }

    /// Tells how much is kept of everything; to be called now and then.
    pub async fn tell_entries(&self) {
        self.template_metrics.keep(self.snapshot().template_count());
        if let Namespaces::Watched(namespaces) = &self.namespaces {
            namespaces.tell_entries().await;
        }
        if let Workloads::Asked(owners) = &self.workloads {
            owners.tell_entries().await;
        }
    }

    /// The object that an event is sent to: the root owner, if it is of a kind that gets events and
    /// is there.
    pub async fn involved_object<'a>(&'a self, event: &Event<'a>) -> Option<InvolvedObject<'a>> {
        let workload = match &event.regarding {
            Regarding::Workload(workload) => workload.clone(),
            Regarding::Owner { owner, pod_template_hash } => {
                let hash = pod_template_hash.as_deref();
                self.workloads.resolve(&event.namespace, owner, hash, None).await.ok()?
            }
        };
        let (api_version, kind) = events::involved_kind(&workload.kind)?;
        let is_there = self.workloads.has(&event.namespace, kind, &workload.name);
        (is_there && !workload.name.is_empty()).then_some(InvolvedObject {
            api_version,
            kind,
            name: workload.name,
            object_uid: workload.object_uid,
        })
    }

    /// Answers a review.
    ///
    /// # Errors
    /// When the body is no review: there is nobody to answer. When the cluster does not tell what
    /// the answer depends on: the review is worth another try.
    pub async fn review<'a>(&'a self, body: &'a [u8]) -> Result<Answer<'a>, ReviewError> {
        self.review_by(None, body).await
    }

    /// Answers a review in time: at `deadline`, an owner that the cluster has not told is derived
    /// from the pod's labels.
    ///
    /// # Errors
    /// As [`Injector::review`].
    pub async fn review_by<'a>(
        &'a self,
        deadline: Option<Instant>,
        body: &'a [u8],
    ) -> Result<Answer<'a>, ReviewError> {
        let request = review::decode(body)?;
        let mut response = review::Response::new(&request);
        let outcome = self.answer(&request, Known::default(), deadline, &mut response).await?;
        Ok(Answer { body: response.end(&outcome), outcome })
    }

    /// Answers a request for a door with a wire format of its own.
    ///
    /// # Errors
    /// When the cluster does not tell what the answer depends on.
    pub async fn answer<'a>(
        &'a self,
        request: &Request<'a>,
        known: Known<'a>,
        deadline: Option<Instant>,
        reply: &mut impl Reply,
    ) -> Result<Outcome<'a>, ReviewError> {
        let snapshot = self.snapshot.load_full();
        let mut outcome = Outcome::of(request, &snapshot);
        match &request.subject {
            Subject::Absent => reply.allow(),
            Subject::Unreadable(error) => {
                let reason = format!("{UNREADABLE_OBJECT}: {error}");
                deny(reply, &mut outcome, reason.into());
            }
            Subject::Object(object) => {
                let review = Review { request, object, snapshot: &snapshot };
                self.review_object(review, known, deadline, reply, &mut outcome).await?;
            }
        }
        Ok(outcome)
    }

    async fn review_object<'a>(
        &'a self,
        review: Review<'_, 'a>,
        known: Known<'a>,
        deadline: Option<Instant>,
        reply: &mut impl Reply,
        outcome: &mut Outcome<'a>,
    ) -> Result<(), ReviewError> {
        let Review { request, object, snapshot } = review;
        let namespace = match known.namespace_annotations {
            Some(annotations) => annotations,
            None => match self.namespaces.lookup(&request.namespace).await {
                Ok(annotations) => annotations,
                Err(error @ NamespaceError::NotFound(_)) => {
                    deny(reply, outcome, error.to_string().into());
                    return Ok(());
                }
                Err(NamespaceError::Unknown(namespace, error)) => {
                    return Err(ReviewError::Cluster(namespace, error));
                }
            },
        };
        let pod = object.pod(request.kind);
        let annotations = pod.map_or(&object.metadata.annotations, |(pod, _)| &pod.annotations);
        let workload = (request.kind != Kind::Pod).then_some(&object.metadata.annotations);
        let namespace = namespace.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let overrides = snapshot.overrides(annotations, workload, namespace);
        outcome.reasons = snapshot.decider.decide(pod.map(|(_, spec)| spec), &overrides);
        outcome.annotation_at = decide::annotation_at(&overrides);
        match pod {
            Some(pod) if outcome.reasons.is_empty() => {
                let workload = match known.workload {
                    Some(workload) => Some(workload),
                    None => self.workload_of(request, object, deadline).await?,
                };
                if let Some(workload) = &workload {
                    outcome.owner_kind = owner_kind(&workload.kind);
                }
                review.inject(pod, workload, &overrides, &self.template_metrics, reply, outcome);
            }
            _ => {
                if request.kind == Kind::Pod {
                    let known = known.workload.as_ref();
                    outcome.owner_kind = self.kind_of_skipped_owner(request, object, known).await;
                }
                review.leave_alone(&overrides, reply, outcome);
            }
        }
        Ok(())
    }
}

/// A review of an object, in the configuration that was in force when it began.
#[derive(Clone, Copy)]
struct Review<'r, 'a> {
    request: &'r Request<'a>,
    object: &'r Object<'a>,
    snapshot: &'r Snapshot,
}

impl<'a> Review<'_, 'a> {
    fn inject(
        self,
        (metadata, spec): (&Metadata<'a>, &Spec<'a>),
        workload: Option<Workload<'a>>,
        overrides: &Overrides<'_>,
        metrics: &CacheMetrics,
        reply: &mut impl Reply,
        outcome: &mut Outcome<'a>,
    ) {
        let Self { request, object, snapshot } = self;
        let compiled = snapshot.template(overrides, request.kind.path_prefix(), metrics);
        outcome.warnings.clone_from(&compiled.warnings);
        let template = match &compiled.template {
            Ok(template) => template,
            Err(denial) => return deny(reply, outcome, denial.clone()),
        };
        let is_own = overrides.is_own(Annotation::OpaquePorts);
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
            opaque_ports: &OpaquePorts::of(snapshot, spec, overrides, is_own),
        };
        let mut patch = reply.begin_patch(template.base64_len + 2048);
        template.render(injection, &mut patch, &mut outcome.warnings);
        drop(patch);
        reply.end_patch();
        outcome.verdict = Verdict::Injected;
        let regarding = workload.map(Regarding::Workload);
        outcome.event = regarding.and_then(|it| self.event(it, outcome.reasons));
    }

    /// Without a sidecar; at most with the opaque-ports annotation, which every mesh member heeds.
    fn leave_alone(
        self,
        overrides: &Overrides<'_>,
        reply: &mut impl Reply,
        outcome: &mut Outcome<'a>,
    ) {
        let metadata = &self.object.metadata;
        let hash = metadata.labels.get(POD_TEMPLATE_HASH);
        let regarding = metadata.owner().cloned().map(|owner| Regarding::owner(owner, hash));
        outcome.event = regarding.and_then(|it| self.event(it, outcome.reasons));
        let Some(ports) = self.opaque_ports_to_add(overrides) else {
            if self.request.kind == Kind::Pod {
                outcome.verdict = Verdict::Skipped;
            }
            return reply.allow();
        };
        outcome.verdict = Verdict::Annotated;
        let segment = annotation_patch(metadata.annotations.is_empty(), &ports);
        reply.begin_patch(segment.base64_len()).segment(&segment);
        reply.end_patch();
    }

    /// `inject.go`, `CreateOpaquePortsPatch`.
    fn opaque_ports_to_add<'o>(self, overrides: &Overrides<'o>) -> Option<Cow<'o, str>> {
        let Self { request, object, snapshot } = self;
        if overrides.is_own(Annotation::OpaquePorts) {
            return None;
        }
        if let Some(ports) = overrides.of_namespace(Annotation::OpaquePorts) {
            return Some(Cow::Borrowed(ports));
        }
        let defaults = &snapshot.default_opaque_ports;
        let ports = match request.kind {
            Kind::Pod => defaults.of_pod(snapshot.port_rules, &object.spec.pod),
            Kind::Service => defaults.of_service(&object.spec.other.ports),
            Kind::Workload(_) | Kind::CronJob | Kind::Other => return None,
        };
        (!ports.is_empty()).then_some(Cow::Owned(ports))
    }

    /// Events are for the owners of pods that are going to be stored.
    fn event(self, regarding: Regarding<'a>, reasons: SkipReasons) -> Option<Event<'a>> {
        let is_due = self.request.kind == Kind::Pod && !self.request.dry_run;
        let namespace = self.request.namespace.clone();
        let event = Event { namespace, regarding, reasons };
        (is_due && event.is_bounded()).then_some(event)
    }
}

fn annotation_patch(is_first: bool, ports: &str) -> Segment {
    let mut patch = b"[".to_vec();
    if is_first {
        write_add(&mut patch, "", "/metadata/annotations", b"{}");
        patch.push(b',');
    }
    let key = Annotation::OpaquePorts.key();
    write_add_string(&mut patch, "", "/metadata/annotations", key, ports);
    patch.push(b']');
    Segment::new(patch)
}

fn deny(reply: &mut impl Reply, outcome: &mut Outcome<'_>, reason: Cow<'static, str>) {
    let reason = bounded_denial(reason);
    reply.deny(&reason);
    outcome.verdict = Verdict::Denied;
    outcome.denial = Some(reason);
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
            event: None,
            generation: snapshot.generation,
            release: snapshot.release,
        }
    }
}
