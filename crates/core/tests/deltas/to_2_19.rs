//! Rows 25.5.5 to 25.10.2: changes in 2.19.

use serde_json::json;

use super::case::{ABSENT, Case};

#[test]
fn the_proxy_has_a_variable_with_its_pods_address() {
    Case::default()
        .across(&["25.5.4", "25.5.5"])
        .env("_pod_ip", json!([ABSENT, {"fieldRef": {"fieldPath": "status.podIP"}}]))
        .behind("_pod_ip", json!([ABSENT, "_pod_uid"]))
        .behind("_pod_nodeName", json!(["_pod_uid", "_pod_ip"]));
}

#[test]
fn the_proxy_traces() {
    let six = |service, attributes| {
        json!([
            ["ATTRIBUTES_PATH", "/var/run/linkerd/podinfo/labels"],
            ["PROTOCOL", "opentelemetry"],
            ["SERVICE_NAME", "linkerd-proxy"],
            ["COLLECTOR_SVC_ADDR", "c:4317"],
            ["COLLECTOR_SVC_NAME", service],
            ["EXTRA_ATTRIBUTES", attributes],
        ])
    };
    let fixed = "k8s.pod.ip=$(_pod_ip)\nk8s.pod.uid=$(_pod_uid)\n\
                 k8s.container.name=$(_pod_containerName)\n";
    let labels = "k8s.container.name=$(_pod_containerName)\nk8s.pod.ip=$(_pod_ip)\n\
                  k8s.pod.uid=$(_pod_uid)\nservice.name=web-1\nteam=a=b\n";
    let without_namespace = six("sa.serviceaccount.identity.linkerd.cluster.local", fixed);
    let with_namespace = six("sa.ns.serviceaccount.identity.linkerd.cluster.local", fixed);
    let mut seven = six("sa.ns.serviceaccount.identity.linkerd.cluster.local", labels);
    let annotations = json!(["ANNOTATIONS_PATH", "/var/run/linkerd/podinfo/annotations"]);
    seven.as_array_mut().expect("is a list").insert(1, annotations);
    let begin = "LINKERD2_PROXY_OUTBOUND_METRICS_HOSTNAME_LABELS";
    Case {
        values: "proxy: {tracing: {enable: true, enabled: true, collector: \
                 {endpoint: 'c:4317', meshIdentity: {serviceAccountName: sa, namespace: ns}}}}",
        pod: &[("resource.opentelemetry.io/team", "a=b")],
        labels: &[("app.kubernetes.io/name", "web"), ("app.kubernetes.io/instance", "web-1")],
        ..Case::default()
    }
    .across(&["25.6.3", "25.6.4", "25.10.0", "25.10.1", "25.10.2"])
    .family(
        "LINKERD2_PROXY_TRACE_",
        json!([[], without_namespace, without_namespace, with_namespace, seven]),
    )
    .behind("LINKERD2_PROXY_TRACE_ATTRIBUTES_PATH", json!([ABSENT, begin, begin, begin, begin]));
}

/// The row changes a default of the chart; the values decide in every release.
#[test]
fn the_values_set_the_iptables_mode() {
    for (mode, first) in [
        ("proxyInit: {iptablesMode: nft}", "--firewall-bin-path"),
        ("proxyInit: {iptablesMode: legacy}", "--ipv6=false"),
    ] {
        Case { values: mode, ..Case::default() }
            .across(&["25.8.1", "25.8.2"])
            .hold("/init/args/0", json!(first));
    }
    Case { values: "proxyInit: {iptablesMode: null}", ..Case::default() }
        .across(&["25.8.1", "25.8.2"])
        .hold("/verdict", json!("denied"));
}

#[test]
fn a_custom_security_context_is_used_without_changes() {
    let edge = ["25.8.3", "25.8.4"];
    let spec = "containers: [{name: web, securityContext: {capabilities: {drop: [ALL]}}}]";
    let default = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsGroup": 3,
        "runAsNonRoot": true,
        "runAsUser": 2102,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    for (values, custom) in [
        ("proxy: {gid: 3, securityContext: {runAsUser: 5}}", json!({"runAsUser": 5})),
        ("proxy: {gid: 3, securityContext: {}}", default.clone()),
    ] {
        Case { values, spec, ..Case::default() }
            .across(&edge)
            .hold("/proxy/securityContext", json!([default, custom]));
    }
    let own = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsGroup": 65_534,
        "runAsNonRoot": true,
        "runAsUser": 65_534,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let mut custom = own.clone();
    custom["runAsUser"] = 5.into();
    custom["privileged"] = false.into();
    for (values, before, since) in [
        ("{securityContext: {runAsUser: 5, privileged: false}}", own.clone(), custom.clone()),
        (
            "{enableSecurityContext: false, securityContext: {runAsUser: 5, privileged: false}}",
            json!(ABSENT),
            custom,
        ),
        ("{enableSecurityContext: true, securityContext: null}", own.clone(), own.clone()),
        ("{enableSecurityContext: false, securityContext: null}", json!(ABSENT), own),
    ] {
        let values = format!("cniEnabled: true\nnetworkValidator: {values}");
        Case { values: &values, ..Case::default() }
            .across(&edge)
            .hold("/network-validator/securityContext", json!([before, since]));
    }
}

#[test]
fn the_beta_native_sidecar_annotation_wins_over_the_alpha_one_and_is_inherited() {
    let edge = ["25.10.1", "25.10.2"];
    let beta = "config.beta.linkerd.io/proxy-enable-native-sidecar";
    let alpha = "config.alpha.linkerd.io/proxy-enable-native-sidecar";
    let (values, restart) = ("proxy: {nativeSidecar: false}", "/proxy/restartPolicy");
    let case = Case { values, ..Case::default() };
    Case { pod: &[(beta, "true"), (alpha, "false")], ..case }
        .across(&edge)
        .hold(restart, json!([ABSENT, "Always"]));
    Case { pod: &[(beta, "false"), (alpha, "true")], ..case }
        .across(&edge)
        .hold(restart, json!(["Always", ABSENT]));
    Case { pod: &[(beta, "perhaps"), (alpha, "true")], ..case }
        .across(&edge)
        .hold(restart, json!(["Always", ABSENT]));
    Case { namespace: &[(beta, "true")], ..case }
        .across(&edge)
        .hold(restart, json!([ABSENT, "Always"]))
        .hold(&format!("/annotations/{}", beta.replace('/', "~1")), json!([ABSENT, "true"]));
}
