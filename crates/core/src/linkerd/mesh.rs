//! Linkerd's steps of a review.

use std::{borrow::Cow, sync::Arc};

use injectd_k8s::workload::POD_TEMPLATE_HASH;

use super::{
    annotate::opaque_ports_patch,
    decide,
    overrides::Overrides,
    pod::{Object, TextMap},
    reasons,
    render::{Injection, OpaquePorts},
    snapshot::Snapshot,
    workload::{Owner, owner_kind},
};
use crate::{
    lookups::{Annotations, CallerFacts, Lookups, NoTurn, OwnerError, Turns},
    mesh::{Decision, Mesh, NamespaceUse, Output, Reviewed},
    object::Kind,
    outcome::{
        Configuration, Event, Outcome, Regarding, SkipReason, SkipReasons, Verdict, Workload,
    },
};

impl Mesh for Snapshot {
    const NAME: &'static str = "linkerd";
    const SKIP_REASONS: &'static [SkipReason] = &reasons::ALL;
    type Object<'a> = Object<'a>;
    type Plan<'r> = Overrides<'r>;

    fn reads(key: &str) -> bool {
        TextMap::matters(key)
    }

    fn namespace_use(&self) -> NamespaceUse {
        NamespaceUse::Required
    }

    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    fn owner_kind(kind: Kind, object: &Object<'_>) -> &'static str {
        match (kind, object.metadata.owner()) {
            (Kind::Pod, Some(owner)) => owner_kind(&owner.kind),
            (Kind::Pod, None) => Kind::Pod.as_str(),
            _ => "",
        }
    }

    async fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        namespace: &'r Annotations,
        _: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> Result<Decision<Overrides<'r>>, NoTurn> {
        let Reviewed { request, object, .. } = reviewed;
        let pod = object.pod(request.kind);
        let annotations = pod.map_or(&object.metadata.annotations, |(pod, _)| &pod.annotations);
        let workload = (request.kind != Kind::Pod).then_some(&object.metadata.annotations);
        let namespace = namespace.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let plan = self.overrides(annotations, workload, namespace);
        outcome.annotation_at = decide::annotation_at(&plan);
        outcome.reasons = self.decider.decide(request.kind, pod.map(|(_, spec)| spec), &plan);
        Ok(Decision { is_injected: pod.is_some() && outcome.reasons.is_empty(), plan })
    }

    async fn workload<'a>(
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        facts: CallerFacts<'a>,
        lookups: &impl Lookups,
    ) -> Result<Option<Workload<'a>>, OwnerError> {
        let Reviewed { request, object, .. } = reviewed;
        if facts.workload.is_some() {
            return Ok(facts.workload);
        }
        if request.kind != Kind::Pod {
            let kind = Cow::Borrowed(request.kind.as_str());
            let name = object.metadata.name.0.clone();
            return Ok(Some(Workload { kind, name, object_uid: Cow::Borrowed("") }));
        }
        let Some(owner) = reviewed.owner() else { return Ok(None) };
        owner.resolve(lookups, facts.deadline).await.map(Some)
    }

    async fn known_owner_kind<'a>(
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        facts: CallerFacts<'a>,
        lookups: &impl Lookups,
    ) -> &'static str {
        match (facts.workload, reviewed.owner()) {
            _ if reviewed.request.kind != Kind::Pod => "",
            (Some(workload), _) => owner_kind(&workload.kind),
            (None, Some(owner)) => owner_kind(&owner.known_kind(lookups).await),
            (None, None) => Kind::Pod.as_str(),
        }
    }

    fn inject<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        overrides: Overrides<'_>,
        workload: Option<Workload<'a>>,
        output: Output<'_, 'a>,
    ) {
        let Reviewed { request, object, .. } = reviewed;
        let Some((metadata, spec)) = object.pod(request.kind) else {
            return self.leave_alone(reviewed, &overrides, output);
        };
        let Output { patch, outcome } = output;
        if let Some(workload) = &workload {
            outcome.owner_kind = owner_kind(&workload.kind);
        }
        let (compiled, lookup) = self.template(&overrides, request.kind.path_prefix());
        outcome.template = Some(lookup);
        outcome.warnings.clone_from(&compiled.warnings);
        let template = match &compiled.template {
            Ok(template) => template,
            Err(denial) => return outcome.deny(denial.clone()),
        };
        let injection = Injection {
            snapshot: self,
            kind: request.kind,
            metadata,
            spec,
            overrides: &overrides,
            workload: workload.as_ref(),
            namespace: match request.kind {
                Kind::Pod => &request.namespace,
                _ => &object.metadata.namespace,
            },
            opaque_ports: &OpaquePorts::of(self, spec, &overrides),
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
