//! Whose webhooks there are, and which of them is named if none is called.

use serde_json::{Value, json};

use super::*;
use crate::{Configurations, Labels, Request};

/// A configuration of one webhook with this client configuration.
fn one(labels: &Value, name: &str, client_config: &Value) -> Value {
    json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "c", "labels": labels},
        "webhooks": [{"name": name, "clientConfig": client_config}]})
}

fn service(name: &str, path: &str) -> Value {
    json!({"service": {"namespace": "mesh", "name": name, "path": path}})
}

fn url(url: &str) -> Value {
    json!({ "url": url })
}

/// Product, revision, and whether it is a guess.
fn found(configuration: &Value) -> Option<(Product, Option<String>, bool)> {
    let read = Configurations::read([configuration]).expect("a configuration");
    let injector = read.webhooks()[0].injector.clone();
    injector.map(|it| (it.product, it.revision, it.is_guess))
}

#[test]
fn a_webhook_is_known_by_what_it_leads_to() {
    let none = json!({});
    let istio =
        json!({"app": "sidecar-injector", "istio.io/rev": "canary", "istio.io/tag": "prod"});
    let linkerd = json!({"linkerd.io/control-plane-component": "proxy-injector"});
    let injectd = json!({"app.kubernetes.io/name": "injectd"});
    let canary = |is_guess| Some((Product::Istio, Some("canary".to_owned()), is_guess));
    let default = |is_guess| Some((Product::Istio, Some("default".to_owned()), is_guess));
    let of_linkerd = |is_guess| Some((Product::Linkerd, None, is_guess));
    let of_templates = |is_guess| Some((Product::Templates, None, is_guess));
    for (labels, name, client_config, expected) in [
        (&istio, "any.example.com", service("any", "/inject"), canary(false)),
        (&istio, "any.example.com", service("any", "/inject/cluster/c1/net/n1"), canary(false)),
        (&istio, "any.example.com", url("https://a:15017/inject/cluster/c1"), canary(true)),
        (&none, "any.example.com", service("istiod", "/inject"), default(false)),
        (&none, "any.example.com", service("istiod-canary", "/inject"), canary(false)),
        (&none, "any.example.com", service("any", "/istio/canary/inject"), canary(false)),
        (&none, "any.example.com", url("https://a/istio/canary/inject"), canary(true)),
        (&injectd, "any.example.com", service("any", "/inject"), default(false)),
        (&istio, "any.example.com", service("injectd", "/istio/default/inject"), default(false)),
        (&linkerd, "any.example.com", service("any", "/"), of_linkerd(false)),
        (&none, "any.example.com", service("linkerd-proxy-injector", "/"), of_linkerd(false)),
        (&none, "any.example.com", service("any", "/linkerd"), of_linkerd(false)),
        (&injectd, "any.example.com", service("any", "/"), of_linkerd(false)),
        (&injectd, "any.example.com", service("any", "/templates"), of_templates(false)),
        (&none, "any.example.com", service("injectd", "/templates"), of_templates(false)),
        (&none, "any.example.com", service("injectd-b", "/templates"), of_templates(false)),
        (&injectd, "any.example.com", url("https://a/templates"), of_templates(true)),
        (&none, "templates.injectd.dev", url("https://a/x"), of_templates(true)),
        (&none, "a.templates.sidecar-injector.injectd", url("https://a/x"), of_templates(true)),
        // Only the name is left: a guess.
        (&none, "linkerd-proxy-injector.linkerd.io", url("https://a/"), of_linkerd(true)),
        (&none, "rev.object.sidecar-injector.istio.io", url("https://a/x"), default(true)),
        // Others have their webhook at /inject as well.
        (&none, "any.example.com", service("any", "/inject"), None),
        (&none, "any.example.com", url("https://a/inject"), None),
        (&none, "any.example.com", service("any", "/istio/mutate"), None),
        (&none, "any.example.com", service("injectdb", "/templates"), None),
        (&none, "any.example.com", url("https://a/templates"), None),
        (&none, "any.example.com", service("vault-agent-injector-svc", "/mutate"), None),
    ] {
        let configuration = one(labels, name, &client_config);
        assert_eq!(found(&configuration), expected, "{configuration}");
    }
}

#[test]
fn validating_webhooks_inject_nothing() {
    let mut configuration = one(&json!({}), "a", &service("istiod", "/inject"));
    configuration["kind"] = "ValidatingWebhookConfiguration".into();
    assert_eq!(found(&configuration), None);
}

/// The webhooks of a revision or tag, as Istio's chart has them.
fn istio(revision: &str) -> Value {
    let absent = |key: &str| json!({"key": key, "operator": "DoesNotExist"});
    let is = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let off = json!({"key": "sidecar.istio.io/inject", "operator": "NotIn", "values": ["false"]});
    let (rev, injection) = ("istio.io/rev", "istio-injection");
    let mut webhooks = vec![
        ("rev.namespace", json!([is(rev, revision), absent(injection)]), json!([off])),
        ("rev.object", json!([absent(rev), absent(injection)]), json!([off, is(rev, revision)])),
    ];
    if revision == "default" {
        let asks = json!([is("sidecar.istio.io/inject", "true"), absent(rev)]);
        webhooks.push(("namespace", json!([is(injection, "enabled")]), json!([off])));
        webhooks.push(("object", json!([absent(injection), absent(rev)]), asks));
    }
    let webhooks = webhooks.into_iter().map(|(name, namespaces, objects)| {
        json!({"name": format!("{name}.sidecar-injector.istio.io"),
            "clientConfig": service("istiod", "/inject"),
            "namespaceSelector": {"matchExpressions": namespaces},
            "objectSelector": {"matchExpressions": objects},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"]}]})
    });
    json!({"kind": "MutatingWebhookConfiguration",
        "metadata": {"name": format!("istio-{revision}"), "labels": {"istio.io/rev": revision}},
        "webhooks": webhooks.collect::<Vec<_>>()})
}

fn labels_of(value: &Value) -> Labels {
    serde_json::from_value(value.clone()).expect("labels")
}

fn missed_by(configuration: &Value, namespace: &Value, pod: &Value) -> Option<Missed> {
    let read = Configurations::read([configuration]).expect("a configuration");
    let pod = json!({"metadata": {"labels": pod}, "spec": {}});
    let request = Request::creates_pod(&pod, "shop");
    let namespace = labels_of(namespace);
    let steps = read.walk(&request, Some(&namespace));
    missed(&steps, Product::Istio, &request, Some(&namespace))
}

#[test]
fn the_webhook_that_got_furthest_tells_why() {
    for (namespace, pod, text, advice) in [
        (
            json!({"istio-injection": "enabled"}),
            json!({"sidecar.istio.io/inject": "false"}),
            "namespace.sidecar-injector.istio.io: objectSelector: label sidecar.istio.io/inject must \
             not be \"false\"",
            "Remove the label sidecar.istio.io/inject=false from the pod template; then",
        ),
        (
            json!({"istio-injection": "disabled"}),
            json!({}),
            "istio-injection must be \"enabled\", but it is \"disabled\"",
            "Change the label istio-injection=disabled of the namespace to enabled; then",
        ),
        (
            json!({"istio.io/rev": "canary"}),
            json!({}),
            "no webhook serves the revision or tag canary of Istio, which the label istio.io/rev of \
             the namespace names; webhooks serve default",
            "Change the label istio.io/rev of the namespace, or install",
        ),
        (
            json!({}),
            json!({"istio.io/rev": "canary"}),
            "the label istio.io/rev of the pod template names",
            "Change the label istio.io/rev of the pod template, or install",
        ),
        (
            json!({}),
            json!({}),
            "neither the namespace nor the pod has a label that asks",
            "Label the namespace istio-injection=enabled, or label the pod template \
             istio.io/rev=default, or label the namespace istio.io/rev=default; then",
        ),
    ] {
        let missed = missed_by(&istio("default"), &namespace, &pod).expect("not called");
        assert!(missed.text.contains(text), "{}", missed.text);
        assert!(missed.advice.starts_with(advice), "{}", missed.advice);
        assert_eq!(missed.verdict, Verdict::NotCalled);
    }
    for (namespace, pod) in [
        (json!({"istio-injection": "enabled"}), json!({})),
        (json!({"istio.io/rev": "default"}), json!({})),
        (json!({}), json!({"sidecar.istio.io/inject": "true"})),
        (json!({}), json!({"istio.io/rev": "default"})),
    ] {
        assert_eq!(missed_by(&istio("default"), &namespace, &pod), None);
    }
}

#[test]
fn a_pod_with_a_proxy_of_its_own_needs_nothing() {
    let namespace = labels_of(&json!({}));
    let off = json!({"sidecar.istio.io/inject": "false"});
    let managed = json!({"gateway.istio.io/managed": "x", "sidecar.istio.io/inject": "false"});
    let proxy = json!([{"name": "istio-proxy"}]);
    for (labels, containers, is_own) in
        [(&off, &proxy, true), (&managed, &json!([]), true), (&off, &json!([]), false)]
    {
        let configuration = istio("default");
        let read = Configurations::read([&configuration]).expect("a configuration");
        let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let request = Request::creates_pod(&pod, "shop");
        let steps = read.walk(&request, Some(&namespace));
        let missed = missed(&steps, Product::Istio, &request, Some(&namespace));
        let advice = missed.expect("not called").advice;
        assert_eq!(advice.starts_with("Nothing: "), is_own, "{advice}");
    }
}

/// Whatever labels there are: who follows the advice about labels has the webhook called.
#[test]
fn advice_is_not_followed_already_and_helps() {
    let values = |key: &'static str, values: [Option<&'static str>; 4]| {
        values.map(|value| value.map(|value| (key, value)))
    };
    let injection =
        values("istio-injection", [None, Some("enabled"), Some("disabled"), Some("yes")]);
    let revision = values("istio.io/rev", [None, Some("default"), None, Some("default")]);
    let inject =
        values("sidecar.istio.io/inject", [None, Some("true"), Some("false"), Some("maybe")]);
    let object = |labels: [Option<(&str, &str)>; 2]| {
        let labels =
            labels.into_iter().flatten().map(|(key, value)| (key.to_owned(), json!(value)));
        Value::Object(labels.collect())
    };
    for of_injection in injection {
        for of_revision in revision {
            for of_inject in inject {
                let (mut namespace, mut pod) =
                    (object([of_injection, of_revision]), object([of_inject, None]));
                let Some(missed) = missed_by(&istio("default"), &namespace, &pod) else { continue };
                let first = missed.advice.split(", or ").next().unwrap_or_default().to_lowercase();
                let first = first.split(';').next().unwrap_or_default();
                for change in first.split(" and ") {
                    follow(change, &mut namespace, &mut pod);
                }
                let after = missed_by(&istio("default"), &namespace, &pod);
                assert_eq!(after, None, "{} did not help", missed.advice);
            }
        }
    }
}

/// Changes the labels as a sentence says.
fn follow(change: &str, namespace: &mut Value, pod: &mut Value) {
    let words: Vec<_> = change.split(' ').collect();
    let labels = if change.contains("the namespace") { namespace } else { pod };
    let pair = words.iter().find_map(|word| word.split_once('='));
    let (key, value) = pair.expect("a label");
    match (words[0], words.last()) {
        ("label", _) => labels[key] = value.into(),
        ("change", Some(to)) => labels[key] = (*to).into(),
        ("remove", _) => {
            labels.as_object_mut().and_then(|labels| labels.remove(key)).expect("the label");
        }
        _ => panic!("{change}"),
    }
}

#[test]
fn what_asks_is_told() {
    let asks = |product, pod: Value, namespace: Value| asks_for(product, &pod, &namespace);
    let pod = |kind: &str, value: Value| json!({"metadata": {kind: value}, "spec": {}});
    let (none, linkerd) = (json!({}), "linkerd.io/inject");
    let enabled = || json!({"metadata": {"annotations": {linkerd: "enabled"}}});
    let annotated = |value: &str| pod("annotations", json!({linkerd: value}));
    assert!(asks(Product::Linkerd, none.clone(), enabled()).is_some());
    assert_eq!(asks(Product::Linkerd, none.clone(), Value::Null), None);
    assert_eq!(asks(Product::Linkerd, annotated("disabled"), enabled()), None);
    assert!(asks(Product::Linkerd, annotated("ingress"), Value::Null).is_some());
    let component = pod("labels", json!({"linkerd.io/control-plane-component": "identity"}));
    assert_eq!(asks(Product::Linkerd, component, enabled()), None);
    let left_out =
        json!({"metadata": {"annotations": {linkerd: "enabled"}, "name": "kube-system"}});
    assert_eq!(asks(Product::Linkerd, none.clone(), left_out), None);
    let on_host = json!({"spec": {"hostNetwork": true}});
    assert_eq!(asks(Product::Linkerd, on_host, enabled()), None);

    let labelled = |labels: Value| json!({"metadata": {"labels": labels}});
    let enabled = || labelled(json!({"istio-injection": "enabled"}));
    let inject = |value: &str| pod("labels", json!({"sidecar.istio.io/inject": value}));
    assert!(asks(Product::Istio, none.clone(), enabled()).is_some());
    assert_eq!(asks(Product::Istio, inject("false"), enabled()), None);
    assert!(asks(Product::Istio, inject("true"), Value::Null).is_some());
    let disabled = labelled(json!({"istio-injection": "disabled"}));
    assert_eq!(asks(Product::Istio, inject("true"), disabled), None);
    let tagged = labelled(json!({"istio.io/rev": "prod"}));
    let text = asks(Product::Istio, none, tagged).expect("asks");
    assert_eq!(text, "the label istio.io/rev=prod of the namespace");
}
