//! `Explain`: what the rules read and said, for both meshes.

use std::sync::Arc;

use injectd::{
    grpc::v1::{
        ExplainRequest, ExplainResponse, InjectRequest, Layer, NamespaceAnnotations, Rule,
        RuleResult, Verdict, injector_client::InjectorClient,
    },
    server::Limits,
};
use injectd_profiles::{Profile, Profiles};
use injectd_telemetry::readiness::Readiness;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::server::{channel, services_of};

fn linkerd() -> Profiles {
    Profile::Linkerd(Arc::new(injectd_testkit::injector())).into()
}

fn istio() -> Profiles {
    Profile::Istio(Arc::new(injectd_testkit::istio::injector())).into()
}

fn request(object: &Value, annotations: &[(&str, &str)]) -> InjectRequest {
    let annotations = annotations.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
    InjectRequest {
        uid: "u1".to_owned(),
        namespace: "shop".to_owned(),
        kind: "Pod".to_owned(),
        object: object.to_string().into(),
        namespace_annotations: Some(NamespaceAnnotations {
            annotations: annotations.collect(),
            ..NamespaceAnnotations::default()
        }),
        ..InjectRequest::default()
    }
}

async fn explain(profiles: Profiles, request: InjectRequest) -> Result<ExplainResponse, Status> {
    let services = services_of(profiles, Readiness::default(), &Limits::default());
    let mut client = InjectorClient::new(channel(services).await);
    let request = ExplainRequest { request: Some(request) };
    client.explain(request).await.map(tonic::Response::into_inner)
}

const INJECT: &str = "linkerd.io/inject";

#[tokio::test]
async fn the_rules_of_linkerd_name_what_they_read() {
    let object = json!({
        "metadata": {"annotations": {"config.linkerd.io/proxy-log-level": "debug",
            "config.linkerd.io/proxy-uid": "x"}},
        "spec": {"containers": [{"name": "a", "image": "example.com/linkerd/proxy:1"}]},
    });
    let found = explain(linkerd(), request(&object, &[(INJECT, "enabled")])).await;
    let found = found.expect("a response");
    assert_eq!((&*found.uid, &*found.mesh, found.verdict()), ("u1", "linkerd", Verdict::Injected));
    let rule = found.rules.iter().find(|rule| rule.name == "annotation").expect("a rule");
    assert_eq!(rule.result(), RuleResult::Injects);
    let read: Vec<_> = rule.read.iter().map(|read| (read.layer(), read.value.as_deref())).collect();
    assert_eq!(read, [(Layer::Namespace, Some("enabled")), (Layer::Pod, None)]);
    let setting =
        found.settings.iter().find(|setting| setting.name == "proxy.logLevel").expect("a setting");
    assert_eq!((&*setting.value, setting.origin()), ("debug", Layer::Pod));
    assert_eq!(setting.annotation, "config.linkerd.io/proxy-log-level");
    assert_eq!(found.ignored[0].key, "config.linkerd.io/proxy-uid");
    assert_eq!(
        (&*found.sidecars[0].product, found.sidecars[0].recognized),
        ("Linkerd's proxy", false)
    );
    assert!(found.advice.starts_with("Remove container a"), "{}", found.advice);
}

#[tokio::test]
async fn one_rule_of_istio_decides() {
    let object = json!({
        "metadata": {"labels": {"sidecar.istio.io/inject": "false"}},
        "spec": {"containers": [{"name": "a"}]},
    });
    let found = explain(istio(), request(&object, &[])).await.expect("a response");
    assert_eq!((&*found.mesh, found.verdict()), ("istio", Verdict::Skipped));
    let results: Vec<_> = found.rules.iter().map(Rule::result).collect();
    assert_eq!(results, {
        use RuleResult::{NotAsked, Passes, Skips};
        [Passes, Passes, Skips, NotAsked, NotAsked]
    });
    assert_eq!(found.rules[2].reason, found.skips[0].reason);
}

/// A template that pastes a value, as those of Istio 1.19 to 1.31 do.
const PASTES: &str = "
policy: enabled
templates:
  sidecar: |
    spec:
      containers:
      - name: istio-proxy
        args: [{{ annotation .ObjectMeta `sidecar.istio.io/logLevel` `warning` }}]
";

#[tokio::test]
async fn values_that_change_other_fields_are_named_with_templates_and_modes() {
    let injector = injectd_testkit::istio::injector_of(PASTES, "{}", "");
    let profiles = Profiles::from(Profile::Istio(Arc::new(injector)));
    let pod = |level: &str| {
        json!({
            "metadata": {"annotations": {"sidecar.istio.io/logLevel": level}},
            "spec": {"containers": [{"name": "a"}]},
        })
    };
    let found = explain(profiles.clone(), request(&pod("a, b"), &[])).await.expect("a response");
    let tainted = found.tainted.expect("a tainted value");
    let value = &tainted.values[0];
    assert_eq!(value.value, "annotation sidecar.istio.io/logLevel");
    assert_eq!(value.templates, ["sidecar"]);
    let modes: Vec<_> = tainted.modes.iter().map(|mode| (&*mode.mode, mode.in_use)).collect();
    assert_eq!(modes, [("off", false), ("warn", true), ("deny", false)]);
    let denied = &tainted.modes[2].outcome;
    assert!(denied.starts_with("denied: annotation sidecar.istio.io/logLevel"), "{denied}");
    let plain = explain(profiles, request(&pod("debug"), &[])).await.expect("a response");
    assert_eq!(plain.tainted, None);
}

/// Inject answers a denial with a status.
#[tokio::test]
async fn a_denial_is_part_of_the_response() {
    let object = json!({"spec": {"containers": "many"}});
    let found = explain(istio(), request(&object, &[])).await.expect("a response");
    let denial = found.denial.as_deref().unwrap_or_default();
    assert!(denial.starts_with("json: cannot unmarshal string"), "{denial}");
    assert_eq!(found.verdict(), Verdict::Skipped);
}

#[tokio::test]
async fn explain_and_inject_have_the_same_verdict() {
    for (spec, annotations) in [
        (json!({"containers": []}), &[(INJECT, "enabled")][..]),
        (json!({"containers": []}), &[]),
        (json!({"hostNetwork": true}), &[(INJECT, "enabled")]),
        (json!({"containers": [{"ports": [{"containerPort": 3306}]}]}), &[]),
    ] {
        let request = request(&json!({"spec": spec}), annotations);
        let services = services_of(linkerd(), Readiness::default(), &Limits::default());
        let mut client = InjectorClient::new(channel(services).await);
        let injected = client.inject(request.clone()).await.expect("a response").into_inner();
        let explained = explain(linkerd(), request).await.expect("a response");
        assert_eq!(explained.verdict(), injected.verdict(), "{spec}");
        assert_eq!(explained.skips, injected.skips, "{spec}");
    }
}

#[tokio::test]
async fn a_field_that_is_not_valid_is_named() {
    let services = services_of(linkerd(), Readiness::default(), &Limits::default());
    let mut client = InjectorClient::new(channel(services).await);
    let status = client.explain(ExplainRequest::default()).await.expect_err("no request");
    assert_eq!(status.code(), Code::InvalidArgument);
    let invalid = InjectRequest { namespace: "A b".to_owned(), ..request(&json!({}), &[]) };
    let status = explain(linkerd(), invalid).await.expect_err("no namespace");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
}
