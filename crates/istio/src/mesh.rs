//! Istio's steps of a review.

#![deny(clippy::disallowed_types)]

mod estimate;
mod evaluate;

use std::{mem, sync::Arc};

use injectd_core::{
    json::Node,
    lookups::{Asked, Lookups, Metadata, NoTurn, Turn, Turns},
    mesh::{Caller, InjectError, Mesh, Output, Reviewed},
    namespace::NamespaceReads,
    object::Kind,
    outcome::{Configuration, Outcome, SkipReason, TemplateLookup, Verdict, Warning},
    patch::PatchBuffer,
};
use injectd_memory::Slotted;

pub use estimate::memory_of_evaluation;
pub use evaluate::Evaluation;
use evaluate::Original;

use crate::{
    cluster::Cluster,
    decide::Reason,
    injection::{Injection, PodCluster},
    leaks,
    memory::{Answer, Found, KeyInputs, KeyedPod, Memory, Unknown},
    native::Nodes,
    object::Object,
    path::PathEnvironment,
    proto::layers::Resources,
    revision::Revision,
};

/// One revision of Istio, and its cluster.
#[derive(Debug)]
pub struct Istio {
    revision: Arc<Revision>,
    cluster: Cluster,
    configuration: Arc<Configuration>,
    /// `None` if every pod is evaluated.
    memory: Option<Arc<Memory>>,
}

/// What follows from a decision.
#[derive(Debug)]
pub enum Plan<'r> {
    /// The object is allowed unchanged, or denied.
    Left,
    /// The pod is injected with the patch of an earlier pod.
    Known(Found),
    /// The pod is injected, and its patch has to be made.
    Evaluate(Box<Evaluation<'r>>),
}

/// What a review needs besides its pod: the variables of the path, the pod's cluster, and what is part of
/// the key.
#[derive(Debug)]
struct PodContext<'r> {
    environment: PathEnvironment,
    cluster: PodCluster<'r>,
    inputs: KeyInputs<'r>,
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
    /// A revision in a cluster; `generation` counts its configurations from 1.
    #[must_use]
    pub fn new(revision: Revision, cluster: Cluster, generation: u64) -> Self {
        let release = revision.shown_release.clone();
        let configuration = Arc::new(Configuration { generation, release });
        let memory = Some(Arc::new(Memory::new(&revision, &cluster.resources)));
        Self { revision: Arc::new(revision), cluster, configuration, memory }
    }

    /// Returns a search for annotations that can leave their scalar in the templates, with one text for each
    /// template. It renders each some hundred times: run it on a thread that answers no reviews.
    pub fn find_leaks(&self) -> impl FnOnce() -> Vec<String> + Send + use<> {
        let revision = Arc::clone(&self.revision);
        move || leaks::of_annotations(&revision)
    }

    /// The same revision in a cluster with these nodes; `None` if they cannot be read. It keeps its
    /// answers: what nodes decide is part of their keys.
    #[must_use]
    pub fn with_nodes(&self, nodes: Option<Arc<Nodes>>) -> Self {
        self.in_cluster(Cluster { nodes, ..self.cluster.clone() }, self.memory.clone())
    }

    /// The same revision in a cluster with these `ProxyConfig`s.
    #[must_use]
    pub fn with_resources(&self, resources: Resources) -> Self {
        // The fixed part of every key has the resources: old answers would never be found again.
        let memory = |_: &Arc<Memory>| Arc::new(Memory::new(&self.revision, &resources));
        let memory = self.memory.as_ref().map(memory);
        self.in_cluster(Cluster { resources, ..self.cluster.clone() }, memory)
    }

    fn in_cluster(&self, cluster: Cluster, memory: Option<Arc<Memory>>) -> Self {
        let revision = Arc::clone(&self.revision);
        Self { revision, cluster, configuration: Arc::clone(&self.configuration), memory }
    }

    /// How many answers are kept for pods that read the same.
    #[must_use]
    pub fn answer_count(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.count())
    }

    /// The same without a memory: every pod is evaluated. Tests compare the answers of a memory with it.
    #[must_use]
    pub fn without_memory(self) -> Self {
        Self { memory: None, ..self }
    }

    /// The revision.
    #[must_use]
    pub fn revision(&self) -> &Revision {
        &self.revision
    }

    /// The `ProxyConfig`s of the cluster.
    pub(crate) fn resources(&self) -> &Resources {
        &self.cluster.resources
    }

    /// What a pod's cluster of this name has, with the annotations of the pod's namespace.
    #[must_use]
    pub fn pod_cluster<'c>(
        &'c self,
        name: &str,
        namespace_annotations: &'c [(String, String)],
    ) -> PodCluster<'c> {
        let is_known = self.cluster.names.iter().any(|known| known == name);
        PodCluster {
            resources: Some(&self.cluster.resources),
            // As istiod does for a cluster that it has no access to: nothing is known of its nodes.
            nodes: self.cluster.nodes.as_deref().filter(|_| is_known),
            namespace_annotations: if is_known { namespace_annotations } else { &[] },
        }
    }
}

impl Mesh for Istio {
    const NAME: &'static str = "istio";
    const SKIP_REASONS: &'static [SkipReason] = &SKIP_REASONS;
    type Object<'a> = Object<'a>;
    type Plan<'r> = Plan<'r>;

    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    fn namespace_reads(&self) -> &NamespaceReads {
        &self.revision.namespace_reads
    }

    async fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        namespace: &'r Metadata,
        turns: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> Result<Plan<'r>, NoTurn> {
        if reviewed.request.kind != Kind::Pod {
            return Ok(Plan::Left);
        }
        let context = self.context(reviewed, namespace);
        // Before a turn is asked for: an answer that is known must not wait behind evaluations.
        let mut found = self.find(reviewed.object, context.inputs);
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
                found = self.find(reviewed.object, context.inputs);
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
                let plan = self.decide_anew(reviewed, context, unknown, outcome);
                plan.unwrap_or_else(|denial| {
                    outcome.deny(denial.into());
                    Plan::Left
                })
                .in_turn(turn)
            }
        })
    }

    async fn inject<'r, 'a>(
        &self,
        _: Reviewed<'r, 'a, Object<'a>>,
        plan: &mut Plan<'r>,
        _: Caller<'_, 'a, impl Lookups>,
        output: Output<'_, 'a>,
    ) -> Result<(), InjectError> {
        match mem::replace(plan, Plan::Left) {
            Plan::Left => {}
            Plan::Known(Found { answer, owner_name }) => {
                if let Answer::Injected { patch, .. } = &*answer {
                    write(output.patch, patch, &owner_name);
                }
                output.outcome.verdict = Verdict::Injected;
            }
            Plan::Evaluate(evaluation) => self.evaluate(*evaluation, output),
        }
        Ok(())
    }
}

impl Plan<'_> {
    /// The plan, carried out in a turn.
    fn in_turn(mut self, turn: Option<Turn>) -> Self {
        if let Self::Evaluate(evaluation) = &mut self {
            evaluation.turn = turn;
        }
        self
    }
}

impl Istio {
    /// Reads the path of the URL, and finds the pod's cluster.
    fn context<'r>(
        &'r self,
        reviewed: Reviewed<'r, '_, Object<'_>>,
        namespace: &'r Metadata,
    ) -> PodContext<'r> {
        let environment = PathEnvironment::parse(reviewed.path);
        let cluster =
            self.pod_cluster(environment.cluster(&self.revision.values), &namespace.annotations);
        let node = reviewed.object.tape().and_then(|pod| pod.root().get("spec")?.get("nodeName"));
        let node = node.and_then(Node::text).unwrap_or_default();
        let (native, warning) = self.revision.mode.is_native(cluster.nodes, &node);
        let inputs = KeyInputs {
            namespace: &reviewed.request.namespace,
            path: reviewed.path,
            native: [cluster.nodes.is_some(), native, warning.is_some()],
            namespace_annotations: cluster.namespace_annotations,
        };
        PodContext { environment, cluster, inputs }
    }

    /// The answer of an earlier pod.
    fn find<'r>(
        &self,
        object: &'r Object<'_>,
        inputs: KeyInputs<'r>,
    ) -> Result<Found, Unknown<'r>> {
        let memory = self.memory.as_ref().ok_or(Unknown::Unchecked)?;
        let tape = object.tape().ok_or(Unknown::Unchecked)?;
        memory.find(KeyedPod { tape, inputs })
    }

    /// Decides about a pod without an answer.
    ///
    /// # Errors
    /// The message of the denial.
    fn decide_anew<'r>(
        &'r self,
        reviewed: Reviewed<'r, '_, Object<'_>>,
        context: PodContext<'r>,
        unknown: Unknown<'r>,
        outcome: &mut Outcome<'_>,
    ) -> Result<Plan<'r>, String> {
        let PodContext { environment, cluster, inputs } = context;
        let (pod, original) = Original::read(reviewed.object, unknown)?;
        let injection =
            Injection::new(&self.revision, pod, &reviewed.request.namespace, environment);
        // The types of a pod with a tape were checked when its answer was looked for.
        if matches!(original, Original::Tree(_)) {
            injection.check()?;
        }
        let decision = injection.decide();
        if let Some(reason) = SKIPPING.iter().position(|reason| *reason == decision.reason) {
            let answer = Arc::new(Answer::Skipped { reason, warnings: decision.warnings.into() });
            if let (Some(memory), Some(tape)) = (&self.memory, original.kept()) {
                memory.keep(KeyedPod { tape, inputs }, Arc::clone(&answer));
            }
            return Ok(known(Found { answer, owner_name: String::new() }, outcome));
        }
        warn(outcome, &decision.warnings);
        let warnings = decision.warnings;
        let evaluation = Evaluation { injection, original, cluster, inputs, warnings, turn: None };
        Ok(Plan::Evaluate(Box::new(evaluation)))
    }
}

/// The plan that follows from an answer. Its warnings and its skip reason go into the outcome.
fn known<'r>(found: Found, outcome: &mut Outcome<'_>) -> Plan<'r> {
    match &*found.answer {
        Answer::Injected { warnings, tainted, .. } => {
            warn(outcome, warnings);
            outcome.tainted = *tainted;
            Plan::Known(found)
        }
        Answer::Skipped { reason, warnings } => {
            warn(outcome, warnings);
            outcome.reasons.insert(*reason);
            outcome.verdict = Verdict::Skipped;
            Plan::Left
        }
    }
}

fn warn(outcome: &mut Outcome<'_>, warnings: &[String]) {
    for problem in warnings {
        outcome.warnings.push(|| Warning { annotation: "", problem: problem.clone() });
    }
}

/// Writes a patch with the name of the owner.
fn write(buffer: &mut PatchBuffer, patch: &Slotted, owner_name: &str) {
    // The size is known, so the answer is allocated once.
    buffer.begin(patch.length(owner_name).div_ceil(3) * 4);
    patch.write(owner_name, buffer.slot());
    buffer.finish();
}
