use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    explain::{Explanation, Layer, RuleResult},
    injector::Injector,
    linkerd::{
        snapshot::{Config, Snapshot},
        trust_roots::EXAMPLE_TRUST_ROOTS,
        values::DEFAULT_VALUES,
    },
    lookups::CallerFacts,
    patch::PatchBuffer,
    review,
    standalone::Standalone,
};

/// Explains the answer for an object in a namespace with these annotations.
fn explain(values: &str, object: &Value, namespace: &[(String, String)]) -> Explanation {
    let config = Config {
        values,
        trust_roots: EXAMPLE_TRUST_ROOTS,
        control_plane_namespace: "linkerd",
        fallback_release: None,
    };
    let snapshot = Snapshot::new(config, 1).expect("the values must be valid");
    let injector = Injector::new(snapshot, Standalone::annotated(namespace.iter().cloned()));
    let request = json!({"uid": "1", "kind": {"kind": object["kind"]}, "namespace": "shop", "object": object});
    let body = json!({ "request": request }).to_string();
    let request = review::decode(body.as_bytes()).expect("a review");
    let mut patch = PatchBuffer::json();
    let facts = CallerFacts::default();
    let explained = injector.explain(&request, object, facts, &mut patch).now_or_never();
    explained.expect("nothing to wait for").expect("an explanation")
}

fn text(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn pod(annotations: &Value, spec: &Value) -> Value {
    json!({"kind": "Pod", "metadata": {"name": "web", "annotations": annotations}, "spec": spec})
}

const ENABLED: &str = "linkerd.io/inject";

#[test]
fn each_rule_names_what_it_read() {
    let pod = pod(
        &json!({ENABLED: "disabled"}),
        &json!({"hostNetwork": true, "containers": [
            {"name": "linkerd-proxy", "image": "a:1"},
        ]}),
    );
    let found = explain(DEFAULT_VALUES, &pod, &text(&[(ENABLED, "enabled")]));
    assert_eq!(found.verdict, "skipped");
    let rules: Vec<_> = found.findings.rules.iter().map(|it| (it.rule, it.result)).collect();
    assert_eq!(
        rules,
        [
            ("kind", RuleResult::Passes),
            ("hostNetwork", RuleResult::Skips),
            ("sidecar", RuleResult::Skips),
            ("annotation", RuleResult::Skips),
            ("token", RuleResult::Passes),
        ]
    );
    let read: Vec<_> = found.findings.rules[3].read.iter().collect();
    assert_eq!((read[0].layer, read[0].value.as_deref()), (Layer::Namespace, Some("enabled")));
    assert_eq!((read[1].layer, read[1].value.as_deref()), (Layer::Pod, Some("disabled")));
    assert!(found.findings.advice.starts_with("Linkerd cannot inject pods with hostNetwork"));
}

#[test]
fn a_setting_has_the_origin_of_its_value() {
    let pod = pod(
        &json!({"config.linkerd.io/proxy-cpu-request": "1m", "config.linkerd.io/proxy-uid": "x"}),
        &json!({"containers": [{"name": "a", "ports": [{"containerPort": 3306}]}]}),
    );
    let namespace = [(ENABLED, "ingress"), ("config.linkerd.io/proxy-log-level", "debug")];
    let found = explain(DEFAULT_VALUES, &pod, &text(&namespace));
    assert!(found.injects());
    let setting = |name: &str| {
        let mut settings = found.findings.settings.iter();
        let setting = settings.find(|setting| setting.name == name).expect(name);
        (&*setting.value, setting.origin, setting.annotation.as_deref())
    };
    let of_pod = (Layer::Pod, Some("config.linkerd.io/proxy-cpu-request"));
    assert_eq!(setting("proxy.resources.cpu.request"), ("1m", of_pod.0, of_pod.1));
    let key = Some("config.linkerd.io/proxy-log-level");
    assert_eq!(setting("proxy.logLevel"), ("debug", Layer::Namespace, key));
    assert_eq!(setting("proxy.isIngress"), ("true", Layer::Namespace, Some(ENABLED)));
    assert_eq!(setting("proxy.uid"), ("2102", Layer::Configuration, None));
    assert_eq!(setting("proxy.opaquePorts"), ("3306", Layer::Configuration, None));
}

#[test]
fn what_has_no_effect_says_why() {
    let labels = json!({ENABLED: "enabled"});
    let mut pod = pod(
        &json!({
            ENABLED: "enabled",
            "config.linkerd.io/proxy-uid": "x",
            "config.linkerd.io/proxy-log-levle": "debug",
            "config.linkerd.io/init-image": "old",
            "config.linkerd.io/admin-port": "4000",
            "linkerd.io/injcet": "enabled",
            "example.com/any": "",
        }),
        &json!({"containers": [{"name": "a"}]}),
    );
    pod["metadata"]["labels"] = labels;
    let namespace =
        [("config.linkerd.io/enable-gateway", "true"), ("config.linkerd.io/admin-port", "5000")];
    let found = explain(DEFAULT_VALUES, &pod, &text(&namespace));
    let ignored: Vec<_> =
        found.findings.ignored.iter().map(|it| (it.layer, &*it.key, &*it.text)).collect();
    let (pod, namespace) = (Some(Layer::Pod), Some(Layer::Namespace));
    assert_eq!(
        ignored,
        [
            (pod, "config.linkerd.io/proxy-uid", "\"x\" is not a decimal integer; ignored"),
            (
                pod,
                "config.linkerd.io/proxy-log-levle",
                "the injector does not know it; did you mean config.linkerd.io/proxy-log-level?"
            ),
            (pod, "config.linkerd.io/init-image", "Linkerd edge-26.8.3 does not read it"),
            (pod, "linkerd.io/injcet", "nothing reads it; did you mean linkerd.io/inject?"),
            (pod, ENABLED, "is a label; Linkerd reads the annotation"),
            (
                namespace,
                "config.linkerd.io/enable-gateway",
                "pods do not inherit it from their namespace; set it on the pod"
            ),
            (namespace, "config.linkerd.io/admin-port", "the pod's own annotation wins"),
        ]
    );
}

#[test]
fn a_sidecar_of_another_registry_is_named() {
    let spec = json!({"containers": [{"name": "mesh", "image": "example.com/linkerd/proxy:1"}]});
    let found = explain(DEFAULT_VALUES, &pod(&json!({ENABLED: "enabled"}), &spec), &[]);
    assert!(found.injects());
    assert_eq!(found.findings.sidecars[0].product, "Linkerd's proxy");
    assert!(found.findings.advice.starts_with("Remove container mesh"), "{found:?}");
}

fn words() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "enabled", "disabled", "ingress", "true", "Enabled", " "])
}

fn containers() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["app", "linkerd-proxy", "linkerd-init", "istio-proxy"]);
    let image = prop::sample::select(vec![
        "app:1",
        "cr.l5d.io/linkerd/proxy:1",
        "gcr.io/istio-release/proxy_init:1",
        "example.com/linkerd/proxy:1",
    ]);
    let mount =
        prop::sample::select(vec!["/data", "/var/run/secrets/kubernetes.io/serviceaccount"]);
    let container = (name, image, mount).prop_map(|(name, image, mount)| {
        json!({"name": name, "image": image, "volumeMounts": [{"name": "m", "mountPath": mount}]})
    });
    prop::collection::vec(container, 0..3).prop_map(Value::from)
}

fn objects() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["Pod", "Deployment", "CronJob", "Service", "Other"]);
    let flag = || prop::option::of(any::<bool>());
    let spec = (flag(), flag(), containers(), containers()).prop_map(
        |(host_network, automount, init, containers)| {
            json!({
                "hostNetwork": host_network,
                "automountServiceAccountToken": automount,
                "initContainers": init,
                "containers": containers,
            })
        },
    );
    let overrides = prop::collection::btree_map(
        prop::sample::select(vec![
            "config.linkerd.io/proxy-uid",
            "config.linkerd.io/proxy-cpu-limit",
            "config.linkerd.io/enable-gateway",
            "config.linkerd.io/opaque-ports",
        ]),
        prop::sample::select(vec!["1", "100m", "x", "true", ""]),
        0..3,
    );
    (kind, spec, words(), overrides).prop_map(|(kind, spec, inject, overrides)| {
        let mut metadata = json!({"annotations": overrides});
        metadata["annotations"][ENABLED] = inject.into();
        let template = json!({"metadata": metadata, "spec": spec});
        match kind {
            "Pod" => json!({"kind": kind, "metadata": metadata, "spec": spec}),
            "CronJob" => {
                json!({"kind": kind, "spec": {"jobTemplate": {"spec": {"template": template}}}})
            }
            _ => json!({"kind": kind, "metadata": {"name": "a"}, "spec": {"template": template}}),
        }
    })
}

proptest! {
    /// The rules skip for exactly the reasons of the decision.
    #[test]
    fn explanation_and_decision_agree(
        object in objects(),
        namespace in words(),
        token_projection in any::<bool>(),
    ) {
        let values = format!(
            "{DEFAULT_VALUES}\nidentity: {{serviceAccountTokenProjection: {token_projection}}}\n"
        );
        let found = explain(&values, &object, &text(&[(ENABLED, namespace)]));
        let decided: Vec<_> = found.reasons.iter().map(|reason| reason.code).collect();
        let explained: Vec<_> =
            found.findings.rules.iter().filter_map(|rule| rule.reason).collect();
        prop_assert_eq!(&explained, &decided);
        let skips = |rule: &&crate::explain::Rule| rule.result == RuleResult::Skips;
        prop_assert_eq!(found.findings.rules.iter().filter(skips).count(), decided.len());
        let denies = found.findings.rules.iter().any(|rule| rule.result == RuleResult::Denies);
        prop_assert_eq!(denies, found.verdict == "denied");
        let injects = found.findings.rules.iter().any(|rule| rule.result == RuleResult::Injects);
        if found.injects() {
            prop_assert!(injects);
        }
        prop_assert!(!injects || decided.is_empty(), "{explained:?}");
    }
}
