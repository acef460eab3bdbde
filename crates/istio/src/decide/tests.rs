use serde_json::json;

use super::*;

const OLD: Release = Release::new(26, 8);
const NEW: Release = Release::new(27, 0);

const SELECTORS: &str = "
neverInjectSelector: [{}, {matchExpressions: [{key: x, operator: Bogus}]}, {matchLabels: {never: a}}]
alwaysInjectSelector: [{}, {matchLabels: {always: a}}]
";

fn config(policy: &str) -> Config {
    Config::parse(&format!("policy: {policy}{SELECTORS}")).expect("the configuration must be valid")
}

fn reason(policy: &str, release: Release, metadata: &Value) -> Reason {
    decide(&config(policy), release, &json!({"metadata": metadata}), "default").reason
}

fn with_label(value: &str) -> Value {
    json!({"labels": {INJECT_ANNOTATION: value}})
}

#[test]
fn host_network_and_system_namespaces_come_first() {
    let asking = json!({"metadata": with_label("true"), "spec": {"hostNetwork": true}});
    let decision = decide(&config("bogus"), NEW, &asking, "kube-system");
    assert_eq!(decision, Decision::new(Reason::HostNetwork));
    let asking = json!({"metadata": with_label("true"), "spec": {"hostNetwork": false}});
    for namespace in SYSTEM_NAMESPACES {
        let decision = decide(&config("enabled"), NEW, &asking, namespace);
        assert_eq!(decision.reason, Reason::SystemNamespace);
    }
    assert!(decide(&config("enabled"), NEW, &asking, "istio-system").injects());
}

#[test]
fn values_are_exact_from_1_27_on() {
    use Reason::{DisabledByLabel as No, EnabledByLabel as Yes, PolicyDisabled as Default};
    for (value, old, new) in [
        ("true", Yes, Yes),
        ("false", No, No),
        ("", Default, Default),
        ("True", Yes, Default),
        ("y", Yes, Default),
        ("YES", Yes, Default),
        ("on", Yes, Default),
        ("enabled", No, Default),
        ("1", No, Default),
        (" true", No, Default),
    ] {
        assert_eq!(reason("disabled", OLD, &with_label(value)), old, "{value}");
        assert_eq!(reason("disabled", NEW, &with_label(value)), new, "{value}");
    }
}

#[test]
fn the_label_wins_even_if_it_is_empty() {
    let metadata =
        |label: Value| json!({"labels": label, "annotations": {INJECT_ANNOTATION: "true"}});
    for (label, expected) in [
        (json!({INJECT_ANNOTATION: "false"}), Reason::DisabledByLabel),
        (json!({INJECT_ANNOTATION: ""}), Reason::PolicyDisabled),
        (json!({}), Reason::EnabledByAnnotation),
        (json!(null), Reason::EnabledByAnnotation),
    ] {
        assert_eq!(reason("disabled", NEW, &metadata(label)), expected);
    }
    let refusing = json!({"annotations": {INJECT_ANNOTATION: "false"}});
    assert_eq!(reason("enabled", NEW, &refusing), Reason::DisabledByAnnotation);
}

#[test]
fn selectors_decide_only_if_the_pod_does_not() {
    for (labels, expected) in [
        (json!({"never": "a"}), Reason::NeverInjectSelector),
        (json!({"always": "a"}), Reason::AlwaysInjectSelector),
        (json!({"always": "a", "never": "a"}), Reason::NeverInjectSelector),
        (json!({"never": "a", INJECT_ANNOTATION: "true"}), Reason::EnabledByLabel),
        (json!({"always": "a", INJECT_ANNOTATION: "false"}), Reason::DisabledByLabel),
        (json!({"never": "a", INJECT_ANNOTATION: "maybe"}), Reason::NeverInjectSelector),
    ] {
        for policy in ["enabled", "disabled"] {
            assert_eq!(reason(policy, NEW, &json!({"labels": labels})), expected, "{labels}");
        }
    }
}

#[test]
fn the_policy_decides_on_the_rest() {
    assert_eq!(reason("enabled", NEW, &json!({})), Reason::PolicyEnabled);
    assert_eq!(reason("disabled", NEW, &json!({})), Reason::PolicyDisabled);
    for metadata in [json!({}), with_label("true"), with_label("false")] {
        assert_eq!(reason("sometimes", NEW, &metadata), Reason::PolicyInvalid);
    }
}

#[test]
fn warnings_are_istios() {
    let pod = json!({"metadata": with_label("yes")});
    let warnings = decide(&config("sometimes"), NEW, &pod, "default").warnings;
    assert_eq!(
        warnings,
        [
            "Invalid value for sidecar.istio.io/inject: \"yes\". Only 'true' and 'false' are accepted. \
         Falling back to default injection policy.",
            "Invalid selector for NeverInjectSelector: {map[] [{x Bogus []}]} (\"Bogus\" is not a valid \
         label selector operator)",
            "Illegal value for autoInject:sometimes, must be one of [disabled,enabled]. Auto injection \
         disabled!",
        ]
    );
}

#[test]
fn warnings_quote_values_as_go_does() {
    let pod = json!({"metadata": with_label("y\u{1b}\u{202e}\u{2028}")});
    let warnings = decide(&config("enabled"), NEW, &pod, "default").warnings;
    let begin = r#"Invalid value for sidecar.istio.io/inject: "y\x1b\u202e\u2028". Only"#;
    assert!(warnings[0].starts_with(begin), "{warnings:?}");
}

#[test]
fn codes_are_unique() {
    let codes: std::collections::HashSet<_> =
        Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(codes.len(), Reason::ALL.len());
    assert!(Reason::ALL.iter().all(|reason| !reason.text().is_empty()));
}
