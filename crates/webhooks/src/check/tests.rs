use serde_json::{Value, json};

use super::{Severity, check};

mod advice;
mod failing;
mod lists;
mod many;
mod nothing;
mod oracle;
mod search;

/// A mutating configuration without findings.
fn good() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "one"},
        "webhooks": [{
            "name": "sidecars.example.com",
            "clientConfig": {"service": {"namespace": "mesh", "name": "injector", "path": "/inject"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"], "scope": "Namespaced"}],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })
}

/// The findings with one value changed: severity, field, problem.
fn with(pointer: &str, value: Value) -> Vec<(Severity, String, String)> {
    let mut object = good();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    object.pointer_mut(parent).expect("a parent")[key] = value;
    found(&[object])
}

fn found(objects: &[Value]) -> Vec<(Severity, String, String)> {
    check(objects).into_iter().map(|it| (it.severity, it.field, it.problem)).collect()
}

#[test]
fn a_good_configuration_has_no_findings() {
    assert_eq!(found(&[good()]), []);
    assert_eq!(found(&[json!({"kind": "Pod"})]), []);
    let mut validating = good();
    validating["kind"] = "ValidatingWebhookConfiguration".into();
    assert_eq!(found(&[validating]), []);
}

#[test]
fn what_the_api_server_rejects_is_an_error() {
    let rule = |key: &str, value: Value| {
        let mut rule = good()["webhooks"][0]["rules"][0].take();
        rule[key] = value;
        json!([rule])
    };
    let url = |url: &str| json!({"url": url});
    let service = |key: &str, value: Value| {
        let mut config = good()["webhooks"][0]["clientConfig"].take();
        config["service"][key] = value;
        config
    };
    let conditions = |count: usize| {
        let all = (0..count).map(|i| json!({"name": format!("c{i}"), "expression": "true"}));
        Value::Array(all.collect())
    };
    let condition = |name: &str, text: &str| json!([{"name": name, "expression": text}]);
    for (field, value, problem) in [
        ("name", json!("injector"), "fully qualified"),
        ("name", json!("In.example.com"), "fully qualified"),
        ("name", Value::Null, "missing"),
        ("clientConfig", json!({}), "neither url nor service"),
        ("clientConfig", json!({"url": "https://a.b/", "service": {}}), "both set"),
        ("clientConfig", url("http://a.b/c"), "https"),
        ("clientConfig", url("https://u:p@a.b/c"), "user info"),
        ("clientConfig", url("https://a.b/c?d"), "query"),
        ("clientConfig", url("https://a.b/c#d"), "fragment"),
        ("clientConfig", url("https:///c"), "host"),
        ("clientConfig", url("https://a.b:x/c"), "HOST[:PORT]"),
        (
            "clientConfig",
            json!({"service": {"namespace": "a", "name": "b", "prot": 1}}),
            "this field",
        ),
        ("clientConfig", service("port", json!(0)), "not a port"),
        ("clientConfig", service("name", json!("")), "required"),
        ("clientConfig", service("path", json!("a")), "not a path"),
        ("clientConfig", service("path", json!("/a//b")), "not a path"),
        ("clientConfig", service("path", json!("/Inject")), "not a path"),
        ("clientConfig", service("port", json!("443")), "found \"443\""),
        ("rules", rule("operations", json!(["PATCH"])), "not known"),
        ("rules", rule("operations", json!(["*", "CREATE"])), "beside others"),
        ("rules", rule("apiGroups", json!([])), "required"),
        ("rules", rule("resources", json!(["*/*", "pods"])), "beside others"),
        ("rules", rule("resources", json!(["pods/*", "pods/exec"])), "includes"),
        ("rules", rule("scope", json!("Both")), "not known"),
        ("failurePolicy", json!("Retry"), "not known"),
        ("matchPolicy", json!("exact"), "not known"),
        ("reinvocationPolicy", json!("Always"), "not known"),
        ("sideEffects", json!("Some"), "not allowed"),
        ("sideEffects", json!("Unknown"), "not allowed"),
        ("sideEffects", Value::Null, "required"),
        ("timeoutSeconds", json!(31), "out of range"),
        ("timeoutSeconds", json!(0), "out of range"),
        ("admissionReviewVersions", json!(["v2"]), "none of"),
        ("admissionReviewVersions", json!([]), "required"),
        ("admissionReviewVersions", json!(["v1", "v1"]), "twice"),
        ("matchConditions", conditions(65), "64 are allowed"),
        ("matchConditions", condition("a", "1 +"), "compile"),
        ("matchConditions", condition("", "true"), "missing"),
        ("matchConditions", condition("a", " "), "missing"),
        ("matchConditions", condition("a b", "true"), "qualified"),
        ("matchConditions", condition("a", "object.metadata.name"), "bool"),
        ("namespaceSelector", json!({"matchExpressions": [{"key": "a", "operator": "Is"}]}), "Is"),
        ("objectSelector", json!({"matchLabels": {"a": "b c"}}), "not a label value"),
        ("timeoutSeconds", json!("5"), "found \"5\""),
        ("caBundle", json!("x"), "does not have this field"),
    ] {
        let all = with(&format!("/webhooks/0/{field}"), value.clone());
        let is_there = all
            .iter()
            .any(|(severity, _, text)| *severity == Severity::Error && text.contains(problem));
        assert!(is_there, "{field} {value}: {all:?}");
    }
    let all = with("/webhooks/0/clientConfig", url("https://a.b:99999/c"));
    assert_eq!((all[0].0, &*all[0].1), (Severity::Danger, "clientConfig.url"));
    let all = with("/webhooks/0/matchConditions", conditions(64));
    assert_eq!(all, []);
    assert!(
        with("/apiVersion", json!("admissionregistration.k8s.io/v1beta1"))[0].2.contains("1.22")
    );
}

#[test]
fn what_never_matches_or_matches_twice_is_named() {
    let rules = |rules: Value| with("/webhooks/0/rules", rules);
    let rule = |groups: &str, resources: &str, scope: &str| {
        json!({"apiGroups": [groups], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": [resources], "scope": scope})
    };
    for (value, problem) in [
        (json!([rule("apps", "pods", "*")]), "API group \"\""),
        (json!([rule("", "pods", "Cluster")]), "never of scope"),
        (json!([rule("", "Pods", "*")]), "lower case"),
        (json!([rule("", "pods", "*"), rule("", "pods", "Namespaced")]), "matches all that"),
        (json!([]), "never called"),
    ] {
        let all = rules(value);
        assert!(all.iter().any(|(_, _, text)| text.contains(problem)), "{problem}: {all:?}");
    }
    assert_eq!(rules(json!([rule("", "pods", "*"), rule("", "services", "*")])), []);
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
        {"key": "a", "operator": "NotIn", "values": ["b"]}]});
    let all = with("/webhooks/0/namespaceSelector", selector);
    assert_eq!((all[0].0, &*all[0].1), (Severity::Danger, "namespaceSelector"));
}

#[test]
fn fail_must_leave_out_kube_system_and_its_own_pods() {
    let fields = |selectors: [Value; 2]| {
        let mut object = good();
        let webhook = &mut object["webhooks"][0];
        webhook["failurePolicy"] = "Fail".into();
        let [namespaces, objects] = selectors;
        webhook["namespaceSelector"] = namespaces;
        webhook["objectSelector"] = objects;
        found(&[object]).into_iter().map(|(_, _, problem)| problem).collect::<Vec<_>>()
    };
    let all = fields([json!({}), json!({})]);
    assert!(all[0].contains("kube-system") && all[1].contains("own pods in mesh"), "{all:?}");
    let not_in = |values: Value| {
        json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": values}]})
    };
    assert_eq!(fields([not_in(json!(["kube-system", "mesh"])), json!({})]), [""; 0]);
    assert_eq!(fields([json!({"matchLabels": {"inject": "yes"}}), json!({})]), [""; 0]);
    let own = json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]});
    assert_eq!(fields([not_in(json!(["kube-system"])), own]), [""; 0]);
}

#[test]
fn webhooks_that_meet_are_named() {
    let named = |configuration: &str, name: &str, labels: Value| {
        let mut object = good();
        object["metadata"]["name"] = configuration.into();
        object["webhooks"][0]["name"] = name.into();
        object["webhooks"][0]["matchConditions"] = json!([{"name": "a", "expression": "true"}]);
        object["webhooks"][0]["objectSelector"] = json!({"matchLabels": labels});
        object
    };
    let istio = |name, rev| named(name, "rev.sidecar-injector.istio.io", json!({"rev": rev}));
    let twice = found(&[istio("a", "x"), istio("b", "x")]);
    assert!(twice[0].2.contains("injected twice"), "{twice:?}");
    assert_eq!(found(&[istio("a", "x"), istio("b", "y")]), []);
    let own = named("b", "rev.sidecar-injector.injectd", json!({"rev": "x"}));
    assert!(found(&[istio("a", "x"), own])[0].2.contains("injected twice"));
    let [proxy, tap] = ["linkerd-proxy-injector.linkerd.io", "tap-injector.linkerd.io"]
        .map(|name| named(name, name, json!({})));
    let all = found(&[proxy, tap]);
    assert!(all.iter().all(|(severity, ..)| *severity == Severity::Suggestion), "{all:?}");
    let vault = named("c", "vault.hashicorp.com", json!({}));
    let later = found(&[istio("a", "x"), vault.clone()]);
    assert_eq!((later[0].0, &*later[0].1), (Severity::Suggestion, "reinvocationPolicy"));
    let mut reinvoked = istio("a", "x");
    reinvoked["webhooks"][0]["reinvocationPolicy"] = "IfNeeded".into();
    assert_eq!(found(&[reinvoked, vault]), []);
}
