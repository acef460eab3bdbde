//! The gRPC server with sidecar templates.

use injectd::grpc::v1::ExplainRequest;
use injectd_core::review;
use injectd_profiles::{Profile, Profiles};
use injectd_testkit::templates::{KEY, injector};

use super::*;

fn pod(annotations: &Value) -> InjectRequest {
    let object = json!({"metadata": {"name": "web", "annotations": annotations},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    InjectRequest {
        uid: "u".to_owned(),
        namespace: "shop".to_owned(),
        kind: "Pod".to_owned(),
        object: object.to_string().into(),
        injector: "templates".to_owned(),
        ..InjectRequest::default()
    }
}

async fn client() -> InjectorClient<Channel> {
    let profiles = Profiles::from(Profile::Templates(Arc::new(injector())));
    let services = server::services_of(profiles, Readiness::default(), &Limits::default());
    InjectorClient::new(server::channel(services).await)
}

async fn inject(request: InjectRequest) -> Result<InjectResponse, Status> {
    let answered = timeout(PATIENCE, client().await.inject(request)).await;
    answered.expect("must not hang").map(tonic::Response::into_inner)
}

#[tokio::test]
async fn the_patch_is_that_of_the_webhook() {
    let asked = pod(&json!({KEY: "true", "agent.example.com/level": "debug"}));
    let response = inject(asked.clone()).await.expect("a response");
    assert_eq!((response.uid.as_str(), response.verdict()), ("u", Verdict::Injected));
    let object: Value = serde_json::from_slice(&asked.object).expect("JSON");
    let request =
        json!({"uid": "u", "kind": {"kind": "Pod"}, "namespace": "shop", "object": object});
    let body = json!({ "request": request }).to_string();
    let request = review::decode(body.as_bytes()).expect("a review");
    let injector: injectd_profiles::TemplatesInjector = injector();
    let mut patch = injectd::patch::PatchBuffer::json();
    let facts = injectd::lookups::CallerFacts::default();
    let outcome = injector.answer(&request, facts, &mut patch).await.expect("an outcome");
    assert_eq!(outcome.verdict, injectd::outcome::Verdict::Injected);
    assert_eq!(response.patch, patch.into_bytes());
}

#[tokio::test]
async fn a_label_of_the_namespace_that_the_caller_sends_counts() {
    let labels = [(KEY.to_owned(), "enabled".to_owned())].into();
    let namespace = NamespaceAnnotations { labels, ..NamespaceAnnotations::default() };
    let request = InjectRequest { namespace_annotations: Some(namespace), ..pod(&json!({})) };
    assert_eq!(inject(request).await.expect("a response").verdict(), Verdict::Injected);
    let skipped = inject(pod(&json!({}))).await.expect("a response");
    assert_eq!(skipped.verdict(), Verdict::Skipped);
    assert!(skipped.patch.is_empty() && !skipped.skips.is_empty());
}

#[tokio::test]
async fn a_denial_names_the_template() {
    let wrong = pod(&json!({KEY: "true", "agent.example.com/level": "SECRET"}));
    let denied = inject(wrong).await.expect_err("must be denied");
    assert_eq!(denied.code(), Code::FailedPrecondition);
    assert!(denied.message().contains("agent") && !denied.message().contains("SECRET"));
}

#[tokio::test]
async fn an_explanation_has_a_rule_for_each_template() {
    let explain = async |request: InjectRequest| {
        let request = ExplainRequest { request: Some(request) };
        let answered = timeout(PATIENCE, client().await.explain(request)).await;
        answered.expect("must not hang").expect("a response").into_inner()
    };
    let found = explain(pod(&json!({KEY: "true"}))).await;
    assert_eq!((found.mesh.as_str(), found.verdict()), ("templates", Verdict::Injected));
    assert_eq!(found.rules[0].message, "agent: applied");
    let wrong = explain(pod(&json!({KEY: "true", "agent.example.com/level": "SECRET"}))).await;
    assert!(wrong.denial.is_some() && wrong.rules[0].message.starts_with("agent: "));
}
