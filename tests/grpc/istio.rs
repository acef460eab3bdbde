//! The gRPC server with Istio's injector.

use injectd_profiles::{Profile, Profiles, Revisions};

use super::*;

fn pod() -> InjectRequest {
    let labels = json!({"app": "shop"});
    let object = json!({"metadata": {"name": "web", "labels": labels},
        "spec": {"containers": [{"name": "web"}]}});
    InjectRequest {
        uid: "u".to_owned(),
        namespace: "shop".to_owned(),
        kind: "Pod".to_owned(),
        object: object.to_string().into(),
        injector: "istio".to_owned(),
        ..InjectRequest::default()
    }
}

async fn inject(request: InjectRequest) -> Result<InjectResponse, Status> {
    inject_by(Profile::Istio(Arc::new(injectd_testkit::istio::injector())), request).await
}

async fn inject_by(
    profiles: impl Into<Profiles>,
    request: InjectRequest,
) -> Result<InjectResponse, Status> {
    let services = server::services_of(profiles, Readiness::default(), &Limits::default());
    let mut client = InjectorClient::new(server::channel(services).await);
    let answered = timeout(PATIENCE, client.inject(request)).await;
    answered.expect("must not hang").map(tonic::Response::into_inner)
}

#[tokio::test]
async fn a_pod_gets_istios_sidecar() {
    for injector in ["istio", ""] {
        let request = InjectRequest { injector: injector.to_owned(), ..pod() };
        let response = inject(request).await.expect("a response");
        assert_eq!((response.uid.as_str(), response.verdict()), ("u", Verdict::Injected));
        assert_eq!(response.release, "1.30.3");
        let patch = String::from_utf8(response.patch.to_vec()).expect("a patch must be text");
        for part in ["istio-proxy", "docker.io/istio/proxyv2:1.30.3", "canonical-name"] {
            assert!(patch.contains(part), "{patch}");
        }
    }
}

#[tokio::test]
async fn a_skipped_pod_has_its_reason() {
    let request = InjectRequest { namespace: "kube-system".to_owned(), ..pod() };
    let response = inject(request).await.expect("a response");
    assert_eq!(response.verdict(), Verdict::Skipped);
    let reasons: Vec<_> = response.skips.iter().map(|skip| skip.reason.as_str()).collect();
    assert_eq!(reasons, ["system_namespace"]);
    assert!(response.patch.is_empty());
}

#[tokio::test]
async fn another_mesh_is_an_invalid_argument() {
    let request = InjectRequest { injector: "linkerd".to_owned(), ..pod() };
    let status = inject(request).await.expect_err("must be rejected");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let violations = status.get_details_bad_request().expect("details").field_violations;
    assert_eq!(violations[0].field, "injector");
    let expected = r#"is "linkerd"; this server has one injector: "istio""#;
    assert_eq!(violations[0].description, expected);
}

#[tokio::test]
async fn a_denied_pod_is_a_failed_precondition() {
    let object = json!({"spec": {"containers": "many"}}).to_string();
    let status = inject(InjectRequest { object: object.into(), ..pod() }).await;
    let status = status.expect_err("must be rejected");
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert!(status.message().starts_with("json: cannot unmarshal string"), "{status}");
}

#[tokio::test]
async fn a_request_names_its_mesh_and_revision() {
    let revision = |name: &str| (name.to_owned(), Arc::new(injectd_testkit::istio::injector()));
    let istio = Revisions::new([revision("default"), revision("canary")]);
    let linkerd = Some(Arc::new(injectd_testkit::injector()));
    let profiles = Profiles { linkerd, istio: Some(Arc::new(istio)), templates: None };
    for (injector, release) in
        [("istio", Some("1.30.3")), ("istio/canary", Some("1.30.3")), ("linkerd", None)]
    {
        let request = InjectRequest { injector: injector.to_owned(), ..pod() };
        let response = inject_by(profiles.clone(), request).await.expect("a response");
        assert_eq!(response.release == "1.30.3", release.is_some(), "{injector}");
    }
    for injector in ["", "istio/stable"] {
        let request = InjectRequest { injector: injector.to_owned(), ..pod() };
        let status = inject_by(profiles.clone(), request).await.expect_err("must be rejected");
        let violations = status.get_details_bad_request().expect("details").field_violations;
        let expected = format!(
            r#"is {injector:?}; this server has the injectors "linkerd", "istio", "istio/canary", "istio/default""#
        );
        assert_eq!(violations[0].description, expected);
    }
}
