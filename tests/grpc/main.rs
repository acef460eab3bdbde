//! The gRPC server with a real client: messages, statuses, streams, limits, callers.

#![expect(clippy::disallowed_types, reason = "patches are looked into as trees")]

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use injectd::{
    grpc::v1::{
        InjectRequest, InjectResponse, InjectStreamRequest, NamespaceAnnotations, Verdict,
        Workload, inject_stream_response::Result as StreamResult, injector_client::InjectorClient,
    },
    linkerd::release::Release,
    server::{BodyBudget, Caller, HttpService as _, LONG_REVIEW_BYTES, Limits},
};
use injectd_telemetry::readiness::Readiness;
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::{Code, Request, Status, codec::CompressionEncoding, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_types::StatusExt as _;

mod access;
mod explain;
mod istio;
mod server;
mod templates;

/// Longer than any step takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn client() -> InjectorClient<Channel> {
    server::client(Arc::new(injectd_testkit::injector())).await
}

fn request(annotations: &Value, spec: &Value) -> InjectRequest {
    let pod = json!({"metadata": {"name": "web", "annotations": annotations}, "spec": spec});
    InjectRequest {
        uid: "u".to_owned(),
        namespace: "shop".to_owned(),
        kind: "Pod".to_owned(),
        object: pod.to_string().into(),
        ..InjectRequest::default()
    }
}

fn enabled() -> InjectRequest {
    request(&json!({"linkerd.io/inject": "enabled"}), &json!({"containers": [{"name": "web"}]}))
}

fn of_workload(kind: &str, name: &str) -> InjectRequest {
    let workload = Workload { kind: kind.to_owned(), name: name.to_owned() };
    InjectRequest { workload: Some(workload), ..enabled() }
}

/// A request whose object has this kind and namespace.
fn with_own_kind(kind: &str, namespace: &str) -> InjectRequest {
    let object = json!({"kind": kind, "metadata": {"name": "web", "namespace": namespace}});
    InjectRequest { object: object.to_string().into(), ..enabled() }
}

async fn inject(request: InjectRequest) -> Result<InjectResponse, Status> {
    let answered = timeout(PATIENCE, async { client().await.inject(request).await }).await;
    answered.expect("must not hang").map(tonic::Response::into_inner)
}

async fn must_be_rejected(request: InjectRequest, code: Code) -> Status {
    let status = inject(request).await.expect_err("must be rejected");
    assert_eq!(status.code(), code, "{status}");
    status
}

fn label(patch: &[u8], key: &str) -> Option<Value> {
    let operations: Vec<Value> = serde_json::from_slice(patch).expect("a JSON Patch");
    let pointer = format!("/metadata/labels/linkerd.io~1{key}");
    operations
        .into_iter()
        .find(|operation| operation["path"] == pointer)
        .map(|operation| operation["value"].clone())
}

#[tokio::test]
async fn a_pod_is_injected() {
    let response = inject(enabled()).await.expect("a response");
    assert_eq!((response.uid.as_str(), response.verdict()), ("u", Verdict::Injected));
    assert_eq!(label(&response.patch, "workload-ns"), Some(json!("shop")));
    assert_eq!((response.configuration_generation, response.skips.len()), (1, 0));
    assert_eq!(response.release, Release::NEWEST.to_string());
}

#[tokio::test]
async fn a_skipped_pod_has_reasons() {
    let spec = json!({"hostNetwork": true, "containers": [{"name": "web"}]});
    let response = inject(request(&json!({}), &spec)).await.expect("a response");
    assert_eq!(response.verdict(), Verdict::Skipped);
    let reasons: Vec<_> = response.skips.iter().map(|skip| skip.reason.as_str()).collect();
    assert_eq!(reasons, ["host_network_enabled", "injection_enable_annotation_absent"]);
    assert_eq!(response.skips[0].message, "hostNetwork is enabled");
    assert!(response.patch.is_empty());
}

#[tokio::test]
async fn ignored_annotations_cause_warnings() {
    let annotations = json!({"linkerd.io/inject": "enabled",
        "config.linkerd.io/proxy-cpu-request": "much"});
    let spec = json!({"containers": [{"name": "web"}]});
    let response = inject(request(&annotations, &spec)).await.expect("a response");
    let [warning] = response.warnings.as_slice() else {
        panic!("expected a warning, found {:?}", response.warnings)
    };
    assert_eq!(warning.annotation, "config.linkerd.io/proxy-cpu-request");
}

#[tokio::test]
async fn ten_warnings_are_sent_and_the_others_are_counted() {
    let annotations = json!({"linkerd.io/inject": "enabled",
        "config.linkerd.io/opaque-ports": "x,".repeat(1_000_000)});
    let spec = json!({"containers": [{"name": "web"}]});
    let response = inject(request(&annotations, &spec)).await.expect("a response");
    assert_eq!((response.warnings.len(), response.omitted_warnings), (10, 999_990));
}

#[tokio::test]
async fn callers_may_override_facts_from_the_cluster() {
    let spec = json!({"containers": [{"name": "web"}]});
    let annotations = [("linkerd.io/inject".to_owned(), "enabled".to_owned())].into();
    let response = inject(InjectRequest {
        namespace_annotations: Some(NamespaceAnnotations {
            annotations,
            ..NamespaceAnnotations::default()
        }),
        workload: Some(Workload { kind: "StatefulSet".to_owned(), name: "db".to_owned() }),
        ..request(&json!({}), &spec)
    });
    let response = response.await.expect("a response");
    assert_eq!(response.verdict(), Verdict::Injected);
    assert_eq!(label(&response.patch, "proxy-statefulset"), Some(json!("db")));
}

#[tokio::test]
async fn a_service_is_annotated() {
    let annotations = [("config.linkerd.io/opaque-ports".to_owned(), "80".to_owned())].into();
    let response = inject(InjectRequest {
        kind: "Service".to_owned(),
        namespace_annotations: Some(NamespaceAnnotations {
            annotations,
            ..NamespaceAnnotations::default()
        }),
        ..request(&json!({}), &json!({"ports": [{"port": 80}]}))
    });
    assert_eq!(response.await.expect("a response").verdict(), Verdict::Annotated);
}

#[tokio::test]
async fn a_request_may_name_its_injector() {
    let named = InjectRequest { injector: "linkerd".to_owned(), ..enabled() };
    assert_eq!(inject(named).await.expect("a response").verdict(), Verdict::Injected);
}

#[tokio::test]
async fn an_unknown_kind_is_skipped() {
    let gizmo = InjectRequest { kind: "Gizmo".to_owned(), ..enabled() };
    assert_eq!(inject(gizmo).await.expect("a response").verdict(), Verdict::Skipped);
}

#[tokio::test]
async fn a_denied_object_is_a_failed_precondition() {
    let annotations = json!({"linkerd.io/inject": "enabled",
        "config.linkerd.io/proxy-log-http-headers": "all"});
    let spec = json!({"containers": [{"name": "web"}]});
    let status = must_be_rejected(request(&annotations, &spec), Code::FailedPrecondition).await;
    assert!(status.message().contains("logHTTPHeaders"), "{status}");
}

#[tokio::test]
async fn an_error_names_the_invalid_field() {
    let spec = json!({"containers": [{"name": "web", "ports": [{"containerPort": "x"}]}]});
    for (request, field) in [
        (InjectRequest { object: "{".into(), ..enabled() }, "object"),
        (InjectRequest { object: vec![0xff].into(), ..enabled() }, "object"),
        (InjectRequest { object: "null".into(), ..enabled() }, "object"),
        (InjectRequest { namespace: String::new(), ..enabled() }, "namespace"),
        (InjectRequest { namespace: "a/pods/b".to_owned(), ..enabled() }, "namespace"),
        (request(&json!({}), &spec), "object.spec.containers[0].ports[0].containerPort"),
        (InjectRequest { workload: Some(Workload::default()), ..enabled() }, "workload.kind"),
        (InjectRequest { injector: "istio".to_owned(), ..enabled() }, "injector"),
        (of_workload("a~1b/c~", "web"), "workload.kind"),
        (of_workload("Deployment", "a/b"), "workload.name"),
        (InjectRequest { kind: "Deployment".to_owned(), ..of_workload("Job", "web") }, "workload"),
        (InjectRequest { kind: String::new(), ..enabled() }, "kind"),
        (InjectRequest { kind: "Service".to_owned(), ..with_own_kind("Pod", "shop") }, "kind"),
        (with_own_kind("Pod", "elsewhere"), "namespace"),
        (with_own_kind("Pod", "SHOP"), "namespace"),
        (InjectRequest { uid: "u".repeat(65 << 10), ..enabled() }, "uid"),
    ] {
        let status = must_be_rejected(request, Code::InvalidArgument).await;
        let violations = status.get_details_bad_request().expect("details").field_violations;
        assert_eq!(violations[0].field, field, "{status}");
    }
}

#[tokio::test]
async fn an_object_may_repeat_the_kind_and_namespace_of_its_request() {
    for kind in ["Pod", "pod", ""] {
        let request = InjectRequest { kind: kind.to_owned(), ..with_own_kind("Pod", "shop") };
        inject(request).await.expect("a response");
    }
}

#[tokio::test]
async fn a_large_object_is_answered_like_a_small_one() {
    let env: Vec<_> = (0..40_000).map(|n| json!({"name": format!("V{n}")})).collect();
    let spec = json!({"containers": [{"name": "web", "env": env}]});
    let annotations = json!({"linkerd.io/inject": "enabled"});
    let large = request(&annotations, &spec);
    assert!(large.object.len() > LONG_REVIEW_BYTES);
    let response = inject(large).await.expect("a response");
    let small = inject(enabled()).await.expect("a response");
    assert_eq!(response.verdict(), Verdict::Injected);
    assert_eq!(response.patch, small.patch);
}

#[tokio::test]
async fn messages_may_be_compressed_but_not_larger_than_10_mib() {
    let mut gzip = client().await.send_compressed(CompressionEncoding::Gzip);
    let response = gzip.inject(enabled()).await.expect("a response");
    assert_eq!(response.into_inner().verdict(), Verdict::Injected);
    let large = |bytes| InjectRequest { object: vec![b' '; bytes].into(), ..enabled() };
    must_be_rejected(large(11 << 20), Code::OutOfRange).await;
    let bomb = gzip.inject(large(40 << 20)).await.expect_err("a bomb");
    assert_eq!(bomb.code(), Code::ResourceExhausted, "{bomb}");
    must_be_rejected(large(9 << 20), Code::InvalidArgument).await;
}

#[tokio::test]
async fn large_messages_over_the_memory_limit_may_be_retried() {
    let injector = Arc::new(injectd_testkit::injector());
    let services = server::services(injector, Readiness::default(), &Limits::default());
    let budget = BodyBudget::of_connection(&BodyBudget::pool(1 << 20));
    let services = services.of_caller(Caller { budget, ..Caller::default() });
    let mut client = InjectorClient::new(server::channel(services).await);
    let large = InjectRequest { object: vec![b' '; 2 << 20].into(), ..enabled() };
    let status = client.inject(large).await.expect_err("must be rejected");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.get_details_retry_info().is_some(), "{status:?}");
    client.inject(enabled()).await.expect("other requests must be answered");
}

#[tokio::test]
async fn a_request_past_its_deadline_gets_deadline_exceeded() {
    let mut request = Request::new(enabled());
    request.metadata_mut().insert("grpc-timeout", "1n".parse().expect("a value"));
    let status = client().await.inject(request).await.expect_err("too late");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
}

#[tokio::test]
async fn a_stream_answers_each_request_by_its_uid() {
    let requests = (0..200).map(|index| {
        let request = match index % 10 {
            8 => InjectRequest { object: "{".into(), ..enabled() },
            9 => InjectRequest { uid: String::new(), ..enabled() },
            _ => InjectRequest { uid: index.to_string(), ..enabled() },
        };
        InjectStreamRequest { request: Some(request) }
    });
    let answered = client().await.inject_stream(stream::iter(requests.collect::<Vec<_>>())).await;
    let answers = answered.expect("a stream").into_inner();
    let all: Vec<_> = timeout(PATIENCE, answers.collect()).await.expect("must not hang");
    let (mut injected, mut failed) = (Vec::new(), 0);
    for answer in all {
        let answer = answer.expect("an invalid request must not end the stream");
        match answer.result.expect("a result") {
            StreamResult::Response(response) => {
                assert_eq!(response.uid, answer.uid);
                assert_eq!(response.verdict(), Verdict::Injected);
                injected.push(answer.uid.parse::<usize>().expect("a number"));
            }
            StreamResult::Failure(failure) => {
                assert_eq!(failure.code, i32::from(Code::InvalidArgument));
                assert_eq!(failure.field_violations.len(), 1, "{failure:?}");
                failed += 1;
            }
        }
    }
    injected.sort_unstable();
    assert_eq!(injected, (0..200).filter(|index| index % 10 < 8).collect::<Vec<_>>());
    assert_eq!(failed, 40);
}

#[tokio::test]
async fn health_matches_the_probes() {
    let readiness = Readiness::default();
    let hold = readiness.hold();
    let injector = Arc::new(injectd_testkit::injector());
    let services = server::services(injector, readiness, &Limits::default());
    let mut health = HealthClient::new(server::channel(services).await);
    let service = "injectd.v1.Injector".to_owned();
    let watch = health.watch(HealthCheckRequest { service }).await.expect("a watch");
    let mut watch = watch.into_inner().map(|response| response.expect("a status").status());
    let mut statuses = async || timeout(PATIENCE, watch.next()).await.expect("must not hang");
    let mut status = statuses().await;
    while status != Some(ServingStatus::NotServing) {
        status = statuses().await;
    }
    drop(hold);
    assert_eq!(statuses().await, Some(ServingStatus::Serving));
}
