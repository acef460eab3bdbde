//! Rows 23.11.2 to 24.2.2: changes in 2.15.

use serde_json::json;

use super::case::{ABSENT, Case};

#[test]
fn the_debug_container_has_probes() {
    let probe = json!({"exec": {"command": ["true"]}});
    Case { pod: &[("config.linkerd.io/enable-debug-sidecar", "true")], ..Case::default() }
        .across(&["23.11.1", "23.11.2"])
        .hold("/debug/livenessProbe", json!([ABSENT, probe]))
        .hold("/debug/readinessProbe", json!([ABSENT, probe]));
}

#[test]
fn the_proxy_may_be_a_native_sidecar() {
    let edge = ["23.11.3", "23.11.4"];
    let wait = json!(["/usr/lib/linkerd/linkerd-await", "--timeout=2m", "--port=4191"]);
    let probe = json!({"httpGet": {"path": "/ready", "port": 4191}, "initialDelaySeconds": 3,
        "periodSeconds": 5, "failureThreshold": 7});
    let paths = json!(["/spec/initContainers/-", "/spec/initContainers/0"]);
    let values = "proxy: {nativeSidecar: true, await: true, startupProbe: \
                  {initialDelaySeconds: 3, periodSeconds: 5, failureThreshold: 7}}";
    Case { values, ..Case::default() }
        .across(&edge)
        .hold("/init/path", paths.clone())
        .hold("/proxy/path", json!(["/spec/containers/0", "/spec/initContainers/1"]))
        .hold("/proxy/restartPolicy", json!([ABSENT, "Always"]))
        .hold("/proxy/startupProbe", json!([ABSENT, probe]))
        .hold("/proxy/lifecycle", json!([{"postStart": {"exec": {"command": wait}}}, ABSENT]));
    Case { values: "proxy: {nativeSidecar: true, await: false}", ..Case::default() }
        .across(&edge)
        .hold("/proxy/path", json!(["/spec/containers/-", "/spec/initContainers/1"]))
        .hold("/proxy/startupProbe", json!(ABSENT));
    Case { values: "cniEnabled: true\nproxy: {nativeSidecar: true}", ..Case::default() }
        .across(&edge)
        .hold("/network-validator/path", paths);
    let alpha = "config.alpha.linkerd.io/proxy-enable-native-sidecar";
    let values = "proxy: {nativeSidecar: false}";
    Case { values, pod: &[(alpha, "true")], ..Case::default() }
        .across(&edge)
        .hold("/proxy/restartPolicy", json!([ABSENT, "Always"]));
    let values = "proxy: {nativeSidecar: true, waitBeforeExitSeconds: 5}";
    Case { values, ..Case::default() }
        .across(&edge)
        .hold("/verdict", json!(["injected", "denied"]));
}

#[test]
fn control_streams_are_always_bounded() {
    let edge = ["23.12.3", "23.12.4"];
    let prefix = "LINKERD2_PROXY_CONTROL_STREAM";
    let [initial, idle, lifetime] =
        ["INITIAL_TIMEOUT", "IDLE_TIMEOUT", "LIFETIME"].map(|name| format!("{prefix}_{name}"));
    let values = "proxy: {control: {streams: {initialTimeout: 7s, idleTimeout: 8m, lifetime: 9h}}}";
    Case { values, ..Case::default() }
        .across(&edge)
        .env(&initial, json!([ABSENT, "7s"]))
        .env(&idle, json!([ABSENT, "8m"]))
        .env(&lifetime, json!([ABSENT, "9h"]))
        .behind(&initial, json!([ABSENT, "LINKERD2_PROXY_POLICY_CLUSTER_NETWORKS"]))
        .behind(&idle, json!([ABSENT, initial]))
        .behind(&lifetime, json!([ABSENT, idle]));
    Case { values: "proxy: {control: null}", ..Case::default() }
        .across(&edge)
        .env(&initial, json!([ABSENT, ""]))
        .env(&idle, json!([ABSENT, ""]))
        .env(&lifetime, json!([ABSENT, ""]));
}

#[test]
fn the_policy_workload_is_json() {
    let json = "{\"ns\":\"$(_pod_ns)\", \"pod\":\"$(_pod_name)\"}\n";
    Case::default()
        .across(&["24.1.0", "24.1.1"])
        .env("LINKERD2_PROXY_POLICY_WORKLOAD", json!(["$(_pod_ns):$(_pod_name)", json]));
}

#[test]
fn additional_then_experimental_variables_come_last() {
    let values = "proxy: {shutdownGracePeriod: 1s, additionalEnv: [{name: A, value: a}], \
                  experimentalEnv: [{name: E, value: e}]}";
    let last = "LINKERD2_PROXY_SHUTDOWN_GRACE_PERIOD";
    Case { values, ..Case::default() }
        .across(&["24.1.1", "24.1.2", "24.2.2", "24.2.3"])
        .env("A", json!([ABSENT, ABSENT, ABSENT, "a"]))
        .env("E", json!([ABSENT, "e", "e", "e"]))
        .behind("A", json!([ABSENT, ABSENT, ABSENT, last]))
        .behind("E", json!([ABSENT, last, last, "A"]))
        .hold("/proxy/last", json!([last, "E", "E", "E"]));
}

#[test]
fn probe_delays_and_timeouts_come_from_the_values() {
    let probe = |path| json!({"path": path, "port": 4191});
    let live = json!([
        {"httpGet": probe("/live"), "initialDelaySeconds": 10},
        {"httpGet": probe("/live"), "initialDelaySeconds": 11, "timeoutSeconds": 4},
    ]);
    let ready = json!([
        {"httpGet": probe("/ready"), "initialDelaySeconds": 2},
        {"httpGet": probe("/ready"), "initialDelaySeconds": 12, "timeoutSeconds": 5},
    ]);
    let values = "proxy: {livenessProbe: {initialDelaySeconds: 11, timeoutSeconds: 4}, \
                  readinessProbe: {initialDelaySeconds: 12, timeoutSeconds: 5}}";
    Case { values, ..Case::default() }
        .across(&["24.2.1", "24.2.2"])
        .hold("/proxy/livenessProbe", live)
        .hold("/proxy/readinessProbe", ready);
}
