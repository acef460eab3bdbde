//! Cases outside the table: back-ports, edges that only `docs/spec/linkerd/template.md` lists, and the
//! release of the values (`docs/spec/linkerd/injection.md` §1.3).

use futures_util::FutureExt as _;
use injectd_core::linkerd::{release::Release, values::release_of};
use serde_json::{Value, json};

use super::case::{ABSENT, Case};

const EDGES: [&str; 6] = ["23.9.2", "stable-2.14.10", "23.10.3", "23.10.4", "23.11.0", "23.11.1"];

#[test]
fn protocol_detection_without_timeout_was_back_ported() {
    let inbound = "config.linkerd.io/proxy-disable-inbound-protocol-detect-timeout";
    let outbound = "config.linkerd.io/proxy-disable-outbound-protocol-detect-timeout";
    let values = "proxy: {disableInboundProtocolDetectTimeout: true, \
                  disableOutboundProtocolDetectTimeout: true}";
    for case in [
        Case { values, ..Case::default() },
        Case { pod: &[(inbound, "true"), (outbound, "true")], ..Case::default() },
        Case { namespace: &[(inbound, "true"), (outbound, "true")], ..Case::default() },
    ] {
        let expected = json!([ABSENT, "365d", ABSENT, ABSENT, ABSENT, "365d"]);
        case.across(&EDGES)
            .env("LINKERD2_PROXY_INBOUND_DETECT_TIMEOUT", expected.clone())
            .env("LINKERD2_PROXY_OUTBOUND_DETECT_TIMEOUT", expected);
    }
}

#[test]
fn the_pod_in_the_destination_context_was_back_ported() {
    let before = "{\"ns\":\"$(_pod_ns)\", \"nodeName\":\"$(_pod_nodeName)\"}\n";
    let since = "{\"ns\":\"$(_pod_ns)\", \"nodeName\":\"$(_pod_nodeName)\", \
                 \"pod\":\"$(_pod_name)\"}\n";
    Case::default().across(&EDGES).env(
        "LINKERD2_PROXY_DESTINATION_CONTEXT",
        json!([before, since, before, since, since, since]),
    );
}

#[test]
fn an_annotation_is_inherited_in_releases_that_support_it() {
    for (key, before, since) in [
        ("config.alpha.linkerd.io/proxy-enable-native-sidecar", "23.11.3", "23.11.4"),
        ("config.beta.linkerd.io/proxy-enable-native-sidecar", "25.10.1", "25.10.2"),
        ("config.linkerd.io/proxy-additional-env", "26.4.2", "26.4.3"),
        ("config.linkerd.io/proxy-admin-shutdown", "24.6.1", "24.6.2"),
        ("config.linkerd.io/proxy-disable-inbound-protocol-detect-timeout", "23.11.0", "23.11.1"),
        ("config.linkerd.io/proxy-disable-outbound-protocol-detect-timeout", "23.11.0", "23.11.1"),
        ("config.linkerd.io/proxy-enable-native-sidecar", "26.5.1", "26.5.2"),
        ("config.linkerd.io/proxy-gid", "24.5.3", "24.5.4"),
        ("config.linkerd.io/proxy-log-http-headers", "24.6.1", "24.6.2"),
        ("config.linkerd.io/proxy-metrics-hostname-labels", "25.3.3", "25.3.4"),
    ] {
        Case { namespace: &[(key, "off")], ..Case::default() }
            .across(&[before, since])
            .hold(&format!("/annotations/{}", key.replace('/', "~1")), json!([ABSENT, "off"]));
    }
}

#[test]
fn a_variable_may_come_from_a_file() {
    let file = json!({"volumeName": "v", "path": "p", "key": "k"});
    let values = "proxy: {additionalEnv: [{name: F, valueFrom: \
                  {fileKeyRef: {volumeName: v, path: p, key: k}}}]}";
    Case { values, ..Case::default() }
        .across(&["25.9.0", "25.9.1"])
        .hold("/proxy/env/F/fileKeyRef", json!([ABSENT, file]));
}

#[test]
fn tracing_has_a_switch_and_needs_a_collector() {
    let edges = ["25.6.3", "25.6.4", "25.10.0", "25.10.1"];
    let path = "/var/run/linkerd/podinfo/labels";
    for (values, paths) in [
        (
            "proxy: {tracing: {enable: true, collector: {endpoint: 'c:4317'}}}",
            [ABSENT, path, path, ABSENT],
        ),
        (
            "proxy: {tracing: {enabled: true, collector: {endpoint: 'c:4317'}}}",
            [ABSENT, ABSENT, ABSENT, "denied"],
        ),
        (
            "proxy: {tracing: {enabled: true, collector: {endpoint: 'c:4317', \
             meshIdentity: {serviceAccountName: sa}}}}",
            [ABSENT, ABSENT, ABSENT, "denied"],
        ),
        (
            "proxy: {tracing: {enable: true, enabled: true, collector: \
             {meshIdentity: {serviceAccountName: sa, namespace: ns}}}}",
            [ABSENT, "denied", "denied", "denied"],
        ),
    ] {
        Case { values, ..Case::default() }
            .across(&edges)
            .env("LINKERD2_PROXY_TRACE_ATTRIBUTES_PATH", json!(paths));
    }
    let values = "proxy: {tracing: {enable: true, collector: {endpoint: 'c:4317'}}}";
    Case { values, ..Case::default() }
        .across(&["25.6.4", "25.10.0"])
        .env("LINKERD2_PROXY_TRACE_COLLECTOR_SVC_NAME", json!(ABSENT));
}

#[test]
fn values_without_a_version_have_the_release_of_the_newest_marker() {
    for version in [json!(null), json!(""), json!("dev-undefined"), json!("git-0a1b2c3d")] {
        let unmarked = json!({"linkerdVersion": version, "proxyInit": {"image": {"name": "i"}}});
        assert_eq!(release_of(&unmarked, None).release, Release::stable_2_14());
        let mut all_so_far = unmarked.clone();
        for (marker, release) in [
            ("proxy/control", Release::edge(23, 12, 4)),
            ("disableIPv6", Release::edge(24, 4, 1)),
            ("proxy/logHTTPHeaders", Release::edge(24, 6, 2)),
            ("egress", Release::edge(24, 11, 1)),
            ("proxyInjector/podAnnotations", Release::edge(25, 1, 1)),
            ("proxy/runtime", Release::edge(25, 3, 3)),
            ("proxy/metrics", Release::edge(25, 3, 4)),
            ("proxy/tracing", Release::edge(25, 6, 4)),
            ("networkValidator/securityContext", Release::edge(25, 8, 4)),
            ("proxy/securityContext", Release::edge(25, 8, 4)),
            ("podMonitor/controller/honorTimestamps", Release::edge(26, 5, 2)),
        ] {
            let mut alone = unmarked.clone();
            for tree in [&mut alone, &mut all_so_far] {
                *marker.split('/').fold(&mut *tree, |at, key| &mut at[key]) = Value::Null;
                assert_eq!(release_of(tree, None).release, release, "{marker} in {version}");
            }
        }
    }
}

#[test]
fn an_outcome_has_the_release_in_use() {
    for (version, release) in
        [("25.3.4", Release::edge(25, 3, 4)), ("stable-2.14.10", Release::stable_2_14())]
    {
        let injector = Case::default().injector(version);
        let body = br#"{"request":{"uid":"u","object":{"kind":"Pod"}}}"#;
        let answer = injector.review(body).now_or_never().expect("must not wait");
        assert_eq!(
            answer.expect("must be answered").outcome.configuration.release,
            release.to_string()
        );
    }
}
