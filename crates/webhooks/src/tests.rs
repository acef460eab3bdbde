use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn configuration(name: &str, webhook: &Value) -> Value {
    let mut webhook = webhook.clone();
    if webhook.get("rules").is_none() {
        webhook["rules"] = json!([{
            "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
        }]);
    }
    webhook["name"] = "w".into();
    json!({
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    })
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The verdict and the reason for a pod in a namespace.
fn judged(webhook: &Value, pod: &Value, namespace: Option<&Labels>) -> (Verdict, String) {
    let configurations = Configurations::read([&configuration("c", webhook)]).expect("valid");
    let steps = configurations.walk(&Request::creates_pod(pod, "shop"), namespace);
    (steps[0].verdict, steps[0].reason.to_string())
}

#[test]
fn webhooks_are_considered_by_the_names_of_their_configurations() {
    let one = configuration("b", &json!({}));
    let mut other = configuration("a", &json!({}));
    other["webhooks"] = json!([{"name": "z"}, {"name": "y"}]);
    let mut validating = configuration("0", &json!({}));
    validating["kind"] = "ValidatingWebhookConfiguration".into();
    let read = Configurations::read([&validating, &one, &other]).expect("valid");
    let names: Vec<_> = read.webhooks().iter().map(|it| (&*it.configuration, &*it.name)).collect();
    assert_eq!(names, [("a", "z"), ("a", "y"), ("b", "w"), ("0", "w")]);
}

#[test]
fn a_selector_names_the_requirement_that_is_not_met() {
    let webhook = json!({"namespaceSelector": {
        "matchLabels": {"istio-injection": "enabled"},
        "matchExpressions": [{"key": "istio.io/rev", "operator": "DoesNotExist"}],
    }});
    let pod = json!({});
    let judged = |pairs: &[(&str, &str)]| judged(&webhook, &pod, Some(&labels(pairs)));
    assert_eq!(judged(&[("istio-injection", "enabled")]).0, Verdict::Called);
    let text = "namespaceSelector: label istio-injection must be \"enabled\", but it is absent";
    assert_eq!(judged(&[]), (Verdict::NotCalled, text.to_owned()));
    let text = "namespaceSelector: label istio.io/rev must be absent, but it is \"a\"";
    let found = judged(&[("istio-injection", "enabled"), ("istio.io/rev", "a")]);
    assert_eq!(found, (Verdict::NotCalled, text.to_owned()));
}

#[test]
fn without_labels_of_the_namespace_only_the_rest_can_be_told() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let webhook = json!({"namespaceSelector": selector});
    assert_eq!(judged(&webhook, &json!({}), None).0, Verdict::Unknown);
    let webhook = json!({"namespaceSelector": selector, "objectSelector": selector});
    assert_eq!(judged(&webhook, &json!({}), None).0, Verdict::NotCalled);
}

#[test]
fn conditions_follow_the_failure_policy() {
    let pod = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"priority": 7}});
    for (policy, conditions, verdict) in [
        ("Fail", &["object.metadata.labels.app == 'web'"][..], Verdict::Called),
        ("Fail", &["object.spec.priority + 1 == 8"], Verdict::Called),
        ("Fail", &["!has(object.metadata.annotations)"], Verdict::Called),
        (
            "Fail",
            &["request.operation == 'CREATE' && request.namespace == 'shop'"],
            Verdict::Called,
        ),
        ("Fail", &["object.metadata.labels.app in ['a', 'b']"], Verdict::NotCalled),
        ("Fail", &["object.metadata.annotations.a == 'b'"], Verdict::Rejected),
        ("Ignore", &["object.metadata.annotations.a == 'b'"], Verdict::NotCalled),
        ("Fail", &["object.metadata.annotations.a == 'b'", "false"], Verdict::NotCalled),
        ("Fail", &["object.metadata.labels.app.startsWith('w')"], Verdict::Called),
        ("Fail", &["object.metadata.labels.app.matches('^w.b$')"], Verdict::Called),
        ("Fail", &["object.metadata.labels.all(key, key != 'x')"], Verdict::Called),
        ("Fail", &["object.metadata.labels.app.lowerAscii() == 'web'"], Verdict::Called),
        ("Fail", &["oldObject == null"], Verdict::Called),
        ("Fail", &["object.?metadata.?labels.?app.orValue('') == 'web'"], Verdict::Called),
        (
            "Fail",
            &["authorizer.group('').resource('pods').check('get').allowed()"],
            Verdict::Unknown,
        ),
        ("Fail", &["quantity('1').isInteger()"], Verdict::Called),
        ("Fail", &["request.userInfo.username != 'a'"], Verdict::Unknown),
        ("Fail", &["object.spec.priority"], Verdict::Rejected),
        ("Fail", &["1 +"], Verdict::Unknown),
    ] {
        let named = conditions.iter().enumerate();
        let named: Vec<_> =
            named.map(|(i, text)| json!({"name": format!("c{i}"), "expression": text})).collect();
        let webhook = json!({"failurePolicy": policy, "matchConditions": named});
        let found = judged(&webhook, &pod, Some(&Labels::new()));
        assert_eq!(found.0, verdict, "{policy} {conditions:?}: {}", found.1);
    }
}

#[test]
fn rules_have_wildcards_subresources_and_scopes() {
    let pod = json!({});
    let rule = |resources: &[&str], scope: &str| {
        json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
            "resources": resources, "scope": scope}]})
    };
    for (resources, scope, subresource, is_called) in [
        (&["*"][..], "*", "", true),
        (&["*"], "*", "status", false),
        (&["*/*"], "Namespaced", "status", true),
        (&["pods/*"], "*", "", true),
        (&["pods"], "Cluster", "", false),
        (&["pods/status"], "*", "status", true),
        (&["pods/status"], "*", "", false),
        (&["*/status", "services"], "*", "status", true),
    ] {
        let webhook = configuration("c", &rule(resources, scope));
        let read = Configurations::read([&webhook]).expect("valid");
        let request = Request { subresource, ..Request::creates_pod(&pod, "shop") };
        let verdict = read.walk(&request, Some(&Labels::new()))[0].verdict;
        assert_eq!(verdict == Verdict::Called, is_called, "{resources:?} {scope} {subresource}");
    }
}

#[test]
fn the_rule_that_comes_closest_is_named() {
    let webhook = json!({"rules": [
        {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["x"]},
        {"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]},
    ]});
    let text = "rules: operations \"UPDATE\" do not have CREATE of pods of v1";
    assert_eq!(judged(&webhook, &json!({}), None), (Verdict::NotCalled, text.to_owned()));
}

#[test]
fn an_equivalent_resource_matches_unless_the_policy_is_exact() {
    let rules = json!([{"operations": ["*"], "apiGroups": ["events.k8s.io"],
        "apiVersions": ["v1"], "resources": ["events"]}]);
    let event = json!({});
    for (policy, verdict) in [("Equivalent", Verdict::Called), ("Exact", Verdict::NotCalled)] {
        let webhook = configuration("c", &json!({"matchPolicy": policy, "rules": rules}));
        let read = Configurations::read([&webhook]).expect("valid");
        let resource = Resource::new("", "v1", "events");
        let request = Request { resource, kind: "Event", ..Request::creates_pod(&event, "a") };
        assert_eq!(read.walk(&request, Some(&Labels::new()))[0].verdict, verdict);
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    let invalid = configuration("c", &json!({"objectSelector": selector}));
    let error = Configurations::read([&invalid]).expect_err("invalid").to_string();
    let text = "webhook configuration c, webhook w, objectSelector: operator \"Like\" is none of In, \
                NotIn, Exists and DoesNotExist";
    assert_eq!(error, text);
    let error = Configurations::read([&json!({"kind": "Pod"})]).expect_err("a pod");
    assert!(error.to_string().starts_with("\"Pod\" is neither"));
    let invalid = configuration("c", &json!({"timeoutSeconds": "x"}));
    let error = Configurations::read([&invalid]).expect_err("invalid").to_string();
    assert!(error.starts_with("webhook configuration c: "), "{error}");
}

fn trees() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec!["a", "*", "In", "Cluster", "Fail", "object.a", "((", ""]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "rules",
        "operations",
        "resources",
        "namespaceSelector",
        "objectSelector",
        "matchLabels",
        "matchExpressions",
        "key",
        "operator",
        "values",
        "matchConditions",
        "expression",
        "name",
        "clientConfig",
    ]);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keys.clone(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_panics(webhook in trees(), pod in trees()) {
        let configuration = json!({
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [webhook],
        });
        if let Ok(read) = Configurations::read([&configuration]) {
            let steps = read.walk(&Request::creates_pod(&pod, "shop"), None);
            prop_assert_eq!(steps.len(), read.webhooks().len());
        }
    }
}
