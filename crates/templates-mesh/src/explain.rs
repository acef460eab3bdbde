//! Explains an answer: a rule for each template that may have been for the pod.

use injectd_core::{
    explain::{Explain, Findings, Rule, RuleResult, places::Trees},
    lookups::Metadata,
    mesh::Reviewed,
    outcome::{Outcome, TemplateDecision, TemplateResult},
};
use serde_json::Value;

use crate::{mesh::Templates, object::Object};

/// What the cluster writes into each pod, and what else differs between equal ones.
const OF_EACH: [&[&str]; 8] = [
    &["metadata", "name"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
    &["metadata", "creationTimestamp"],
    &["metadata", "managedFields"],
    &["metadata", "selfLink"],
    &["spec", "nodeName"],
    &["status"],
];

impl Explain for Templates {
    // A template reads what a namespace has.
    const ASSUMED_NAMESPACE: &'static [(&'static str, &'static str)] = &[];

    fn explain<'a>(
        &self,
        _: Reviewed<'_, 'a, Object<'a>>,
        _: Trees<'_>,
        _: &Metadata,
        outcome: &Outcome<'a>,
    ) -> Findings {
        let decisions = outcome.decisions.as_deref().map(Vec::as_slice).unwrap_or_default();
        let mut rules: Vec<_> = decisions.iter().map(rule).collect();
        if rules.is_empty() {
            let text = "no template is for the object";
            rules.push(Rule::new("template", RuleResult::Skips, text));
        }
        Findings { rules, ..Findings::default() }
    }

    // `injectd uninject --templates` says what a pod was before.
    fn before_injection(&self, _: &Value, _: &[(String, String)]) -> Option<Value> {
        None
    }

    fn reads_names(&self) -> bool {
        self.reads_any(&OF_EACH)
    }

    fn native_sidecar(&self) -> String {
        "let the template add it as an init container with restartPolicy: Always".to_owned()
    }
}

fn rule(decision: &TemplateDecision) -> Rule {
    let result = match decision.result {
        TemplateResult::Injected => RuleResult::Injects,
        TemplateResult::Present | TemplateResult::Skipped => RuleResult::Skips,
        TemplateResult::Denied => RuleResult::Denies,
        TemplateResult::Unmatched => RuleResult::Passes,
    };
    Rule::new("template", result, format!("{}: {}", decision.template, decision.text))
}
