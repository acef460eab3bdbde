use serde_json::json;

use super::*;

const PORT: i64 = 15020;

fn stripped(pod: &Value) -> Value {
    strip(pod, Release::NEWEST, PORT).expect("the pod must be valid")
}

fn pod(annotations: &Value, containers: &[&str], init_containers: &[&str]) -> Value {
    let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
    json!({
        "metadata": {"annotations": annotations},
        "spec": {"containers": named(containers), "initContainers": named(init_containers)},
    })
}

#[test]
fn injected_containers_and_the_status_are_removed() {
    let status = r#"{"containers":["istio-proxy"],"initContainers":["istio-init"],"revision":"r"}"#;
    let injected = pod(
        &json!({STATUS_ANNOTATION: status, "a": "b"}),
        &["app", "istio-proxy", "istio-init", "istio-proxy"],
        &["istio-init", "istio-proxy"],
    );
    let expected = pod(&json!({"a": "b"}), &["app", "istio-init"], &["istio-proxy"]);
    assert_eq!(stripped(&injected), expected);
}

#[test]
fn a_status_that_is_not_an_object_strips_nothing() {
    for status in ["", "injected", "[]", "5", "{"] {
        let pod = pod(&json!({STATUS_ANNOTATION: status}), &["istio-proxy"], &[]);
        assert_eq!(stripped(&pod), pod, "{status}");
    }
    for status in ["{}", "null", r#"{"containers":"x","initContainers":[5]}"#] {
        let before = pod(&json!({STATUS_ANNOTATION: status}), &["istio-proxy"], &[]);
        assert_eq!(stripped(&before), pod(&json!({}), &["istio-proxy"], &[]), "{status}");
    }
}

#[test]
fn prometheus_annotations_go_with_the_mesh_status_port() {
    let strip_of = |release: Release, annotations: Value| {
        let mut annotations = annotations;
        annotations[STATUS_ANNOTATION] = json!("{}");
        let pod = strip(&pod(&annotations, &[], &[]), release, PORT);
        pod.expect("the pod must be valid")["metadata"]["annotations"].clone()
    };
    let all = json!({
        "prometheus.io/port": "15020", "prometheus-io/path": "/p", "prometheus_io_scrape": "true",
        "prometheus.istio.io/scrape-targets": "1", "prometheus.io/other": "x",
    });
    assert_eq!(strip_of(Release::NEWEST, all.clone()), json!({"prometheus.io/other": "x"}));
    let old = json!({"prometheus.istio.io/scrape-targets": "1", "prometheus.io/other": "x"});
    assert_eq!(strip_of(Release::new(30, 0), all), old);
    for kept in [
        json!({"prometheus.io/port": "8080", "prometheus.io/path": "/p"}),
        json!({"prometheus.io/port": "8080", "prometheus-io-port": "15020"}),
        json!({"prometheus.io/path": "/p"}),
    ] {
        assert_eq!(strip_of(Release::NEWEST, kept.clone()), kept);
    }
    let unstripped = pod(&json!({"prometheus.io/port": "15020"}), &[], &[]);
    assert_eq!(stripped(&unstripped), unstripped, "without a status");
}

#[test]
fn overrides_that_are_missing_are_appended() {
    let overrides = r#"{"containers":[{"name":"istio-proxy","image":"i"},{"name":"app"}],
        "INITCONTAINERS":[{"name":"istio-init"},null]}"#;
    let status = r#"{"containers":["istio-proxy"]}"#;
    let annotations = json!({OVERRIDES_ANNOTATION: overrides});
    let mut expected = pod(&annotations, &["app", "istio-proxy"], &["istio-init"]);
    expected["spec"]["containers"][1]["image"] = json!("i");
    expected["spec"]["initContainers"] = json!([{"name": "istio-init"}, {}]);
    assert_eq!(stripped(&pod(&annotations, &["app"], &[])), expected);
    let annotations = json!({STATUS_ANNOTATION: status, OVERRIDES_ANNOTATION: overrides});
    let again = stripped(&pod(&annotations, &["app", "istio-proxy"], &[]));
    assert_eq!(again["spec"], expected["spec"]);
    assert_eq!(
        stripped(&pod(&json!({OVERRIDES_ANNOTATION: "null"}), &["a"], &[]))["spec"]["containers"],
        json!([{"name": "a"}])
    );
}

#[test]
fn overrides_that_cannot_be_read_are_errors() {
    for (overrides, expected) in [
        ("", "unexpected end of JSON input"),
        ("oops", "invalid character 'o' looking for beginning of value"),
        ("[]", "annotation proxy.istio.io/overrides must hold lists"),
        ("5", "annotation proxy.istio.io/overrides must hold lists"),
        (r#"{"containers":5}"#, "annotation proxy.istio.io/overrides must hold lists"),
        (r#"{"initContainers":["x"]}"#, "annotation proxy.istio.io/overrides must hold lists"),
    ] {
        let pod = pod(&json!({OVERRIDES_ANNOTATION: overrides}), &["app"], &[]);
        let error = strip(&pod, Release::NEWEST, PORT).expect_err(overrides);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn pods_without_fields_are_no_problem() {
    for pod in [json!({}), json!(null), json!({"metadata": null, "spec": 5})] {
        assert_eq!(stripped(&pod), pod);
    }
}
