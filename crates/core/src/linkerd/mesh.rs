//! Linkerd's steps of a review.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use injectd_k8s::workload::POD_TEMPLATE_HASH;

use super::{
    annotate::opaque_ports_patch,
    decide,
    overrides::Overrides,
    pod::{LINKERD_DOMAIN, Metadata, Object, Spec},
    reasons,
    render::{Injection, OpaquePorts},
    snapshot::Snapshot,
    workload::Owner,
};
use crate::{
    lookups::{self, Lookups, NoTurn, ObjectError, Turns},
    mesh::{Caller, InjectError, Mesh, Output, Reviewed},
    namespace::{KeyPattern, KeySet, MissingNamespace, NamespaceReads},
    object::{Kind, owner_kind},
    outcome::{
        Configuration, Event, Outcome, Regarding, SkipReason, SkipReasons, Verdict, Workload,
    },
};

/// What follows from a decision.
#[derive(Debug)]
pub enum Plan<'r> {
    /// The object gets no sidecar.
    Left(Overrides<'r>),
    /// The pod gets a sidecar.
    Inject(Overrides<'r>),
}

/// A pod that gets a sidecar.
#[derive(Clone, Copy)]
struct Pod<'p, 'a> {
    metadata: &'p Metadata<'a>,
    spec: &'p Spec<'a>,
    overrides: &'p Overrides<'p>,
}

impl Mesh for Snapshot {
    const NAME: &'static str = "linkerd";
    const SKIP_REASONS: &'static [SkipReason] = &reasons::ALL;
    type Object<'a> = Object<'a>;
    type Plan<'r> = Plan<'r>;

    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    fn namespace_reads(&self) -> &NamespaceReads {
        // Caches keep every key of the domain, since explanations name mistyped keys.
        static READS: LazyLock<NamespaceReads> = LazyLock::new(|| NamespaceReads {
            missing: MissingNamespace::Denied,
            annotations: [KeyPattern::Domain(LINKERD_DOMAIN.into())].into_iter().collect(),
            labels: KeySet::default(),
        });
        &READS
    }

    async fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        namespace: &'r lookups::Metadata,
        _: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> Result<Plan<'r>, NoTurn> {
        let Reviewed { request, object, .. } = reviewed;
        let pod = object.pod(request.kind);
        let annotations = pod.map_or(&object.metadata.annotations, |(pod, _)| &pod.annotations);
        let workload = (request.kind != Kind::Pod).then_some(&object.metadata.annotations);
        let namespace =
            namespace.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let overrides = self.overrides(annotations, workload, namespace);
        outcome.annotation_at = decide::annotation_at(&overrides);
        outcome.reasons = self.decider.decide(request.kind, pod.map(|(_, spec)| spec), &overrides);
        Ok(match pod {
            Some(_) if outcome.reasons.is_empty() => Plan::Inject(overrides),
            _ => Plan::Left(overrides),
        })
    }

    async fn inject<'r, 'a>(
        &self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        plan: &mut Plan<'r>,
        caller: Caller<'_, 'a, impl Lookups>,
        output: Output<'_, 'a>,
    ) -> Result<(), InjectError> {
        match (plan, reviewed.object.pod(reviewed.request.kind)) {
            (Plan::Inject(overrides), Some((metadata, spec))) => {
                let workload = reviewed.workload(caller).await?;
                let pod = Pod { metadata, spec, overrides };
                self.render(reviewed, pod, workload, output);
            }
            (Plan::Left(overrides) | Plan::Inject(overrides), _) => {
                // Only counters need it: no request to the API server may delay a pod that stays as
                // it is.
                output.outcome.owner_kind = reviewed.known_owner_kind(caller).await;
                self.leave_alone(reviewed, overrides, output);
            }
        }
        Ok(())
    }
}

impl Snapshot {
    /// Writes the patch with the sidecar.
    fn render<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        pod: Pod<'_, 'a>,
        workload: Option<Workload<'a>>,
        output: Output<'_, 'a>,
    ) {
        let Reviewed { request, object, .. } = reviewed;
        let Output { patch, outcome } = output;
        if let Some(workload) = &workload {
            outcome.owner_kind = owner_kind(Some(&workload.kind));
        }
        let (compiled, lookup) = self.template(pod.overrides, request.kind.path_prefix());
        outcome.template = Some(lookup);
        // Values are checked when their template is compiled, and not for each pod that has them.
        outcome.warnings.clone_from(&compiled.warnings);
        let template = match &compiled.template {
            Ok(template) => template,
            Err(denial) => return outcome.deny(denial.clone()),
        };
        let injection = Injection {
            snapshot: self,
            kind: request.kind,
            metadata: pod.metadata,
            spec: pod.spec,
            overrides: pod.overrides,
            workload: workload.as_ref(),
            namespace: match request.kind {
                Kind::Pod => &request.namespace,
                _ => &object.metadata.namespace,
            },
            opaque_ports: &OpaquePorts::of(self, pod.spec, pod.overrides),
        };
        template.render(injection, patch, &mut outcome.warnings);
        outcome.verdict = Verdict::Injected;
        let regarding = workload.map(Regarding::Workload);
        outcome.event = regarding.and_then(|regarding| reviewed.event(regarding, outcome.reasons));
    }

    /// Adds at most the opaque-ports annotation, which every proxy of the mesh reads.
    fn leave_alone<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        overrides: &Overrides<'_>,
        output: Output<'_, 'a>,
    ) {
        let Reviewed { request, object, .. } = reviewed;
        let Output { patch, outcome } = output;
        let hash = object.metadata.labels.get(POD_TEMPLATE_HASH);
        let regarding = object.metadata.owner().cloned().map(|owner| Regarding::owner(owner, hash));
        outcome.event = regarding.and_then(|regarding| reviewed.event(regarding, outcome.reasons));
        if let Some(segment) = opaque_ports_patch(self, request.kind, object, overrides) {
            outcome.verdict = Verdict::Annotated;
            patch.begin(segment.base64_len());
            patch.segment(&segment);
        } else if request.kind == Kind::Pod {
            outcome.verdict = Verdict::Skipped;
        }
    }
}

impl<'r, 'a> Reviewed<'r, 'a, Object<'a>> {
    /// The workload of an object to inject; `None` for a pod without an owner.
    ///
    /// # Errors
    /// Too many reviews wait for the lookup.
    async fn workload(
        self,
        caller: Caller<'_, 'a, impl Lookups>,
    ) -> Result<Option<Workload<'a>>, ObjectError> {
        if caller.workload.is_some() {
            return Ok(caller.workload);
        }
        if self.request.kind != Kind::Pod {
            let kind = Cow::Borrowed(self.request.kind.as_str());
            let name = self.object.metadata.name.0.clone();
            return Ok(Some(Workload { kind, name, object_uid: Cow::Borrowed("") }));
        }
        let Some(owner) = self.owner() else { return Ok(None) };
        owner.resolve(caller.lookups, caller.deadline).await.map(Some)
    }

    /// The kind of the root owner of a pod without a sidecar, for the counters; a closed set. Sends no
    /// request to the API server.
    async fn known_owner_kind(self, caller: Caller<'_, 'a, impl Lookups>) -> &'static str {
        match (caller.workload, self.owner()) {
            _ if self.request.kind != Kind::Pod => "",
            (Some(workload), _) => owner_kind(Some(&workload.kind)),
            (None, Some(owner)) => owner_kind(Some(&owner.known_kind(caller.lookups).await)),
            (None, None) => owner_kind(None),
        }
    }

    /// The owner of the pod.
    fn owner(self) -> Option<Owner<'r, 'a>> {
        let Self { request, object, .. } = self;
        let reference = object.metadata.owner()?;
        let pod_template_hash = object.metadata.labels.get(POD_TEMPLATE_HASH);
        Some(Owner { namespace: &request.namespace, reference, pod_template_hash })
    }

    /// The event on the owner, if the object is a pod that will be stored.
    fn event(self, regarding: Regarding<'a>, reasons: SkipReasons) -> Option<Event<'a>> {
        let is_due = self.request.kind == Kind::Pod && !self.request.dry_run;
        let event = Event { namespace: self.request.namespace.clone(), regarding, reasons };
        (is_due && event.is_bounded()).then_some(event)
    }
}
