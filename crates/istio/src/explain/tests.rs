use injectd_core::explain::{Rule, RuleResult};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::rules;
use crate::{
    config::Config,
    decide::{INJECT_ANNOTATION, decide},
    release::Release,
};

const SELECTORS: &str = "
neverInjectSelector: [{matchLabels: {never: a}}, {matchExpressions: [{key: x, operator: Bogus}]}]
alwaysInjectSelector: [{matchLabels: {always: a}}]
";

fn explained(
    policy: &str,
    release: Release,
    pod: &Value,
    namespace: &str,
) -> (Vec<Rule>, &'static str) {
    let config = Config::parse(&format!("policy: {policy}{SELECTORS}")).expect("a configuration");
    let decision = decide(&config, release, pod, namespace);
    (rules(&config, release, pod, namespace), decision.reason.as_str())
}

#[test]
fn rules_after_the_one_that_decides_are_not_asked() {
    let pod = json!({"metadata": {"labels": {INJECT_ANNOTATION: "false", "always": "a"}}});
    let (rules, _) = explained("enabled", Release::NEWEST, &pod, "shop");
    let found: Vec<_> = rules.iter().map(|rule| (rule.rule, rule.result)).collect();
    assert_eq!(
        found,
        [
            ("hostNetwork", RuleResult::Passes),
            ("namespace", RuleResult::Passes),
            ("label", RuleResult::Skips),
            ("selectors", RuleResult::NotAsked),
            ("policy", RuleResult::NotAsked),
        ]
    );
    assert_eq!(rules[2].read[0].value.as_deref(), Some("false"));
}

fn metadata() -> impl Strategy<Value = Value> {
    let asked = || {
        let values = vec!["", "true", "false", "True", "y", "no", "x"];
        prop::option::of(prop::sample::select(values))
    };
    let flag = || any::<bool>();
    (asked(), asked(), flag(), flag()).prop_map(|(label, annotation, never, always)| {
        let mut metadata = json!({"labels": {}, "annotations": {}});
        if let Some(value) = label {
            metadata["labels"][INJECT_ANNOTATION] = value.into();
        }
        if let Some(value) = annotation {
            metadata["annotations"][INJECT_ANNOTATION] = value.into();
        }
        if never {
            metadata["labels"]["never"] = "a".into();
        }
        if always {
            metadata["labels"]["always"] = "a".into();
        }
        metadata
    })
}

proptest! {
    /// Exactly one rule decides, and it has the reason of the decision.
    #[test]
    fn explanation_and_decision_agree(
        metadata in metadata(),
        host_network in prop::option::of(any::<bool>()),
        policy in prop::sample::select(vec!["enabled", "disabled", "bogus"]),
        namespace in prop::sample::select(vec!["shop", "kube-system"]),
        minor in 19_u16..=31,
    ) {
        let pod = json!({"metadata": metadata, "spec": {"hostNetwork": host_network}});
        let (rules, reason) = explained(policy, Release::new(minor, 0), &pod, namespace);
        let decides = |rule: &&Rule| {
            matches!(rule.result, RuleResult::Injects | RuleResult::Skips)
        };
        let deciding: Vec<_> = rules.iter().filter(decides).collect();
        prop_assert_eq!(deciding.len(), 1);
        prop_assert_eq!(deciding[0].reason, Some(reason));
    }
}
