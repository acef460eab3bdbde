//! Explains Istio's answers, by the functions that decide.

use std::sync::Arc;

use injectd_core::{
    explain::{
        Explain, Findings, Layer, Rule, RuleResult, Trees,
        places::{self, Places},
        sidecars,
    },
    lookups::Metadata,
    mesh::Reviewed,
    object::Kind,
    outcome::Outcome,
};
use serde_json::Value;

use crate::{
    config::{Config, Policy},
    decide::{self, INJECT_ANNOTATION, Reason},
    fields::{annotation, label, labels},
    injection::Injection,
    mesh::Istio,
    native::{NATIVE_SIDECAR_ANNOTATION, NATIVE_SIDECARS_VARIABLE},
    object::Object,
    path::PathEnvironment,
    release::{Delta, Release},
    strip::Status,
};

mod advice;
mod before;
mod ignored;
mod settings;
mod tainted;

/// The names of the containers that Istio adds.
const SIDECARS: [&str; 4] = ["istio-proxy", "istio-init", "istio-validation", "enable-core-dump"];

impl Explain for Istio {
    // The injector reads no namespace; the webhooks do.
    const ASSUMED_NAMESPACE: &'static [(&'static str, &'static str)] = &[];

    fn explain<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        trees: Trees<'_>,
        namespace: &Metadata,
        outcome: &Outcome<'a>,
    ) -> Findings {
        let kind = reviewed.request.kind;
        if kind != Kind::Pod {
            let rule = Rule::new("kind", RuleResult::Skips, "Istio injects only pods").reading(
                Layer::Request,
                "kind",
                Some(kind.as_str()),
            );
            return Findings { rules: vec![rule], ..Findings::default() };
        }
        let raw = trees.object;
        let revision = self.revision();
        let pod = Arc::new(raw.clone());
        let environment = PathEnvironment::parse(reviewed.path);
        let injection = Injection::new(revision, pod, &reviewed.request.namespace, environment);
        let spec = raw.get("spec").unwrap_or(&Value::Null);
        let added = Status::of(raw).unwrap_or_default();
        let sidecars = sidecars::of_spec(spec, |name, _, is_init| {
            let names = if is_init { &added.init_containers } else { &added.containers };
            SIDECARS.contains(&name) || names.contains(name)
        });
        if let Err(denial) = injection.check() {
            let rules = vec![Rule::new("types", RuleResult::Denies, denial)];
            return Findings { rules, sidecars, ..Findings::default() };
        }
        let mut rules = rules(&revision.config, revision.release, raw, injection.namespace());
        let injects = rules.iter().any(|rule| rule.result == RuleResult::Injects);
        let mut settings = Vec::new();
        let mut tainted = None;
        if injects {
            tainted = self.tainted(reviewed, raw, namespace, outcome);
            rules.push(template_rule(&revision.config, raw, outcome));
            // A denied pod gets no sidecar, and its annotations may be what is too large.
            if outcome.denial.is_none() {
                settings = self.shown_settings(&injection, raw);
            }
        }
        let advice = advice::of(outcome, injection.namespace(), tainted.as_ref());
        let of_namespace = places::texts(trees.namespace, "annotations");
        let places = Places::of(raw, trees.workload, trees.namespace, of_namespace);
        let ignored = ignored::of(revision, &places, outcome);
        Findings { rules, settings, ignored, sidecars, tainted, advice }
    }

    fn before_injection(&self, pod: &Value, _: &[(String, String)]) -> Option<Value> {
        before::of(self, pod)
    }

    fn reads_names(&self) -> bool {
        self.revision().reads_names()
    }

    fn native_sidecar(&self) -> String {
        let variable = format!("set {NATIVE_SIDECARS_VARIABLE}=true in istiod's environment");
        if !self.revision().release.has(Delta::NativeAnnotation) {
            return variable;
        }
        format!("annotate the pod template {NATIVE_SIDECAR_ANNOTATION}: \"true\", or {variable}")
    }
}

/// The rules in their order ([`decide::decide`]). The first one that injects or skips decides.
pub(crate) fn rules(config: &Config, release: Release, pod: &Value, namespace: &str) -> Vec<Rule> {
    let mut rules = vec![
        host_network_rule(pod),
        namespace_rule(namespace),
        asked_rule(config, release, pod),
        selector_rule(config, pod),
        policy_rule(config),
    ];
    let decides = |rule: &Rule| rule.result != RuleResult::Passes;
    if let Some(first) = rules.iter().position(decides) {
        for rule in &mut rules[first + 1..] {
            rule.result = RuleResult::NotAsked;
            rule.reason = None;
            "an earlier rule decided".clone_into(&mut rule.text);
        }
    }
    rules
}

/// The result of a rule with this reason.
fn decided(rule: &'static str, reason: Reason, text: impl Into<String>) -> Rule {
    if reason.injects() {
        return Rule {
            reason: Some(reason.as_str()),
            ..Rule::new(rule, RuleResult::Injects, text)
        };
    }
    Rule::new(rule, RuleResult::Skips, text).because(reason.as_str())
}

fn host_network_rule(pod: &Value) -> Rule {
    let name = "hostNetwork";
    let rule = if decide::uses_host_network(pod) {
        decided(name, Reason::HostNetwork, "the pod uses the network of its node")
    } else {
        Rule::new(name, RuleResult::Passes, "the pod has a network of its own")
    };
    rule.reading(Layer::Pod, "spec.hostNetwork", pod.pointer("/spec/hostNetwork"))
}

fn namespace_rule(namespace: &str) -> Rule {
    let rule = if decide::SYSTEM_NAMESPACES.contains(&namespace) {
        decided("namespace", Reason::SystemNamespace, Reason::SystemNamespace.text())
    } else {
        Rule::new("namespace", RuleResult::Passes, "it is not a namespace of the system")
    };
    rule.reading(Layer::Request, "namespace", Some(namespace))
}

fn asked_rule(config: &Config, release: Release, pod: &Value) -> Rule {
    let mut warnings = Vec::new();
    let asked = decide::asked(release, pod, &mut warnings);
    let is_valid = !matches!(config.policy, Policy::Other(_));
    let rule = match asked {
        Some(reason) if is_valid => decided("label", reason, reason.text()),
        Some(_) => {
            let text = "the pod asks, but the policy of the configuration is not valid";
            Rule::new("label", RuleResult::Passes, text)
        }
        None => {
            let text = match warnings.pop() {
                Some(_) => "the value is neither true nor false: the policy decides",
                None => "neither a label nor an annotation of the pod asks",
            };
            Rule::new("label", RuleResult::Passes, text)
        }
    };
    let (of_label, of_annotation) =
        (label(pod, INJECT_ANNOTATION), annotation(pod, INJECT_ANNOTATION));
    rule.reading(Layer::Pod, &format!("label {INJECT_ANNOTATION}"), of_label).reading(
        Layer::Pod,
        &format!("annotation {INJECT_ANNOTATION}"),
        of_annotation,
    )
}

fn selector_rule(config: &Config, pod: &Value) -> Rule {
    let selected = decide::selected(config, labels(pod), &mut Vec::new());
    let rule = match selected {
        Some(reason) if !matches!(config.policy, Policy::Other(_)) => {
            decided("selectors", reason, reason.text())
        }
        Some(_) => {
            let text = "a selector matches, but the policy of the configuration is not valid";
            Rule::new("selectors", RuleResult::Passes, text)
        }
        None => Rule::new("selectors", RuleResult::Passes, "no selector matches the pod's labels"),
    };
    let counts = [
        ("neverInjectSelector", config.never_inject.len()),
        ("alwaysInjectSelector", config.always_inject.len()),
    ];
    counts.into_iter().fold(rule, |rule, (field, count)| {
        let count = match count {
            0 => None,
            1 => Some("1 selector".to_owned()),
            count => Some(format!("{count} selectors")),
        };
        rule.reading(Layer::Configuration, field, count)
    })
}

fn policy_rule(config: &Config) -> Rule {
    let (reason, policy) = match &config.policy {
        Policy::Enabled => (Reason::PolicyEnabled, "enabled"),
        Policy::Disabled => (Reason::PolicyDisabled, "disabled"),
        Policy::Other(text) => (Reason::PolicyInvalid, text.as_str()),
    };
    decided("policy", reason, reason.text()).reading(Layer::Configuration, "policy", Some(policy))
}

fn template_rule(config: &Config, pod: &Value, outcome: &Outcome<'_>) -> Rule {
    let asked = annotation(pod, crate::selection::TEMPLATES_ANNOTATION);
    let names = crate::selection::names(config, asked).unwrap_or_default().join(", ");
    let rule = if let Some(denial) = &outcome.denial {
        Rule::new("templates", RuleResult::Denies, denial.clone())
    } else {
        let text = format!("rendered and merged: {names}");
        Rule::new("templates", RuleResult::Passes, text)
    };
    let rule = rule.reading(Layer::Pod, crate::selection::TEMPLATES_ANNOTATION, asked);
    let defaults = config.default_templates.join(", ");
    rule.reading(Layer::Configuration, "defaultTemplates", Some(defaults))
}

#[cfg(test)]
mod tests;
