//! The webhook with Istio's injector: paths, versions of a review, bodies that are no review.

use std::sync::atomic::{AtomicUsize, Ordering};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::future::join_all;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use injectd_telemetry::metrics::{Registry, ReviewMetrics};
use injectd_testkit::istio::{CONFIG, MESH, VALUES};

use super::*;

async fn open() -> Server {
    Server::of(Profile::Istio(Arc::new(injectd_testkit::istio::injector()))).await
}

fn review(version: &str) -> String {
    let pod = json!({"kind": "Pod", "metadata": {"name": "web", "labels": {"app": "shop"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let request = json!({"uid": "705ab4f5", "kind": kind, "namespace": "shop", "object": pod});
    json!({"kind": "AdmissionReview", "apiVersion": version, "request": request}).to_string()
}

const V1: &str = "admission.k8s.io/v1";

/// A request with an absolute target, which both versions of HTTP can send.
fn to(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post(format!("https://localhost{path}")).header("host", "localhost");
    request.body(Full::new(body.into())).expect("must be a request")
}

fn tree(body: &[u8]) -> Value {
    serde_json::from_slice(body).expect("an answer must be JSON")
}

fn patch(answer: &Value) -> Value {
    let patch = answer["response"]["patch"].as_str().expect("the pod must be injected");
    tree(&BASE64_STANDARD.decode(patch).expect("a patch must be base64"))
}

/// The value of a variable of the proxy in a patch.
fn variable(patch: &Value, name: &str) -> Option<String> {
    let operations = patch.as_array().expect("a patch must be a list").iter();
    let containers = operations.flat_map(|operation| match &operation["value"] {
        Value::Array(items) => items.clone(),
        value => vec![value.clone()],
    });
    let variables = containers
        .filter(|container| container["name"] == "istio-proxy")
        .flat_map(|container| container["env"].as_array().cloned().unwrap_or_default());
    let found = variables.into_iter().find(|variable| variable["name"] == name)?;
    Some(found["value"].as_str().expect("a value must be text").to_owned())
}

#[tokio::test]
async fn a_review_is_answered_in_its_own_version() {
    let server = open().await;
    for version in [V1, "admission.k8s.io/v1beta1"] {
        let (status, over_1) = server.send(Version::HTTP_11, to("/inject", review(version))).await;
        let (_, over_2) = server.send(Version::HTTP_2, to("/inject", review(version))).await;
        assert_eq!((status, &over_1), (StatusCode::OK, &over_2));
        let answer = tree(&over_1);
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer["apiVersion"], version);
        assert_eq!(answer["response"]["uid"], "705ab4f5");
        assert_eq!(answer["response"]["allowed"], true);
        assert_eq!(answer["response"]["patchType"], "JSONPatch");
        let patch = patch(&answer);
        assert_eq!(variable(&patch, "GREETING").as_deref(), Some("hello"));
        assert_eq!(variable(&patch, "ISTIO_META_CLUSTER_ID"), None);
    }
    server.close().await;
}

#[tokio::test]
async fn the_path_sets_variables_of_the_proxy() {
    let server = open().await;
    let variables = [("ISTIO_META_CLUSTER_ID", "C"), ("ISTIO_META_NETWORK", "N")];
    for path in [
        "/inject/cluster/C/net/N",
        "/inject/cluster/C/net/N?timeout=10s",
        "/inject/cluster/%43/net/N/",
        "/%69nject/cluster/C/net/N",
        "/inject/:ENV:cluster=C:ENV:net=N",
    ] {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let (status, body) = server.send(version, to(path, review(V1))).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            let patch = patch(&tree(&body));
            for (name, value) in variables {
                assert_eq!(variable(&patch, name).as_deref(), Some(value), "{path}");
            }
        }
    }
    server.close().await;
}

#[tokio::test]
async fn other_paths_are_answered_as_by_istiods_server() {
    let server = open().await;
    for (path, status, location) in [
        ("//inject", StatusCode::TEMPORARY_REDIRECT, Some("/inject")),
        (
            "/inject//net/N?timeout=1s",
            StatusCode::TEMPORARY_REDIRECT,
            Some("/inject/net/N?timeout=1s"),
        ),
        ("/x/../inject", StatusCode::TEMPORARY_REDIRECT, Some("/inject")),
        ("/injected", StatusCode::NOT_FOUND, None),
        ("/", StatusCode::NOT_FOUND, None),
        ("/INJECT", StatusCode::NOT_FOUND, None),
        ("/inject%2fnet", StatusCode::NOT_FOUND, None),
        ("/inject/%", StatusCode::BAD_REQUEST, None),
        ("/inject/%4", StatusCode::BAD_REQUEST, None),
        ("/inject/%zz", StatusCode::BAD_REQUEST, None),
    ] {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let response = server.exchange(version, to(path, review(V1))).await;
            assert_eq!(response.status(), status, "{path}");
            let found = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
            assert_eq!(found, location.map(str::as_bytes), "{path}");
            let text = str::from_utf8(response.body()).expect("a rejection must be text");
            assert_eq!(text.lines().count(), 1, "{path}: {text:?}");
            assert!(text.ends_with('\n'), "{path}: {text:?}");
        }
    }
    server.close().await;
}

#[tokio::test]
async fn only_post_is_allowed() {
    let server = open().await;
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS] {
        for path in ["/inject", "/injected"] {
            let mut request = to(path, "");
            *request.method_mut() = method.clone();
            let response = server.exchange(Version::HTTP_11, request).await;
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert_eq!(response.headers()[ALLOW], "POST");
        }
    }
    server.close().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_rejected() {
    let server = open().await;
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut body = review(V1).into_bytes();
        body.resize(MAX_BODY_BYTES, b' ');
        assert_eq!(server.send(version, to("/inject", body.clone())).await.0, StatusCode::OK);
        body.push(b' ');
        let (status, text) = server.send(version, to("/inject", body.clone())).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(text, "the body is larger than 10485760 bytes\n");
        // A path without the webhook is rejected before its body is read.
        assert_eq!(server.send(version, to("/injected", body)).await.0, StatusCode::NOT_FOUND);
    }
    server.close().await;
}

#[tokio::test]
async fn any_content_type_is_accepted() {
    let server = open().await;
    for content_type in
        ["application/json", "application/json; charset=utf-8", "text/plain", "", "no type"]
    {
        let mut request = to("/inject", review(V1));
        request.headers_mut().insert(CONTENT_TYPE, content_type.parse().expect("must be a value"));
        let response = server.exchange(Version::HTTP_11, request).await;
        assert_eq!(response.status(), StatusCode::OK, "{content_type:?}");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(tree(response.body())["response"]["allowed"], true);
    }
    server.close().await;
}

#[tokio::test]
async fn a_body_that_is_no_review_is_denied_with_its_uid() {
    let server = open().await;
    let header = format!(r#""kind":"AdmissionReview","apiVersion":"{V1}""#);
    let not_json = "couldn't get version/kind; json parse error: ";
    for (body, uid, expected) in [
        (" ".to_owned(), "", "Object 'Kind' is missing in ' '".to_owned()),
        ("null".to_owned(), "", "Object 'Kind' is missing in 'null'".to_owned()),
        ("not JSON".to_owned(), "", format!("{not_json}invalid character 'o' in literal null")),
        (format!("{{{header}"), "", format!("{not_json}unexpected end of JSON input")),
        ("[]".to_owned(), "", format!("{not_json}json: cannot unmarshal array into Go value")),
        (
            r#"{"request":{"uid":"u1"}}"#.to_owned(),
            "u1",
            r#"Object 'Kind' is missing in '{"request":{"uid":"u1"}}'"#.to_owned(),
        ),
        (
            r#"{"kind":"Pod","apiVersion":"v1","request":{"uid":"u2"}}"#.to_owned(),
            "u2",
            "unsupported type :&TypeMeta{Kind:Pod,APIVersion:v1,}".to_owned(),
        ),
        (
            format!(r#"{{{header},"request":{{"uid":"u3","namespace":5}}}}"#),
            "u3",
            "json: cannot unmarshal number into Go struct field AdmissionRequest.request.namespace"
                .to_owned(),
        ),
        (
            format!(r#"{{{header},"request":{{"uid":7}}}}"#),
            "",
            "json: cannot unmarshal number into Go struct field AdmissionRequest.request.uid"
                .to_owned(),
        ),
    ] {
        let (status, text) = server.send(Version::HTTP_11, to("/inject", body.clone())).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let answer = tree(&text);
        assert_eq!(answer["apiVersion"], V1, "{body}");
        let response = &answer["response"];
        assert_eq!(
            (&response["uid"], &response["allowed"]),
            (&json!(uid), &json!(false)),
            "{body}"
        );
        let message = response["status"]["message"].as_str().expect("a denial must have a text");
        assert!(message.starts_with(&expected), "{body}: {message}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_body_without_a_request_is_rejected() {
    let server = open().await;
    let review = json!({"kind": "AdmissionReview", "apiVersion": V1, "request": null}).to_string();
    for body in [String::new(), review] {
        let (status, text) = server.send(Version::HTTP_11, to("/inject", body.clone())).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?}");
        assert!(text.ends_with(b"\n"), "{text:?}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_pod_of_the_wrong_type_is_denied_in_the_version_of_its_review() {
    let server = open().await;
    let body = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1",
        "request": {"uid": "u1", "kind": {"version": "v1", "kind": "Pod"}, "namespace": "shop",
            "object": {"metadata": {"name": "web"}, "spec": {"containers": "many"}}}});
    let (status, text) = server.send(Version::HTTP_11, to("/inject", body.to_string())).await;
    assert_eq!(status, StatusCode::OK);
    let answer = tree(&text);
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(answer["response"]["uid"], "u1");
    assert_eq!(answer["response"]["allowed"], false);
    let message = answer["response"]["status"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("json: cannot unmarshal string"), "{message}");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_pods_of_one_namespace_delay_no_other() {
    const FLOOD: usize = 60;
    // The evaluation of the flood's pods takes longer than a request.
    let slow = "    {{- if hasPrefix `a` (index .ObjectMeta.Labels `app`) }}{{ range until 1000 }}\
                {{ range until 1000 }}{{ $x := sha256sum `x` }}{{ end }}{{ end }}{{ end }}\n";
    let config = CONFIG.replacen("    metadata:\n", &format!("{slow}    metadata:\n"), 1);
    let injector = Arc::new(injectd_testkit::istio::injector_of(&config, VALUES, MESH));
    let server = Server::of(Profile::Istio(injector)).await;
    let review = |namespace: &str, name: &str| {
        let mut review = tree(review(V1).as_bytes());
        review["request"]["namespace"] = json!(namespace);
        review["request"]["object"]["metadata"]["labels"]["app"] = json!(name);
        review.to_string()
    };
    let (status, _) = server.send(Version::HTTP_2, to("/inject", review("b", "warm"))).await;
    assert_eq!(status, StatusCode::OK);
    let mut senders = Vec::new();
    for _ in 0..2 {
        let io = TokioIo::new(server.connect("h2").await);
        let handshake = conn::http2::handshake(TokioExecutor::new(), io).await;
        let (sender, connection) = handshake.expect("the HTTP/2 handshake must succeed");
        tokio::spawn(connection);
        senders.push(sender);
    }
    let [mut flooding, mut behaved] = senders.try_into().expect("two connections");
    let answered = Arc::new(AtomicUsize::new(0));
    let flood = (0..FLOOD).map(|index| {
        let response = flooding.send_request(to("/inject", review("a", &format!("a{index}"))));
        let answered = Arc::clone(&answered);
        async move {
            let response = response.await.expect("a request must be answered");
            answered.fetch_add(1, Ordering::Relaxed);
            response.status()
        }
    });
    let flood: Vec<_> = flood.map(tokio::spawn).collect();
    for name in ["warm", "cold"] {
        let response = behaved.send_request(to("/inject", review("b", name)));
        let response = timeout(PATIENCE, response).await.expect("must not hang");
        assert_eq!(response.expect("must be answered").status(), StatusCode::OK, "{name}");
        let before = answered.load(Ordering::Relaxed);
        assert!(before < FLOOD / 2, "{name}: {before} of {FLOOD} had their turn before");
    }
    for answer in flood {
        let status = timeout(PATIENCE, answer).await.expect("must not hang").expect("no panic");
        assert!([StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE].contains(&status), "{status}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_pod_that_is_too_large_to_be_evaluated_is_denied_with_the_limit() {
    let limits = Limits { max_evaluation_memory: Some(3 << 20), ..Limits::default() };
    let injector = Arc::new(injectd_testkit::istio::injector());
    let server = Server::with(Profile::Istio(injector), limits, Observer::default()).await;
    let arguments =
        |bytes: usize| format!("\"image\":\"web\",\"args\":[{}\"\"]", "\"\",".repeat(bytes / 3));
    // On a worker thread, and on a separate one.
    for bytes in [100 << 10, 200 << 10] {
        let large = review(V1).replace("\"image\":\"web\"", &arguments(bytes));
        // Another namespace has no answer in memory.
        let large = large.replace("shop", &format!("shop-{bytes}"));
        let (status, answer) = server.send(Version::HTTP_11, to("/inject", large)).await;
        let response = &tree(&answer)["response"];
        assert_eq!((status, &response["allowed"]), (StatusCode::OK, &json!(false)));
        let message = response["status"]["message"].as_str().unwrap_or_default();
        assert!(message.ends_with("--max-evaluation-memory is 3145728"), "{message}");
        let (_, answer) = server.send(Version::HTTP_11, to("/inject", review(V1))).await;
        assert_eq!(tree(&answer)["response"]["allowed"], true);
    }
    server.close().await;
}

#[tokio::test]
async fn evaluations_beyond_the_memory_are_rejected_and_counted_once() {
    const REVIEWS: usize = 40;
    let registry = Registry::new();
    let metrics = ReviewMetrics::register(&registry, "webhook", &[]);
    let observer = Observer { metrics, ..Observer::default() };
    let limits = Limits { max_body_memory: Some(1), ..Limits::default() };
    let injector = Arc::new(injectd_testkit::istio::injector());
    let server = Server::with(Profile::Istio(injector), limits, observer).await;
    let io = TokioIo::new(server.connect("h2").await);
    let handshake = conn::http2::handshake(TokioExecutor::new(), io).await;
    let (sender, connection) = handshake.expect("the HTTP/2 handshake must succeed");
    tokio::spawn(connection);
    let answers = (0..REVIEWS).map(|index| {
        // Each pod is evaluated, and one waits while another has its turn.
        let review = review(V1).replace("shop", &format!("shop-{index}"));
        let mut sender = sender.clone();
        async move {
            let response = sender.send_request(to("/inject", review)).await;
            let response = response.expect("a request must be answered");
            (response.status(), response.headers().contains_key(RETRY_AFTER))
        }
    });
    let answers = timeout(PATIENCE, join_all(answers)).await.expect("must not hang");
    let rejected = (StatusCode::SERVICE_UNAVAILABLE, true);
    assert!(answers.iter().all(|answer| *answer == (StatusCode::OK, false) || *answer == rejected));
    let count = answers.iter().filter(|answer| **answer == rejected).count();
    assert!((1..REVIEWS).contains(&count), "{count} of {REVIEWS}");
    let sample = "injectd_requests_rejected_total{server=\"webhook\",reason=\"evaluations\"}";
    let counted = format!("{sample} {count}");
    assert!(registry.exporter().render().lines().any(|line| line == counted), "{counted}");
    server.close().await;
}
