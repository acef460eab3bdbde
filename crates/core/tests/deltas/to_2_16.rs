//! Rows 24.4.1 to 24.7.4: changes in 2.16.

use serde_json::json;

use super::case::{ABSENT, Case};

const LOG: &str = "LINKERD2_PROXY_LOG";

#[test]
fn the_init_container_has_an_argument_to_disable_ipv6() {
    let edge = ["24.4.0", "24.4.1"];
    Case { values: "disableIPv6: true\nproxyInit: {iptablesMode: nft}", ..Case::default() }
        .across(&edge)
        .hold("/init/args/3", json!("iptables-nft-save"))
        .hold("/init/args/4", json!(["--incoming-proxy-port", "--ipv6=false"]))
        .hold("/init/args/5", json!(["4143", "--incoming-proxy-port"]));
    Case { values: "disableIPv6: false\nproxyInit: {iptablesMode: legacy}", ..Case::default() }
        .across(&edge)
        .hold("/init/args/0", json!("--incoming-proxy-port"));
}

#[test]
fn computed_ports_win_over_pod_inbound_ports_and_the_last_of_a_name_wins() {
    let edge = ["24.4.1", "24.4.2"];
    let spec = "containers: [{name: a, ports: [{name: http, containerPort: 8080}]}, \
                {name: b, ports: [{name: http, containerPort: 3000}]}]";
    let inbound = "config.linkerd.io/pod-inbound-ports";
    for case in [
        Case { spec, pod: &[(inbound, "1, 2")], ..Case::default() },
        Case { spec, namespace: &[(inbound, "1, 2")], ..Case::default() },
    ] {
        case.across(&edge).env("LINKERD2_PROXY_INBOUND_PORTS", json!(["1, 2", "3000,8080"]));
    }
    Case { spec, pod: &[("config.linkerd.io/opaque-ports", "http")], ..Case::default() }
        .across(&edge)
        .env("LINKERD2_PROXY_INBOUND_PORTS_DISABLE_PROTOCOL_DETECTION", json!(["8080", "3000"]));
}

#[test]
fn parameters_become_variables() {
    let [apple, interval, other] = [
        "LINKERD2_PROXY_INBOUND_SCOPE_PROTO_APPLE_SAUCE",
        "LINKERD2_PROXY_INBOUND_SERVER_HTTP2_KEEP_ALIVE_INTERVAL",
        "LINKERD2_PROXY_OUTBOUND_SCOPE_PROTO_BLUE_BERRY",
    ];
    let values = "proxy: {inbound: {scope: {proto: {appleSauce: 3.14}}, server: {http2: \
                  {keepAliveInterval: 10s, keepAliveTimeout: null}}}, \
                  outbound: {scope: {proto: {blueBerry: true}}, server: null}}";
    Case { values, ..Case::default() }
        .across(&["24.4.4", "24.4.5"])
        .env(apple, json!([ABSENT, "3.14"]))
        .env(interval, json!([ABSENT, "10s"]))
        .env(other, json!([ABSENT, "true"]))
        .behind(apple, json!([ABSENT, "LINKERD2_PROXY_OUTBOUND_CONNECT_KEEPALIVE"]))
        .behind(interval, json!([ABSENT, apple]))
        .behind(other, json!([ABSENT, interval]));
}

#[test]
fn the_proxy_listens_on_ipv6_unless_it_is_disabled() {
    let edges = ["24.5.0", "24.5.1", "24.5.2", "24.8.1", "24.8.2"];
    let (both, one) = ("127.0.0.1:14140,[::1]:14140", "127.0.0.1:14140");
    let ipv4 =
        "disableIPv6: true\nproxy: {ports: {admin: 1, control: 2, inbound: 3, outbound: 14140}}";
    let ipv6 =
        "disableIPv6: false\nproxy: {ports: {admin: 1, control: 2, inbound: 3, outbound: 14140}}";
    for (values, any, outbound) in [
        (ipv4, ["0.0.0.0", "[::]", "[::]", "[::]", "0.0.0.0"], [both, one, one, one]),
        (ipv6, ["0.0.0.0", "[::]", "[::]", "[::]", "[::]"], [both; 4]),
    ] {
        let listen = |port| json!(any.map(|address| format!("{address}:{port}")));
        let [first, second, third, fourth] = outbound;
        Case { values, ..Case::default() }
            .across(&edges)
            .env("LINKERD2_PROXY_ADMIN_LISTEN_ADDR", listen(1))
            .env("LINKERD2_PROXY_CONTROL_LISTEN_ADDR", listen(2))
            .env("LINKERD2_PROXY_INBOUND_LISTEN_ADDR", listen(3))
            .env("LINKERD2_PROXY_OUTBOUND_LISTEN_ADDR", json!(one))
            .env(
                "LINKERD2_PROXY_OUTBOUND_LISTEN_ADDRS",
                json!([ABSENT, first, second, third, fourth]),
            );
    }
}

#[test]
fn a_proxy_among_the_init_containers_is_a_sidecar() {
    for spec in [
        "{initContainers: [{name: linkerd-proxy}], containers: [{name: web}]}",
        "{initContainers: [{name: istio-proxy}], containers: [{name: web}]}",
        "{initContainers: [{name: p, image: 'cr.l5d.io/linkerd/proxy:1'}], containers: [{name: w}]}",
        "{initContainers: [{image: 'gcr.io/istio-release/proxyv2:1'}], containers: [{name: w}]}",
    ] {
        Case { spec, ..Case::default() }
            .across(&["24.5.0", "24.5.1"])
            .hold("/verdict", json!(["injected", "skipped"]))
            .hold("/reasons", json!([ABSENT, "sidecar_already_exists"]));
    }
}

#[test]
fn containers_have_a_group() {
    let edge = ["24.5.3", "24.5.4"];
    let annotation = "config.linkerd.io/proxy-gid";
    for (case, gid) in [
        (Case { values: "proxy: {gid: 1000}", ..Case::default() }, 1000),
        (Case { values: "proxy: {gid: 0}", ..Case::default() }, 0),
        (Case { values: "proxy: {gid: null}", ..Case::default() }, 0),
        (Case { pod: &[(annotation, "2000")], ..Case::default() }, 2000),
        (Case { namespace: &[(annotation, "2000")], ..Case::default() }, 2000),
    ] {
        case.across(&edge)
            .hold("/init/flags/--proxy-gid", json!([ABSENT, gid.to_string()]))
            .hold("/init/flags/2102", json!(["--inbound-ports-to-ignore", "--proxy-gid"]))
            .hold("/proxy/securityContext/runAsGroup", json!([ABSENT, gid]));
    }
    for case in [
        Case { values: "proxy: {gid: -1}", ..Case::default() },
        Case { values: "proxy: {gid: 1000}", pod: &[(annotation, "-7")], ..Case::default() },
        Case { pod: &[(annotation, "9223372036854775807")], ..Case::default() },
    ] {
        case.across(&edge)
            .hold("/init/flags/--proxy-gid", json!(ABSENT))
            .hold("/proxy/securityContext/runAsGroup", json!(ABSENT));
    }
    for (values, path, group) in [
        ("proxyInit: {runAsGroup: 777}", "/init", 777),
        ("proxyInit: {runAsGroup: 0}", "/init", 65_534),
        ("proxyInit: {runAsGroup: 777, runAsRoot: true}", "/init", 0),
        ("cniEnabled: true", "/network-validator", 65_534),
    ] {
        let pointer = format!("{path}/securityContext/runAsGroup");
        Case { values, ..Case::default() }.across(&edge).hold(&pointer, json!([ABSENT, group]));
    }
}

#[test]
fn the_proxy_can_be_shut_down_through_its_admin_port() {
    let edge = ["24.6.1", "24.6.2"];
    let variable = "LINKERD2_PROXY_SHUTDOWN_ENDPOINT_ENABLED";
    let annotation = "config.linkerd.io/proxy-admin-shutdown";
    let enabled = "proxy: {enableShutdownEndpoint: true}";
    for (case, value) in [
        (Case { values: enabled, ..Case::default() }, "true"),
        (Case { values: enabled, pod: &[(annotation, "disabled")], ..Case::default() }, "false"),
        (Case { pod: &[(annotation, "enabled")], ..Case::default() }, "true"),
        (Case { namespace: &[(annotation, "enabled")], ..Case::default() }, "true"),
        (Case::default(), "false"),
    ] {
        let before = "_pod_nodeName";
        case.across(&edge)
            .env(variable, json!([ABSENT, value]))
            .behind(variable, json!([ABSENT, before]))
            .behind(LOG, json!([before, variable]));
    }
    Case { pod: &[(annotation, "true")], ..Case::default() }
        .across(&edge)
        .env(variable, json!([ABSENT, "false"]))
        .hold("/warned", json!([[], [annotation]]));
}

#[test]
fn headers_stay_out_of_the_log() {
    let edges = ["24.6.1", "24.6.2", "24.6.3", "24.6.4", "24.8.0", "24.8.1"];
    let client = "warn,linkerd_proxy_http::client[{headers}]=off";
    let all = "warn,[{headers}]=off,[{request}]=off";
    let annotation = "config.linkerd.io/proxy-log-http-headers";
    let off = "proxy: {logLevel: warn, logHTTPHeaders: 'off'}";
    let off_log = json!(["warn", client, client, client, client, all]);
    Case { values: off, ..Case::default() }.across(&edges).env(LOG, off_log.clone());
    for values in [
        "proxy: {logLevel: warn, logHTTPHeaders: ''}",
        "proxy: {logLevel: warn, logHTTPHeaders: null}",
    ] {
        Case { values, ..Case::default() }
            .across(&edges)
            .env(LOG, json!(["warn", "denied", "denied", client, client, all]));
    }
    let insecure = "proxy: {logLevel: warn, logHTTPHeaders: insecure}";
    for case in [
        Case { values: insecure, ..Case::default() },
        Case { values: off, pod: &[(annotation, "insecure")], ..Case::default() },
        Case { values: off, namespace: &[(annotation, "insecure")], ..Case::default() },
    ] {
        case.across(&edges).env(LOG, json!("warn"));
    }
    Case { values: insecure, pod: &[(annotation, "off")], ..Case::default() }
        .across(&edges)
        .env(LOG, off_log);
    let denied = json!(["injected", "denied", "denied", "denied", "denied", "denied"]);
    for case in [
        Case { values: "proxy: {logHTTPHeaders: 'on'}", ..Case::default() },
        Case { pod: &[(annotation, "Insecure")], ..Case::default() },
    ] {
        case.across(&edges).hold("/verdict", denied.clone());
    }
}

#[test]
fn init_container_and_validator_have_the_proxys_resources() {
    let bounds = json!({"cpu": "100m", "memory": "20Mi"});
    let resources = json!([{"limits": bounds, "requests": bounds}, {"limits": {"cpu": "300m"}}]);
    for (values, container) in [
        ("proxy: {resources: {cpu: {limit: 300m}}}", "/init"),
        ("cniEnabled: true\nproxy: {resources: {cpu: {limit: 300m}}}", "/network-validator"),
    ] {
        Case { values, ..Case::default() }
            .across(&["24.6.3", "24.6.4"])
            .hold(&format!("{container}/resources"), resources.clone());
    }
}

#[test]
fn audit_is_an_inbound_policy() {
    let annotation = "config.linkerd.io/default-inbound-policy";
    for case in [
        Case { pod: &[(annotation, "audit")], ..Case::default() },
        Case { namespace: &[(annotation, "audit")], ..Case::default() },
    ] {
        case.across(&["24.7.2", "24.7.3"])
            .env("LINKERD2_PROXY_INBOUND_DEFAULT_POLICY", json!(["all-unauthenticated", "audit"]))
            .hold("/warned", json!([[annotation], []]));
    }
}

#[test]
fn the_validators_addresses_follow_ipv6() {
    let edges = ["24.7.3", "24.7.4", "24.8.1", "24.8.2"];
    for (values, connect, listen) in [
        ("cniEnabled: true\ndisableIPv6: true", "1.1.1.1:20001", "0.0.0.0:4140"),
        ("cniEnabled: true\ndisableIPv6: false", "[fd00::1]:20001", "[::]:4140"),
    ] {
        Case { values, ..Case::default() }
            .across(&edges)
            .hold(
                "/network-validator/flags/--connect-addr",
                json!([null, connect, connect, connect]),
            )
            .hold("/network-validator/flags/--listen-addr", json!([null, null, null, listen]));
    }
    let values = "cniEnabled: true\nnetworkValidator: {connectAddr: 'c:1', listenAddr: 'l:2'}";
    Case { values, ..Case::default() }
        .across(&edges)
        .hold("/network-validator/flags/--connect-addr", json!("c:1"))
        .hold("/network-validator/flags/--listen-addr", json!("l:2"));
}
