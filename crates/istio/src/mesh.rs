//! Istio's steps of a review.

mod estimate;
mod evaluate;

use std::sync::Arc;

use injectd_core::{
    json::Node,
    lookups::{Annotations, Asked, CallerFacts, Lookups, NoTurn, OwnerError, Turn, Turns},
    mesh::{Decision, Mesh, NamespaceUse, Output, Reviewed},
    object::Kind,
    outcome::{Configuration, Outcome, SkipReason, TemplateLookup, Verdict, Warning, Workload},
    patch::PatchBuffer,
};

pub use estimate::memory_of_evaluation;
use evaluate::{Evaluated, Evaluation};

use crate::{
    cluster::Cluster,
    decide::Reason,
    injection::{Injection, Surroundings},
    injector::Injector,
    memory::{Answer, Around, Found, Memory, SlottedPatch, Unknown},
    native::Nodes,
    object::{Object, owner_kind},
    openshift::{SUPPLEMENTAL_GROUPS_ANNOTATION, UID_RANGE_ANNOTATION},
    proto::layers::Resources,
};

/// An injector of one revision, and its cluster.
#[derive(Debug)]
pub struct Istio {
    injector: Arc<Injector>,
    cluster: Cluster,
    configuration: Arc<Configuration>,
    /// `None` if every pod is evaluated.
    memory: Option<Arc<Memory>>,
}

/// A pod that is decided about.
#[derive(Debug)]
pub struct Plan(Next);

/// What comes after the decision.
#[derive(Debug)]
enum Next {
    /// Nothing.
    Nothing,
    /// The answer is that of an earlier pod.
    Known(Found),
    /// The pod is evaluated.
    Evaluate(Box<Evaluation>),
}

/// Nothing is done with the object.
const LEFT: Decision<Plan> = Decision { is_injected: false, plan: Plan(Next::Nothing) };

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
        let release = injector.shown_release.clone();
        let configuration = Arc::new(Configuration { generation, release });
        let memory = Some(Arc::new(Memory::new(&injector, &cluster.resources)));
        Self { injector: Arc::new(injector), cluster, configuration, memory }
    }

    /// The same injector in a cluster with these nodes; `None` if they cannot be read. It keeps its
    /// answers: what nodes decide is part of their keys.
    #[must_use]
    pub fn with_nodes(&self, nodes: Option<Arc<Nodes>>) -> Self {
        self.in_cluster(Cluster { nodes, ..self.cluster.clone() }, self.memory.clone())
    }

    /// The same injector in a cluster with these `ProxyConfig`s.
    #[must_use]
    pub fn with_resources(&self, resources: Resources) -> Self {
        let memory = |_: &Arc<Memory>| Arc::new(Memory::new(&self.injector, &resources));
        let memory = self.memory.as_ref().map(memory);
        self.in_cluster(Cluster { resources, ..self.cluster.clone() }, memory)
    }

    fn in_cluster(&self, cluster: Cluster, memory: Option<Arc<Memory>>) -> Self {
        let injector = Arc::clone(&self.injector);
        Self { injector, cluster, configuration: Arc::clone(&self.configuration), memory }
    }

    /// How many answers are kept for pods that read the same.
    #[must_use]
    pub fn answer_count(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.count())
    }

    /// The same, but every pod is evaluated: what answers from the memory are compared with.
    #[must_use]
    pub fn without_memory(self) -> Self {
        Self { memory: None, ..self }
    }

    /// The injector.
    #[must_use]
    pub fn injector(&self) -> &Injector {
        &self.injector
    }

    /// The `ProxyConfig`s of the cluster.
    pub(crate) fn resources(&self) -> &Resources {
        &self.cluster.resources
    }

    /// What the pod's cluster has.
    #[must_use]
    pub fn surroundings<'c>(
        &'c self,
        injection: &Injection<'_>,
        namespace_annotations: &'c Annotations,
    ) -> Surroundings<'c> {
        let cluster = injection.cluster();
        let is_known = self.is_local(cluster);
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

    async fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        namespace: &'r Annotations,
        turns: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> Result<Decision<Plan>, NoTurn> {
        if reviewed.request.kind != Kind::Pod {
            return Ok(LEFT);
        }
        let mut found = self.known(reviewed, namespace);
        let mut turn = None;
        if let (Err(_), Some(turns)) = (&found, turns) {
            let next = turns.next(Asked {
                namespace: &reviewed.request.namespace,
                waiting_bytes: reviewed.object.bytes(),
                memory: memory_of_evaluation(reviewed.object),
            });
            let next = next.await?;
            if next.has_waited {
                // A pod like this one may have been evaluated meanwhile.
                found = self.known(reviewed, namespace);
            }
            turn = Some(next);
        }
        Ok(match found {
            Ok(found) => {
                outcome.template = Some(TemplateLookup::Hit);
                known(found, outcome)
            }
            Err(unknown) => {
                outcome.template = Some(TemplateLookup::Miss);
                self.decide_anew(reviewed, namespace, (unknown, turn), outcome)
            }
        })
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
        plan: Plan,
        _: Option<Workload<'a>>,
        output: Output<'_, 'a>,
    ) {
        let Output { patch: buffer, outcome } = output;
        let mut evaluation = match plan.0 {
            Next::Nothing => return,
            Next::Known(Found { answer, owner_name }) => {
                if let Answer::Injected { patch, .. } = &*answer {
                    write(buffer, patch, &owner_name);
                }
                return outcome.verdict = Verdict::Injected;
            }
            Next::Evaluate(evaluation) => *evaluation,
        };
        let turn = evaluation.turn.take();
        let mut evaluate = || self.evaluate(reviewed, &mut evaluation);
        let evaluated = match &turn {
            Some(turn) => turn.run(evaluate),
            None => evaluate(),
        };
        let evaluated = match evaluated {
            Ok(evaluated) => evaluated,
            Err(denial) => return outcome.deny(denial.into()),
        };
        let Evaluated { patch, mut warnings, read, owner_name } = evaluated;
        write(buffer, &patch, owner_name.as_deref().unwrap_or_default());
        warn(outcome, &warnings);
        outcome.verdict = Verdict::Injected;
        let memory = self.memory.as_ref().zip(reviewed.object.tape());
        if let Some(((memory, tape), read)) = memory.zip(read) {
            warnings.splice(0..0, evaluation.warnings);
            let answer = Answer::Injected { patch, warnings: warnings.into() };
            let around = self.around(reviewed, &evaluation.namespace);
            memory.keep_evaluated((tape, around), &read, (answer, owner_name.is_some()));
        }
    }

    /// Istio changes nothing in a pod that it does not inject.
    fn leave_alone<'a>(&self, _: Reviewed<'_, 'a, Object<'a>>, _: &Plan, _: Output<'_, 'a>) {}
}

impl Istio {
    /// Decides about a pod without an answer.
    fn decide_anew<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        namespace: &Annotations,
        (Unknown { is_kept, owner, has_types }, turn): (Unknown, Option<Turn>),
        outcome: &mut Outcome<'a>,
    ) -> Decision<Plan> {
        let tree = || reviewed.object.tree_without_managed_fields();
        let checked = has_types.then(tree).flatten();
        let is_checked = checked.is_some();
        let is_kept = is_kept && is_checked;
        let pod = match checked.map_or_else(|| reviewed.object.tree(), Ok) {
            Ok(pod) => Arc::new(pod),
            Err(problem) => {
                outcome.deny(problem.into());
                return LEFT;
            }
        };
        let namespace_of_request = &reviewed.request.namespace;
        let injection =
            Injection::new(&self.injector, Arc::clone(&pod), namespace_of_request, reviewed.path);
        if !is_checked && let Err(denial) = injection.check() {
            outcome.deny(denial.into());
            return LEFT;
        }
        let decision = injection.decide();
        if let Some(index) = SKIPPING.iter().position(|reason| *reason == decision.reason) {
            let answer =
                Arc::new(Answer::Skipped { reason: index, warnings: decision.warnings.into() });
            let memory = self.memory.as_ref().filter(|_| is_kept);
            if let Some((memory, tape)) = memory.zip(reviewed.object.tape()) {
                memory.keep(tape, self.around(reviewed, namespace), Arc::clone(&answer));
            }
            return known(Found { answer, owner_name: String::new() }, outcome);
        }
        warn(outcome, &decision.warnings);
        let warnings = decision.warnings;
        let owner = owner.filter(|_| is_checked);
        let namespace = Arc::clone(namespace);
        let before = (!is_checked).then(|| Arc::clone(&pod));
        let evaluation =
            Evaluation { pod, before, namespace, warnings, is_kept, owner, turn, patience: None };
        Decision { is_injected: true, plan: Plan(Next::Evaluate(Box::new(evaluation))) }
    }

    /// The answer of an earlier pod.
    fn known(
        &self,
        reviewed: Reviewed<'_, '_, Object<'_>>,
        namespace: &Annotations,
    ) -> Result<Found, Unknown> {
        let memory = self.memory.as_ref().ok_or_else(Unknown::default)?;
        let tape = reviewed.object.tape().ok_or_else(Unknown::default)?;
        memory.find(tape, self.around(reviewed, namespace))
    }

    fn around<'s>(
        &'s self,
        reviewed: Reviewed<'s, '_, Object<'_>>,
        namespace_annotations: &'s Annotations,
    ) -> Around<'s> {
        let is_known = self.is_local(&self.injector.cluster(reviewed.path));
        let nodes = self.cluster.nodes.as_deref().filter(|_| is_known);
        let node = reviewed.object.tape().and_then(|pod| pod.root().get("spec")?.get("nodeName"));
        let node = node.and_then(Node::text).unwrap_or_default();
        let (native, warning) = self.injector.mode.is_native(nodes, &node);
        Around {
            namespace: &reviewed.request.namespace,
            path: reviewed.path,
            native: [nodes.is_some(), native, warning.is_some()],
            namespace_annotations,
        }
    }

    /// Whether a name is one of the cluster's.
    fn is_local(&self, cluster: &str) -> bool {
        self.cluster.names.iter().any(|name| name == cluster)
    }
}

/// The decision of an earlier pod.
fn known(found: Found, outcome: &mut Outcome<'_>) -> Decision<Plan> {
    match &*found.answer {
        Answer::Injected { warnings, .. } => {
            warn(outcome, warnings);
            Decision { is_injected: true, plan: Plan(Next::Known(found)) }
        }
        Answer::Skipped { reason, warnings } => {
            warn(outcome, warnings);
            outcome.reasons.insert(*reason);
            outcome.verdict = Verdict::Skipped;
            Decision { is_injected: false, plan: Plan(Next::Nothing) }
        }
    }
}

fn warn(outcome: &mut Outcome<'_>, warnings: &[String]) {
    for problem in warnings {
        outcome.warnings.push(|| Warning { annotation: "", problem: problem.clone() });
    }
}

/// Writes a patch with the name of the owner.
fn write(buffer: &mut PatchBuffer, patch: &SlottedPatch, owner_name: &str) {
    buffer.begin(patch.length(owner_name).div_ceil(3) * 4);
    patch.write(owner_name, buffer.slot());
    buffer.finish();
}
