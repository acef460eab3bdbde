//! Rows 24.10.1 to 25.3.4: changes in 2.17 and 2.18.

use serde_json::{Value, json};

use super::case::{ABSENT, Case};

#[test]
fn connections_have_user_timeouts() {
    let accept = "LINKERD2_PROXY_INBOUND_ACCEPT_USER_TIMEOUT";
    let connect = "LINKERD2_PROXY_OUTBOUND_CONNECT_USER_TIMEOUT";
    Case::default()
        .across(&["24.10.0", "24.10.1"])
        .env(accept, json!([ABSENT, "30s"]))
        .env(connect, json!([ABSENT, "30s"]))
        .behind(accept, json!([ABSENT, "LINKERD2_PROXY_OUTBOUND_CONNECT_KEEPALIVE"]))
        .behind(connect, json!([ABSENT, accept]));
}

#[test]
fn the_proxy_has_variables_with_its_pods_uid_and_its_own_name() {
    Case::default()
        .across(&["25.1.0", "25.1.1"])
        .env("_pod_uid", json!([ABSENT, {"fieldRef": {"fieldPath": "metadata.uid"}}]))
        .env("_pod_containerName", json!([ABSENT, "linkerd-proxy"]))
        .behind("_pod_uid", json!([ABSENT, "_pod_ns"]))
        .behind("_pod_containerName", json!([ABSENT, "_pod_nodeName"]));
}

/// Deliberately in all releases: `unescaped-text` in `docs/differences.md`.
#[test]
fn a_log_level_is_written_as_it_is() {
    let level = "config.linkerd.io/proxy-log-level";
    let values = "proxy: {logHTTPHeaders: insecure}";
    Case { values, pod: &[(level, "warn\",\\n'\n")], ..Case::default() }
        .across(&["24.6.1", "24.6.2", "25.1.0", "25.1.1"])
        .env("LINKERD2_PROXY_LOG", json!("warn\",\\n'\n"));
}

#[test]
fn a_close_wait_timeout_needs_an_init_container_that_runs_as_root() {
    let edge = ["25.1.0", "25.1.1"];
    let annotation = "config.linkerd.io/close-wait-timeout";
    for case in [
        Case { values: "proxyInit: {closeWaitTimeoutSecs: 30}", ..Case::default() },
        Case { pod: &[(annotation, "30s")], ..Case::default() },
    ] {
        case.across(&edge)
            .hold("/init/flags/--timeout-close-wait-secs", json!(["30", "denied"]))
            .hold("/init/securityContext/privileged", json!([true, "denied"]));
        let values = "proxyInit: {closeWaitTimeoutSecs: 30, runAsRoot: true}";
        Case { values, ..case }
            .across(&edge)
            .hold("/init/flags/--timeout-close-wait-secs", json!("30"));
    }
    for case in [
        Case { pod: &[(annotation, "soon")], ..Case::default() },
        Case { namespace: &[(annotation, "30s")], ..Case::default() },
        Case { values: "cniEnabled: true", pod: &[(annotation, "30s")], ..Case::default() },
    ] {
        case.across(&edge).hold("/verdict", json!("injected"));
    }
}

// 25.1.1, the TLS minimum: `webhook.rs`, `tls_1_2_is_refused`.

#[test]
fn cores_are_counted_by_workers() {
    let one = json!([["", "1"], ["_MIN", "1"]]);
    let two = json!([["", "2"], ["_MIN", "2"]]);
    for (values, before, since) in [
        ("proxy: {cores: 2, runtime: {workers: {maximum: 4}}}", json!([["", "2"]]), two.clone()),
        (
            "proxy: {runtime: {workers: {minimum: 2, maximum: 4, maximumCPURatio: 0.5}}}",
            json!([]),
            json!([["", "2"], ["_MIN", "2"], ["_MAX", "4"], ["_MAX_RATIO", "0.5"]]),
        ),
        (
            "proxy: {runtime: {workers: {minimum: null, maximum: 4}}}",
            json!([]),
            json!([["", "1"], ["_MIN", "1"], ["_MAX", "4"]]),
        ),
        ("proxy: {runtime: {workers: {minimum: null}}}", json!([]), json!([])),
        ("proxy: {runtime: null}", json!([]), json!([])),
    ] {
        must_have_cores(Case { values, ..Case::default() }, &before, &since);
    }
    let request = "config.linkerd.io/proxy-cpu-request";
    let limit = "config.linkerd.io/proxy-cpu-limit";
    let ratio = "config.linkerd.io/proxy-cpu-ratio-limit";
    let (maximum, share) = (["_MAX", "3"], ["_MAX_RATIO", "0.25"]);
    for (case, before, since) in [
        (Case { pod: &[(request, "1500m")], ..Case::default() }, json!([]), two),
        (
            Case { namespace: &[(limit, "2500m")], ..Case::default() },
            json!([["", "3"]]),
            json!([["", "1"], ["_MIN", "1"], maximum]),
        ),
        (
            Case { pod: &[(ratio, "0.25")], ..Case::default() },
            json!([]),
            json!([["", "1"], ["_MIN", "1"], share]),
        ),
        (Case { namespace: &[(ratio, "0.25")], ..Case::default() }, json!([]), one),
    ] {
        must_have_cores(case, &before, &since);
    }
    Case { pod: &[(ratio, "1")], ..Case::default() }
        .across(&["25.3.2", "25.3.3"])
        .hold("/warned", json!([[], [ratio]]));
}

fn must_have_cores(case: Case<'_>, before: &Value, since: &Value) {
    let behind = |cores: &Value| if *cores == json!([]) { ABSENT } else { "_pod_containerName" };
    case.across(&["25.3.2", "25.3.3"])
        .family("LINKERD2_PROXY_CORES", json!([before, since]))
        .behind("LINKERD2_PROXY_CORES", json!([behind(before), behind(since)]));
}

#[test]
fn the_debug_image_can_be_annotated() {
    let annotations = &[
        ("config.linkerd.io/enable-debug-sidecar", "true"),
        ("config.linkerd.io/debug-image", "example.org/debug"),
        ("config.linkerd.io/debug-image-version", "v9"),
        ("config.linkerd.io/debug-image-pull-policy", "Always"),
    ];
    let edge = ["25.3.2", "25.3.3"];
    let own = |edge| format!("cr.l5d.io/linkerd/debug:edge-{edge}");
    Case { pod: annotations, ..Case::default() }
        .across(&edge)
        .hold("/debug/image", json!([own(edge[0]), "example.org/debug:v9"]))
        .hold("/debug/imagePullPolicy", json!(["IfNotPresent", "Always"]));
    Case { namespace: annotations, ..Case::default() }
        .across(&edge)
        .hold("/debug/image", json!(edge.map(own)))
        .hold("/debug/imagePullPolicy", json!("IfNotPresent"));
}

#[test]
fn metrics_may_have_hostnames() {
    let variable = "LINKERD2_PROXY_OUTBOUND_METRICS_HOSTNAME_LABELS";
    let annotation = "config.linkerd.io/proxy-metrics-hostname-labels";
    let on = "proxy: {metrics: {hostnameLabels: true}}";
    for (case, value) in [
        (Case::default(), "false"),
        (Case { values: on, ..Case::default() }, "true"),
        (Case { values: on, pod: &[(annotation, "F")], ..Case::default() }, "false"),
        (Case { values: on, pod: &[(annotation, "no")], ..Case::default() }, "true"),
        (Case { pod: &[(annotation, "true")], ..Case::default() }, "true"),
        (Case { namespace: &[(annotation, "1")], ..Case::default() }, "true"),
    ] {
        case.across(&["25.3.3", "25.3.4"])
            .env(variable, json!([ABSENT, value]))
            .behind(variable, json!([ABSENT, "LINKERD2_PROXY_OUTBOUND_CONNECT_USER_TIMEOUT"]));
    }
}
