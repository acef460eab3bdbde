//! What becomes of a pod: kept for pods with the same excerpt.

use std::{fmt, sync::Arc};

use injectd_core::{
    outcome::{TemplateDecision, TemplateResult},
    patch::Segment,
};
use injectd_memory::Weighed;
use injectd_templates_tree::{Changed, Decision, Denied, State, lay, mesh::skip_reasons};
use serde_json::Value;

/// What becomes of a pod.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) effect: Effect,
    pub(crate) warnings: Box<[String]>,
    /// What became of each template that might have been for the pod.
    pub(crate) decisions: Arc<Vec<TemplateDecision>>,
}

/// What is done with a pod.
#[derive(Debug)]
pub(crate) enum Effect {
    /// It is changed by this patch.
    Injected(Segment),
    /// It stays as it is, for the reasons with these indexes.
    Skipped(Vec<usize>),
    /// It is denied with this message.
    Denied(String),
}

impl Answer {
    /// The answer for a pod that is not JSON where it is read.
    pub(crate) fn not_understood(error: &impl fmt::Display) -> Self {
        let effect = Effect::Denied(format!("the pod cannot be understood: {error}"));
        Self { effect, warnings: Box::default(), decisions: Arc::default() }
    }

    /// The answer for a pod as it is in the excerpt.
    pub(crate) fn of(pod: &Value, changed: Result<Changed, Denied>) -> Self {
        let changed = match changed {
            Ok(changed) => changed,
            Err(denied) => {
                let effect = Effect::Denied(denied.to_string());
                let decision = TemplateDecision {
                    template: denied.template,
                    result: TemplateResult::Denied,
                    text: denied.text,
                    failed_at: denied.failed_at,
                };
                return Self {
                    effect,
                    warnings: Box::default(),
                    decisions: Arc::new(vec![decision]),
                };
            }
        };
        let patch = changed.pod.and_then(|changed| lay::patch_text(pod, &changed));
        let effect = match patch {
            Some(text) => Effect::Injected(Segment::new(text)),
            None => Effect::Skipped(skip_reasons(&changed.decisions)),
        };
        let decisions = Arc::new(changed.decisions.into_iter().map(decided).collect());
        let warnings = changed.warnings.into();
        Self { effect, warnings, decisions }
    }
}

/// A decision as an outcome has it.
fn decided(Decision { template, state, .. }: Decision) -> TemplateDecision {
    let result = match &state {
        State::Unmatched(_) | State::Disabled => TemplateResult::Unmatched,
        State::Skipped(_) | State::Failed { .. } | State::Nothing => TemplateResult::Skipped,
        State::Present { .. } => TemplateResult::Present,
        State::Applied => TemplateResult::Injected,
    };
    let failed_at = match &state {
        State::Failed { field, .. } => Some(field.clone()),
        _ => None,
    };
    let text = state.into_text();
    TemplateDecision { template, result, text, failed_at }
}

impl Weighed for Answer {
    fn bytes(&self) -> usize {
        let effect = match &self.effect {
            Effect::Injected(patch) => patch.bytes(),
            Effect::Skipped(_) => 0,
            Effect::Denied(text) => text.len(),
        };
        let warnings = self.warnings.iter().map(|text| text.len() + size_of::<String>());
        let decisions = self.decisions.iter().map(|decision| {
            let TemplateDecision { template, text, failed_at, .. } = decision;
            let field = failed_at.as_ref().map_or(0, String::len);
            template.len() + text.len() + field + size_of::<TemplateDecision>()
        });
        size_of::<Self>() + effect + warnings.sum::<usize>() + decisions.sum::<usize>()
    }
}
