use clap::Parser;
use serde_json::{Value, json};

use super::*;

#[derive(Parser)]
pub(super) struct Line {
    #[command(flatten)]
    pub(super) args: Args,
}

/// The policy and the binding of a command line, or the text of the error.
pub(super) fn printed(flags: &[&str]) -> Result<[Value; 2], String> {
    let line = [&["guard", "-o", "json"], flags].concat();
    let Line { args } = Line::try_parse_from(line).map_err(|error| error.to_string())?;
    let text = |error: CommandError| error.to_string();
    args.check().map_err(text)?;
    let rules = args.rules().map_err(text)?;
    objects::of(&args, &rules).map_err(text)
}

fn variable(policy: &Value, name: &str) -> String {
    let variables = policy["spec"]["variables"].as_array().expect("variables must be a list");
    let found = variables.iter().find(|variable| variable["name"] == name);
    found
        .map(|variable| variable["expression"].as_str().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

#[test]
fn only_the_creation_of_pods_is_guarded() {
    for mesh in ["linkerd", "istio"] {
        let [policy, binding] = printed(&["--mesh", mesh]).expect("must be printed");
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["pods"]}]);
        assert_eq!(policy["spec"]["matchConstraints"]["resourceRules"], rules);
        assert_eq!(policy["spec"]["failurePolicy"], "Ignore");
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        assert_eq!(binding["spec"]["validationActions"], json!(["Warn"]));
        assert_eq!(binding["spec"].get("matchResources"), None);
    }
}

#[test]
fn the_binding_has_what_the_flags_choose() {
    let flags = [
        "--name=x",
        "--action=deny,audit",
        "--failure-policy=Fail",
        "--namespace-selector=team=shop,!old",
        "--exclude-namespace=a",
        "--exclude-namespace=b",
    ];
    let [policy, binding] = printed(&flags).expect("must be printed");
    assert_eq!(
        (&policy["metadata"]["name"], &binding["metadata"]["name"]),
        (&json!("x"), &json!("x"))
    );
    assert_eq!(policy["spec"]["failurePolicy"], "Fail");
    assert_eq!(binding["spec"]["validationActions"], json!(["Deny", "Audit"]));
    let expected = json!([
        {"key": "team", "operator": "In", "values": ["shop"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["a", "b"]},
    ]);
    let found = &binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"];
    assert_eq!(*found, expected);
}

#[test]
fn the_control_plane_of_linkerd_is_left_out() {
    let [policy, _] = printed(&["--linkerd-namespace", "mesh"]).expect("must be printed");
    let selector = &policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"];
    assert_eq!(selector[1]["values"], json!(["kube-system", "cert-manager", "mesh"]));
}

#[test]
fn labels_of_the_default_revision_ask_only_if_it_is_named() {
    let asks_by = |flags: &[&str]| {
        let [policy, _] = printed(&[&["--mesh=istio"], flags].concat()).expect("must be printed");
        variable(&policy, "asksBy")
    };
    let all = asks_by(&[]);
    assert!(all.contains("== 'enabled'") && all.contains("['istio.io/rev'] != ''"), "{all}");
    let canary = asks_by(&["--revision=canary"]);
    assert!(!canary.contains("enabled") && canary.contains("in ['canary']"), "{canary}");
    let both = asks_by(&["--revision=canary,default", "--enable-namespaces-by-default"]);
    assert!(both.contains("in ['canary', 'default']"), "{both}");
    assert!(both.contains("enableNamespacesByDefault"), "{both}");
}

#[test]
fn the_policy_and_selectors_of_the_injector_leave_pods_out() {
    let variables = |flags: &[&str]| {
        let [policy, _] = printed(&[&["--mesh=istio"], flags].concat()).expect("must be printed");
        ["isLeftOut", "isNeverInjected", "isAlwaysInjected"].map(|name| variable(&policy, name))
    };
    let says_nothing = |rest| format!("!(variables.injectValue == 'true'){rest}");
    assert_eq!(variables(&[]), [""; 3]);
    let disabled = "--injector-policy=disabled";
    assert_eq!(variables(&[disabled]), [&*says_nothing(""), "", ""]);
    let job = "variables.podLabels[?'job'].hasValue()";
    let never = "--never-inject-selector=job";
    let expected = says_nothing(" && variables.isNeverInjected");
    assert_eq!(variables(&[never]), [&*expected, job, ""]);
    assert_eq!(variables(&[disabled, never]), [&*says_nothing(""), "", ""]);
    let app = "variables.podLabels[?'app'].optMap(value, value in ['a', 'b']).orValue(false)";
    let always = "--always-inject-selector=app in (a, b)";
    let expected = says_nothing(" && !variables.isAlwaysInjected");
    assert_eq!(variables(&[disabled, always]), [&*expected, "", app]);
    let expected = says_nothing(" && (variables.isNeverInjected || !variables.isAlwaysInjected)");
    assert_eq!(variables(&[disabled, never, always]), [&*expected, job, app]);
}

#[test]
fn selectors_are_those_of_kubectl() {
    let parsed = |text| {
        let parsed = selector::parse("--x", text).map_err(|error| error.to_string());
        parsed.map(|all| json!(all))
    };
    for (text, key, operator, values) in [
        ("a=b", "a", "In", &["b"][..]),
        ("a == b", "a", "In", &["b"]),
        ("a!=b", "a", "NotIn", &["b"]),
        ("a=", "a", "In", &[""]),
        ("x.io/a in (b,c)", "x.io/a", "In", &["b", "c"]),
        ("a notin ( b , c )", "a", "NotIn", &["b", "c"]),
        ("a", "a", "Exists", &[]),
        ("! a", "a", "DoesNotExist", &[]),
    ] {
        let mut expected = json!({"key": key, "operator": operator});
        if !values.is_empty() {
            expected["values"] = json!(values);
        }
        assert_eq!(parsed(text), Ok(json!([expected])), "{text}");
    }
    for text in ["", "a,", "a b", "a in b", "a in (b", "a on (b)", "a=b=c", "a='b'", "a>1", "!a=b"]
    {
        let error = parsed(text).expect_err(text);
        assert!(error.starts_with("--x ") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn wrong_flags_are_named() {
    for (flags, problem) in [
        (&["--action=deny,warn"][..], "--action: deny and warn exclude each other"),
        (&["--action=warn,warn"], "--action: an action is repeated"),
        (&["--name=A"], "--name: \"A\" is not the name of an object"),
        (&["--exclude-namespace=a_b"], "--exclude-namespace: \"a_b\""),
        (&["--linkerd-namespace="], "--linkerd-namespace: \"\""),
        (&["--namespace-selector=a b"], "--namespace-selector \"a b\": not a label selector"),
        (&["--revision=a"], "--revision needs --mesh istio"),
        (&["--mesh=istio", "-L=a"], "--linkerd-namespace needs --mesh linkerd"),
        (&["--mesh=istio", "--revision=A"], "--revision: \"A\""),
        (&["--mesh=istio", "--istio-release=2.0"], "--istio-release 2.0: unknown release"),
        (
            &["--mesh=istio", "--revision=a", "--enable-namespaces-by-default"],
            "needs the revision default",
        ),
        (&["--mesh=istio", "--always-inject-selector=a"], "needs --injector-policy disabled"),
    ] {
        let error = printed(flags).expect_err("must be refused");
        assert!(error.contains(problem) && !error.contains('\n'), "{flags:?}: {error}");
    }
}
