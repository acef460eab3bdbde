//! Pods with errors that no API server lets pass.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    super::{native_move::native_move, process},
    facts,
};
use crate::{
    budget::Budget,
    patch::tests::{patched, random::Random},
    process::Facts,
    reapply::reapply,
    release::Release,
};

/// A pod that all steps change.
fn pod() -> Value {
    let probers = r#"{"/app-health/app/livez":{"httpGet":{"port":1}}}"#;
    json!({
        "metadata": {
            "labels": {"topology.istio.io/network": "n"},
            "annotations": {
                "prometheus.io/port": "8080",
                "prometheus.istio.io/scrape-targets": "8080:/a,9090",
                "proxy.istio.io/overrides": r#"{"containers":[{"name":"istio-proxy"}]}"#,
                "sidecar.istio.io/nativeSidecar": "true",
                "sidecar.istio.io/rewriteAppHTTPProbers": "true",
                "sidecar.istio.io/status": r#"{"containers":["other"],"initContainers":null}"#,
                "status.sidecar.istio.io/port": "15020",
            },
        },
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "ports": [{"name": "http", "containerPort": 80}],
                    "livenessProbe": {"httpGet": {"port": "http", "scheme": "HTTPS"}},
                    "readinessProbe": {"tcpSocket": {"port": 1}, "timeoutSeconds": 2},
                    "startupProbe": {"grpc": {"port": 2}},
                    "lifecycle": {"preStop": {"httpGet": {"port": 3}}},
                },
                {
                    "name": "istio-proxy",
                    "image": "auto",
                    "env": [
                        {"name": "ISTIO_KUBE_APP_PROBERS", "value": probers},
                        {"name": "ENVOY_SECURE_MERGED_METRICS_PORT", "value": "15091"},
                    ],
                    "securityContext": {"runAsUser": 5, "runAsGroup": 6},
                    "resources": {"limits": {"cpu": "1000m"}},
                },
            ],
            "initContainers": [
                {"name": "first"},
                {"name": "istio-init", "args": ["-u", "1337"], "securityContext": {}},
            ],
        },
    })
}

fn rendered() -> Value {
    json!({"spec": {
        "containers": [{"name": "istio-proxy"}],
        "initContainers": [{"name": "istio-init"}, {"name": "istio-proxy"}],
        "volumes": [{"name": "v"}],
    }})
}

/// The answer is whether the pod is injected.
fn inject(pod: &Value, rendered: &Value, facts: &Facts<'_>) -> bool {
    let mut injected = pod.clone();
    native_move(&mut injected, rendered, true, facts.release);
    let result = reapply(&mut injected, rendered, pod, facts, &Budget::of(pod, &|| false)).is_ok()
        && process(&mut injected, rendered, facts).is_ok();
    patched(pod, &injected);
    result
}

#[test]
fn no_error_in_a_pod_or_a_template_is_a_panic() {
    let mut random = Random::new(11);
    let environment = BTreeMap::from([("ISTIO_META_NETWORK".to_owned(), "n".to_owned())]);
    let mut injected = 0;
    for round in 0..1_300_u16 {
        let (mut pod, mut rendered) = (pod(), rendered());
        for _ in 0..random.below(4) {
            random.spoil(&mut pod);
        }
        if random.below(3) == 0 {
            random.spoil(&mut rendered);
        }
        let facts = Facts {
            release: Release::new(19 + round % 13, 0),
            tproxy: round % 2 == 0,
            prometheus_merge: true,
            environment: &environment,
            ..facts()
        };
        injected += usize::from(inject(&pod, &rendered, &facts));
    }
    assert!(injected > 400, "{injected}");
}
