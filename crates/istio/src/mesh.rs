//! Istio's steps of a review.

#![expect(clippy::disallowed_types, reason = "templates read any field of the pod")]

use std::sync::Arc;

use injectd_core::{
    lookups::{Annotations, CallerFacts, Lookups, OwnerError},
    mesh::{Decision, Mesh, NamespaceUse, Output, Reviewed},
    object::Kind,
    outcome::{Configuration, Outcome, SkipReason, Verdict, Warning, Workload},
};
use serde_json::Value as Json;

use crate::{
    cluster::Cluster,
    decide::Reason,
    injection::{Injection, Surroundings},
    injector::Injector,
    native::Nodes,
    object::{Object, owner_kind},
    openshift::{SUPPLEMENTAL_GROUPS_ANNOTATION, UID_RANGE_ANNOTATION},
    patch::{encode, patch},
    proto::layers::Resources,
};

/// An injector of one revision, and its cluster.
#[derive(Debug)]
pub struct Istio {
    injector: Arc<Injector>,
    cluster: Cluster,
    configuration: Arc<Configuration>,
}

/// A pod that is decided about.
#[derive(Debug)]
pub struct Plan {
    pod: Json,
    namespace_annotations: Annotations,
}

const SKIPPING: [Reason; 7] = [
    Reason::HostNetwork,
    Reason::SystemNamespace,
    Reason::DisabledByLabel,
    Reason::DisabledByAnnotation,
    Reason::NeverInjectSelector,
    Reason::PolicyDisabled,
    Reason::PolicyInvalid,
];

const SKIP_REASONS: [SkipReason; SKIPPING.len()] = {
    let mut reasons = [SkipReason { code: "", text: "" }; SKIPPING.len()];
    let mut index = 0;
    while index < SKIPPING.len() {
        let reason = SKIPPING[index];
        reasons[index] = SkipReason { code: reason.as_str(), text: reason.text() };
        index += 1;
    }
    reasons
};

impl Istio {
    /// An injector in a cluster; `generation` counts its configurations from 1.
    #[must_use]
    pub fn new(injector: Injector, cluster: Cluster, generation: u64) -> Self {
        let release = injector.release().to_string();
        let configuration = Arc::new(Configuration { generation, release });
        Self { injector: Arc::new(injector), cluster, configuration }
    }

    /// The same injector in a cluster with these nodes; `None` if they cannot be read.
    #[must_use]
    pub fn with_nodes(&self, nodes: Option<Arc<Nodes>>) -> Self {
        self.in_cluster(Cluster { nodes, ..self.cluster.clone() })
    }

    /// The same injector in a cluster with these `ProxyConfig`s.
    #[must_use]
    pub fn with_resources(&self, resources: Resources) -> Self {
        self.in_cluster(Cluster { resources, ..self.cluster.clone() })
    }

    fn in_cluster(&self, cluster: Cluster) -> Self {
        let injector = Arc::clone(&self.injector);
        Self { injector, cluster, configuration: Arc::clone(&self.configuration) }
    }

    /// The injector.
    #[must_use]
    pub fn injector(&self) -> &Injector {
        &self.injector
    }

    /// What the pod's cluster has.
    #[must_use]
    pub fn surroundings<'c>(
        &'c self,
        injection: &Injection<'_>,
        namespace_annotations: &'c Annotations,
    ) -> Surroundings<'c> {
        let cluster = injection.cluster();
        let is_known = self.cluster.names.iter().any(|name| name == cluster);
        Surroundings {
            resources: Some(&self.cluster.resources),
            nodes: self.cluster.nodes.as_deref().filter(|_| is_known),
            namespace_annotations: if is_known { namespace_annotations } else { &[] },
        }
    }
}

impl Mesh for Istio {
    const NAME: &'static str = "istio";
    const SKIP_REASONS: &'static [SkipReason] = &SKIP_REASONS;
    type Object<'a> = Object<'a>;
    type Plan<'r> = Plan;

    fn reads(key: &str) -> bool {
        key == UID_RANGE_ANNOTATION || key == SUPPLEMENTAL_GROUPS_ANNOTATION
    }

    fn namespace_use(&self) -> NamespaceUse {
        if self.injector.is_openshift() { NamespaceUse::Optional } else { NamespaceUse::Unused }
    }

    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    fn owner_kind(kind: Kind, object: &Object<'_>) -> &'static str {
        match kind {
            Kind::Pod => owner_kind(object),
            _ => "",
        }
    }

    fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        namespace: &'r Annotations,
        outcome: &mut Outcome<'a>,
    ) -> Decision<Plan> {
        let left = Decision {
            is_injected: false,
            plan: Plan { pod: Json::Null, namespace_annotations: Annotations::default() },
        };
        if reviewed.request.kind != Kind::Pod {
            return left;
        }
        let pod = match reviewed.object.tree() {
            Ok(pod) => pod,
            Err(problem) => {
                outcome.deny(problem.into());
                return left;
            }
        };
        let injection =
            Injection::new(&self.injector, &pod, &reviewed.request.namespace, reviewed.path);
        if let Err(denial) = injection.check() {
            outcome.deny(denial.into());
            return left;
        }
        let decision = injection.decide();
        for problem in decision.warnings {
            outcome.warnings.push(|| Warning { annotation: "", problem });
        }
        if let Some(index) = SKIPPING.iter().position(|reason| *reason == decision.reason) {
            outcome.reasons.insert(index);
            outcome.verdict = Verdict::Skipped;
            return left;
        }
        let namespace_annotations = Arc::clone(namespace);
        Decision { is_injected: true, plan: Plan { pod, namespace_annotations } }
    }

    async fn workload<'a>(
        _: Reviewed<'_, 'a, Object<'a>>,
        facts: CallerFacts<'a>,
        _: &impl Lookups,
    ) -> Result<Option<Workload<'a>>, OwnerError> {
        Ok(facts.workload)
    }

    async fn known_owner_kind<'a>(
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        _: CallerFacts<'a>,
        _: &impl Lookups,
    ) -> &'static str {
        Self::owner_kind(reviewed.request.kind, reviewed.object)
    }

    fn inject<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        plan: &Plan,
        _: Option<Workload<'a>>,
        output: Output<'_, 'a>,
    ) {
        let Output { patch: buffer, outcome } = output;
        let request = reviewed.request;
        let injection =
            Injection::new(&self.injector, &plan.pod, &request.namespace, reviewed.path);
        let cluster = self.surroundings(&injection, &plan.namespace_annotations);
        let injected = match injection.inject(cluster) {
            Ok(injected) => injected,
            Err(denial) => return outcome.deny(denial.into()),
        };
        for problem in injected.warnings {
            outcome.warnings.push(|| Warning { annotation: "", problem });
        }
        let before = injected.without_dropped.as_ref().unwrap_or(&plan.pod);
        let text = encode(&patch(before, &injected.pod));
        buffer.begin(text.len().div_ceil(3) * 4);
        buffer.slot().extend_from_slice(text.as_bytes());
        buffer.finish();
        outcome.verdict = Verdict::Injected;
    }

    /// Istio changes nothing in a pod that it does not inject.
    fn leave_alone<'a>(&self, _: Reviewed<'_, 'a, Object<'a>>, _: &Plan, _: Output<'_, 'a>) {}
}
