//! Sidecar templates as a [`Mesh`], with objects of files in place of a cluster: the commands that answer
//! reviews use it. The answer is that of [`inject`].

use std::sync::{Arc, LazyLock};

use injectd_core::{
    json::{self, Read, ReadError, Reader},
    lookups::{Lookups, Metadata, NoTurn, Turns},
    mesh::{Caller, InjectError, Mesh, Output, Reviewed},
    namespace::NamespaceReads,
    object::Kind,
    outcome::{Configuration, Outcome, SkipReason, Verdict, Warning},
    request::View,
    view::Text,
};
use injectd_templates::{
    Template,
    reads::{Needs, Reads, of_template},
};
use serde_json::Value;

use crate::{
    Decision, Explained, Injected, Request, State, Uninjected, explain, inject, lay, owner,
    surroundings::{self, Made, Surroundings},
    uninject,
};

/// Templates, and where pods come from.
#[derive(Debug, Default)]
pub struct Templates {
    /// The templates, in any order.
    pub templates: Vec<Template>,
    /// The objects that say where pods come from.
    pub surroundings: Surroundings,
    configuration: Arc<Configuration>,
    needs: Needs,
}

impl Templates {
    /// Templates in a cluster with these objects.
    #[must_use]
    pub fn new(templates: Vec<Template>, surroundings: Surroundings) -> Self {
        let mut needs = Needs::default();
        for template in &templates {
            needs.add(&of_template(template));
        }
        Self { templates, surroundings, configuration: Arc::default(), needs }
    }

    /// Applies the templates to a pod of a namespace.
    ///
    /// # Errors
    /// Why the pod is denied.
    pub fn inject(&self, pod: &Value, namespace: &str) -> Result<Injected, String> {
        let owners = self.surroundings.owners(pod, namespace);
        self.with(pod, &owners, namespace, |request| self.injected(request))?
    }

    /// Applies the templates to the pod of a workload.
    ///
    /// # Errors
    /// Why the pod is denied.
    pub fn inject_made(&self, made: &Made, namespace: &str) -> Result<Injected, String> {
        self.with(&made.pod, &made.owners, namespace, |request| self.injected(request))?
    }

    /// Explains an injection of a pod of a namespace.
    ///
    /// # Errors
    /// The namespace does not exist.
    pub fn explain(&self, pod: &Value, namespace: &str) -> Result<Explained, String> {
        let owners = self.surroundings.owners(pod, namespace);
        self.with(pod, &owners, namespace, |request| explain(&self.templates, request))
    }

    /// The same for the pod of a workload.
    ///
    /// # Errors
    /// The namespace does not exist.
    pub fn explain_made(&self, made: &Made, namespace: &str) -> Result<Explained, String> {
        let Made { pod, owners } = made;
        self.with(pod, owners, namespace, |request| explain(&self.templates, request))
    }

    /// Takes what the templates have put there out of a pod of a namespace; `None` if it has nothing of them.
    ///
    /// # Errors
    /// The namespace does not exist.
    pub fn uninject(&self, pod: &Value, namespace: &str) -> Result<Option<Uninjected>, String> {
        let owners = self.surroundings.owners(pod, namespace);
        self.with(pod, &owners, namespace, |request| uninject(&self.templates, request))
    }

    /// The same for the pod of a workload.
    ///
    /// # Errors
    /// The namespace does not exist.
    pub fn uninject_made(
        &self,
        made: &Made,
        namespace: &str,
    ) -> Result<Option<Uninjected>, String> {
        let Made { pod, owners } = made;
        self.with(pod, owners, namespace, |request| uninject(&self.templates, request))
    }

    fn injected(&self, request: &Request<'_>) -> Result<Injected, String> {
        inject(&self.templates, request).map_err(|denied| denied.to_string())
    }

    /// The objects that the templates may read and that are not known, for a pod with these owners.
    #[must_use]
    pub fn unknown(&self, pod: &Value, namespace: &str) -> Vec<String> {
        let known = &self.surroundings;
        let account = known.service_account(pod, namespace);
        let account_name = surroundings::service_account_name(pod);
        let owner = owner::controller(pod).filter(|_| known.owners(pod, namespace).is_empty());
        let missing = [
            (self.needs.namespace != Reads::default() && !known.has_namespace(namespace))
                .then(|| format!("Namespace {namespace}")),
            (self.needs.service_account.is_some() && account.is_none())
                .then(|| format!("ServiceAccount {namespace}/{account_name}")),
            owner.filter(|_| self.needs.reads_owners).map(|owner| {
                let text = |field: &str| owner[field].as_str().unwrap_or_default();
                format!("{} {namespace}/{}", text("kind"), text("name"))
            }),
        ];
        missing.into_iter().flatten().collect()
    }

    fn with<R>(
        &self,
        pod: &Value,
        owners: &[Value],
        namespace: &str,
        then: impl FnOnce(&Request<'_>) -> R,
    ) -> Result<R, String> {
        let object = self.surroundings.namespace(namespace);
        // The API server's text.
        let object = object.ok_or_else(|| format!("namespaces {namespace:?} not found"))?;
        let request = Request {
            pod,
            namespace: &object,
            service_account: self.surroundings.service_account(pod, namespace),
            owners,
            own_namespace: None,
        };
        Ok(then(&request))
    }
}

/// The reasons for which templates leave a pod as it is.
pub const SKIP_REASONS: [SkipReason; 5] = [
    SkipReason { code: "no_template", text: "no sidecar template is for the pod" },
    SkipReason { code: "disabled", text: "a label or annotation switches a template off" },
    SkipReason { code: "left_out", text: "a template is left out" },
    SkipReason { code: "present", text: "a template is in the pod already" },
    SkipReason { code: "nothing_to_add", text: "a template has nothing to add" },
];

/// The indexes of the reasons for which templates leave a pod as it is: why those that are for it have
/// nothing to add, or else that none is for it.
#[must_use]
pub fn skip_reasons(decisions: &[Decision]) -> Vec<usize> {
    let reason = |decision: &Decision| match decision.state {
        State::Unmatched(_) => None,
        State::Disabled => Some(1),
        State::Skipped(_) | State::Failed { .. } => Some(2),
        State::Present { .. } => Some(3),
        State::Nothing | State::Applied => Some(4),
    };
    let mut reasons: Vec<usize> = decisions.iter().filter_map(reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    if reasons.is_empty() { vec![0] } else { reasons }
}

/// A pod under review.
#[derive(Debug, Default)]
pub struct Object<'a> {
    tree: Value,
    kind: String,
    namespace: String,
    name: Text<'a>,
    owner_kind: Option<String>,
}

impl<'a> Read<'a> for Object<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        let begin = reader.clone();
        reader.skip()?;
        let Ok(tree) = serde_json::from_str::<Value>(reader.since(&begin)) else {
            return Err(begin.mismatch("an object that is not nested too deeply"));
        };
        let text = |pointer| tree.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = match text("/metadata/name") {
            "" => text("/metadata/generateName"),
            name => name,
        };
        let owner = owner::controller(&tree);
        *self = Self {
            kind: text("/kind").to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            name: Text(name.to_owned().into()),
            owner_kind: owner.and_then(|owner| owner["kind"].as_str().map(str::to_owned)),
            tree,
        };
        Ok(())
    }
}

impl<'a> View<'a> for Object<'a> {
    fn read_bare(json: &'a str) -> Result<Self, ReadError> {
        json::read(json)
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &Text<'a> {
        &self.name
    }

    fn owner_kind(&self) -> Option<&str> {
        self.owner_kind.as_deref()
    }

    fn complete(&mut self, _: Kind) {}
}

impl Mesh for Templates {
    const NAME: &'static str = "templates";
    const SKIP_REASONS: &'static [SkipReason] = &SKIP_REASONS;
    type Object<'a> = Object<'a>;
    type Plan<'r> = Option<Injected>;

    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    fn namespace_reads(&self) -> &NamespaceReads {
        // Namespaces are among the objects.
        static READS: LazyLock<NamespaceReads> = LazyLock::new(NamespaceReads::default);
        &READS
    }

    async fn decide<'r, 'a>(
        &'r self,
        reviewed: Reviewed<'r, 'a, Object<'a>>,
        _: &'r Metadata,
        _: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> Result<Option<Injected>, NoTurn> {
        if reviewed.request.kind != Kind::Pod {
            return Ok(None);
        }
        let pod = &reviewed.object.tree;
        let namespace = match &*reviewed.request.namespace {
            "" => &*reviewed.object.namespace,
            namespace => namespace,
        };
        let injected = match self.inject(pod, namespace) {
            Ok(injected) => injected,
            Err(reason) => {
                outcome.deny(reason.into());
                return Ok(None);
            }
        };
        for warning in &injected.warnings {
            outcome.warnings.push(|| Warning { annotation: "", problem: warning.clone() });
        }
        if injected.pod == *pod {
            for reason in skip_reasons(&injected.decisions) {
                outcome.reasons.insert(reason);
            }
            outcome.verdict = Verdict::Skipped;
            return Ok(None);
        }
        outcome.verdict = Verdict::Injected;
        Ok(Some(injected))
    }

    async fn inject<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        plan: &mut Option<Injected>,
        _: Caller<'_, 'a, impl Lookups>,
        Output { patch, .. }: Output<'_, 'a>,
    ) -> Result<(), InjectError> {
        if let Some(injected) = plan {
            let operations = lay::patch(&reviewed.object.tree, &injected.pod);
            patch.begin(0);
            patch.slot().extend_from_slice(Value::Array(operations).to_string().as_bytes());
            patch.finish();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(state: State) -> Decision {
        Decision { template: "a".to_owned(), state, cost: 0 }
    }

    #[test]
    fn the_reasons_are_those_of_templates_that_are_for_the_pod() {
        let unmatched = || decision(State::Unmatched("selectors".to_owned()));
        assert_eq!(skip_reasons(&[]), [0]);
        assert_eq!(skip_reasons(&[unmatched()]), [0]);
        let present = decision(State::Present { is_outdated: true });
        assert_eq!(skip_reasons(&[present, unmatched(), decision(State::Disabled)]), [1, 3]);
    }
}
