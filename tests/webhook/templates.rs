//! The webhook with sidecar templates.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_core::{objects::Objects, standalone::Standalone};
use injectd_telemetry::metrics::{Registry, TemplateMetrics};
use injectd_testkit::templates::{KEY, injector, injector_in};

use super::*;

fn templates() -> Profile {
    Profile::Templates(Arc::new(injector()))
}

fn review(annotations: &Value) -> String {
    let pod = json!({"kind": "Pod", "metadata": {"name": "web", "annotations": annotations},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    let request =
        json!({"uid": "705ab4f5", "kind": {"kind": "Pod"}, "namespace": "shop", "object": pod});
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
        .to_string()
}

fn to(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post(format!("https://localhost{path}")).header("host", "localhost");
    request.body(Full::new(body.into())).expect("must be a request")
}

async fn answer(server: &Server, version: Version, body: &str) -> Value {
    let (status, body) = server.send(version, to("/templates", body.to_owned())).await;
    assert_eq!(status, StatusCode::OK, "{body:?}");
    serde_json::from_slice(&body).expect("an answer must be JSON")
}

#[tokio::test]
async fn both_versions_of_http_give_the_same_patch() {
    let server = Server::of(templates()).await;
    let review = review(&json!({KEY: "enabled", "agent.example.com/level": "debug"}));
    for _ in ["evaluated", "from memory"] {
        let over_1 = answer(&server, Version::HTTP_11, &review).await;
        let over_2 = answer(&server, Version::HTTP_2, &review).await;
        assert_eq!(over_1, over_2);
        assert_eq!(over_1["response"]["uid"], "705ab4f5");
        let patch = over_1["response"]["patch"].as_str().expect("a patch");
        let patch = BASE64_STANDARD.decode(patch).expect("base64");
        let patch = String::from_utf8(patch).expect("text");
        assert!(patch.contains("--level=debug") && patch.contains("injectd.dev"), "{patch}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_pod_is_skipped_or_denied_as_its_template_says() {
    let registry = Arc::new(Registry::new());
    let observer = Observer {
        templates: Some(TemplateMetrics::new(&registry, Arc::default())),
        ..Observer::default()
    };
    let server = Server::with(templates(), Limits::default(), observer).await;
    let skipped = answer(&server, Version::HTTP_2, &review(&json!({}))).await;
    assert_eq!(skipped["response"]["allowed"], true);
    assert_eq!(skipped["response"]["auditAnnotations"]["verdict"], "skipped");
    assert_eq!(skipped["response"].get("patch"), None);
    let wrong = json!({KEY: "true", "agent.example.com/level": "SECRET"});
    let denied = answer(&server, Version::HTTP_2, &review(&wrong)).await;
    assert_eq!(denied["response"]["allowed"], false);
    let message = denied["response"]["status"]["message"].as_str().expect("a message");
    assert!(message.contains("agent") && message.contains("level"), "{message}");
    assert!(!message.contains("SECRET"), "{message}");
    let right = answer(&server, Version::HTTP_2, &review(&json!({KEY: "true"}))).await;
    assert_eq!(right["response"]["auditAnnotations"]["verdict"], "injected");
    server.close().await;
    let text = registry.exporter().render();
    for (result, count) in [("injected", 1), ("denied", 1), ("skipped", 0)] {
        let labels = format!("template=\"agent\",result=\"{result}\"");
        assert!(
            text.contains(&format!("injectd_template_pods_total{{{labels}}} {count}\n")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn garbage_is_a_bad_request_and_another_path_is_not_found() {
    let server = Server::of(templates()).await;
    for body in ["", "{", "[]", "{}", "\u{feff}{}", r#"{"request": 1}"#] {
        let (status, _) = server.send(Version::HTTP_2, to("/templates", body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?}");
    }
    let pod =
        r#"{"request": {"uid": "1", "kind": {"kind": "Pod"}, "namespace": "shop", "object": 1}}"#;
    let answer = answer(&server, Version::HTTP_2, pod).await;
    assert_eq!(answer["response"]["allowed"], false);
    for path in ["/", "/inject", "/templates/", "/templates/x"] {
        let (status, _) = server.send(Version::HTTP_2, to(path, review(&json!({})))).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_label_of_the_namespace_counts() {
    let objects =
        format!("kind: Namespace\nmetadata: {{name: shop, labels: {{{KEY}: enabled}}}}\n");
    let objects = Objects::parse(&objects).expect("objects");
    let injector = injector_in(Standalone::Listed(Arc::new(objects)).into());
    let server = Server::of(Profile::Templates(Arc::new(injector))).await;
    let injected = answer(&server, Version::HTTP_2, &review(&json!({}))).await;
    assert_eq!(injected["response"]["auditAnnotations"]["verdict"], "injected");
    server.close().await;
}
