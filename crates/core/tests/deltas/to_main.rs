//! Rows 25.11.1 to 26.7.1: changes in 2.20 and main.

use serde_json::json;

use super::case::{ABSENT, Case};

#[test]
fn tracing_mounts_the_pods_labels() {
    let edges = ["25.6.3", "25.6.4", "25.10.0", "25.10.1", "25.11.0", "25.11.1"];
    let values = "proxy: {tracing: {enable: true, enabled: true, collector: \
                  {endpoint: 'c:4317', meshIdentity: {serviceAccountName: sa, namespace: ns}}}}";
    let volume = json!({"name": "linkerd-podinfo", "downwardAPI": {"items":
        [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}});
    let path = "/var/run/linkerd/podinfo";
    Case { values, ..Case::default() }
        .across(&edges)
        .hold("/volumes/linkerd-podinfo", json!([ABSENT, volume, volume, ABSENT, ABSENT, volume]))
        .hold("/proxy/mounts/linkerd-podinfo", json!([ABSENT, path, path, ABSENT, ABSENT, path]));
    Case::default().across(&edges).hold("/volumes/linkerd-podinfo", json!(ABSENT));
}

#[test]
fn the_init_container_runs_the_proxys_image() {
    let edge = ["25.11.2", "25.11.3"];
    let values = "proxy: {image: {name: p, version: v1, pullPolicy: Always}}\n\
                  proxyInit: {image: {name: i, version: v2, pullPolicy: Never}}";
    let case = Case { values, ..Case::default() };
    case.across(&edge)
        .hold("/init/image", json!(["i:v2", "p:v1"]))
        .hold("/init/imagePullPolicy", json!(["Never", "Always"]))
        .hold("/init/command", json!([ABSENT, ["/usr/lib/linkerd/linkerd2-proxy-init"]]));
    let image = "config.linkerd.io/init-image";
    let version = "config.linkerd.io/init-image-version";
    Case { pod: &[(image, "x"), (version, "y")], ..case }
        .across(&edge)
        .hold("/init/image", json!(["x:y", "p:v1"]));
    Case { namespace: &[(image, "x"), (version, "y")], ..case }
        .across(&edge)
        .hold("/init/image", json!(["x:y", "p:v1"]))
        .hold("/annotations/config.linkerd.io~1init-image", json!(["x", ABSENT]))
        .hold("/annotations/config.linkerd.io~1init-image-version", json!(["y", ABSENT]));
    let policy = "config.linkerd.io/image-pull-policy";
    for (pod, pulled) in
        [(&[(policy, "IfNotPresent")], "IfNotPresent"), (&[(policy, "")], "IfNotPresent")]
    {
        Case { pod, ..case }
            .across(&edge)
            .hold("/init/imagePullPolicy", json!(pulled))
            .hold("/proxy/imagePullPolicy", json!(pulled));
    }
}

#[test]
fn ports_of_init_containers_are_used() {
    let edge = ["25.12.1", "25.12.2"];
    let spec = "
initContainers:
- name: db
  ports: [{name: db, containerPort: 3306}]
  readinessProbe: {httpGet: {port: 9000}}
  livenessProbe: {httpGet: {port: 10000}}
containers: [{name: web, ports: [{containerPort: 80}]}]";
    let opaque = "LINKERD2_PROXY_INBOUND_PORTS_DISABLE_PROTOCOL_DETECTION";
    Case { spec, ..Case::default() }
        .across(&edge)
        .env("LINKERD2_PROXY_INBOUND_PORTS", json!(["80", "10000,3306,80,9000"]))
        .env(opaque, json!(["25,587,3306,4444,5432,6379,9300,11211", "3306"]))
        .hold("/annotations/config.linkerd.io~1opaque-ports", json!([ABSENT, "3306"]));
    let annotation = "config.linkerd.io/opaque-ports";
    Case { spec, pod: &[(annotation, "db,80")], ..Case::default() }
        .across(&edge)
        .env(opaque, json!(["80", "3306,80"]))
        .hold("/warned", json!([[annotation], []]));
}

#[test]
fn variables_can_be_annotated() {
    let annotation = "config.linkerd.io/proxy-additional-env";
    let values = "proxy: {additionalEnv: [{name: A, value: values}, {name: B, value: values}], \
                  experimentalEnv: [{name: E, value: values}]}";
    Case {
        values,
        namespace: &[(annotation, r#"[{"name":"A","value":"ns"},{"name":"C","value":"ns"}]"#)],
        pod: &[(annotation, r#"[{"name":"C","value":"pod"},{"name":"D","value":"pod"}]"#)],
        ..Case::default()
    }
    .across(&["26.4.2", "26.4.3"])
    .env("A", json!(["values", "ns"]))
    .env("B", json!("values"))
    .env("C", json!([ABSENT, "pod"]))
    .env("D", json!([ABSENT, "pod"]))
    .behind("B", json!("A"))
    .behind("C", json!([ABSENT, "B"]))
    .behind("D", json!([ABSENT, "C"]))
    .behind("E", json!(["B", "D"]));
    Case { values, pod: &[(annotation, r#"[{"name":7}]"#)], ..Case::default() }
        .across(&["26.4.2", "26.4.3"])
        .behind("E", json!("B"))
        .hold("/warned", json!([[], [annotation]]));
}

// 26.4.4, a metric label: injectd has no labels from annotations (`docs/differences.md`).

// 26.5.2 also changes the default of nativeSidecar: the golden case `pod-native`.
#[test]
fn the_stable_native_sidecar_annotation_wins_over_the_others() {
    let edge = ["26.5.1", "26.5.2"];
    let stable = "config.linkerd.io/proxy-enable-native-sidecar";
    let beta = "config.beta.linkerd.io/proxy-enable-native-sidecar";
    let alpha = "config.alpha.linkerd.io/proxy-enable-native-sidecar";
    let restart = "/proxy/restartPolicy";
    let off = Case { values: "proxy: {nativeSidecar: false}", ..Case::default() };
    for case in [
        Case { pod: &[(stable, "true"), (beta, "false")], ..off },
        Case { pod: &[(stable, "true"), (alpha, "false")], ..off },
        Case { pod: &[(alpha, "false")], namespace: &[(stable, "true")], ..off },
        Case { pod: &[(beta, "false")], namespace: &[(stable, "true")], ..off },
    ] {
        case.across(&edge).hold(restart, json!([ABSENT, "Always"]));
    }
    Case { namespace: &[(stable, "true"), (beta, "false"), (alpha, "false")], ..off }
        .across(&edge)
        .hold(restart, json!([ABSENT, "Always"]))
        .hold(
            "/annotations/config.linkerd.io~1proxy-enable-native-sidecar",
            json!([ABSENT, "true"]),
        );
    Case { namespace: &[(beta, "true")], ..off }
        .across(&edge)
        .hold(restart, json!(["Always", ABSENT]))
        .hold(
            "/annotations/config.beta.linkerd.io~1proxy-enable-native-sidecar",
            json!(["true", ABSENT]),
        );
    Case { pod: &[(beta, "true")], ..off }.across(&edge).hold(restart, json!("Always"));
    let wait = "config.alpha.linkerd.io/proxy-wait-before-exit-seconds";
    for case in [
        Case { values: "proxy: {waitBeforeExitSeconds: 5}", ..Case::default() },
        Case { pod: &[(wait, "5")], ..Case::default() },
    ] {
        case.across(&edge)
            .hold(restart, json!(["denied", "Always"]))
            .hold("/proxy/lifecycle", json!(["denied", ABSENT]));
    }
}

// 26.6.1, 10 MiB: `webhook.rs`, `a_body_of_10_mib_is_read_and_a_larger_one_is_not`.

#[test]
fn the_collectors_name_ends_in_the_trust_domain() {
    let name = "LINKERD2_PROXY_TRACE_COLLECTOR_SVC_NAME";
    let begin = "sa.ns.serviceaccount.identity.linkerd";
    for (domain, end) in [("example.org", "example.org"), ("''", "cluster.example")] {
        let values = format!(
            "identityTrustDomain: {domain}\nclusterDomain: cluster.example\n\
             proxy: {{tracing: {{enabled: true, collector: {{endpoint: 'c:4317', \
             meshIdentity: {{serviceAccountName: sa, namespace: ns}}}}}}}}"
        );
        Case { values: &values, ..Case::default() }
            .across(&["26.7.0", "26.7.1"])
            .env(name, json!([format!("{begin}.cluster.example"), format!("{begin}.{end}")]));
    }
}
