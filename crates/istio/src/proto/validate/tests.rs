use super::{address::check, *};
use crate::proto::{defaults, layers::read_annotation};

/// The problems of the built-in default with these fields.
fn problems(text: &str, release: Release) -> Vec<String> {
    let given = read_annotation(text, release).expect("the test must have valid YAML");
    let mut config = defaults::proxy_config(release).clone();
    for (field, value) in given.fields() {
        if let Some(value) = value {
            config.set(field.name, Some(value.clone()));
        }
    }
    proxy_config(&config, release).map_or_else(|invalid| invalid.problems, |()| Vec::new())
}

#[test]
fn the_defaults_of_all_releases_are_valid() {
    for minor in 19..=31 {
        assert_eq!(problems("", Release::new(minor, 0)), Vec::<String>::new());
    }
}

#[test]
fn values_that_fit_are_accepted() {
    for text in [
        "tracing: {zipkin: {address: '$(HOST_IP):9411'}}",
        "tracing: {datadog: {address: '$(HOST_IP):8126'}}",
        "tracing: {lightstep: {address: 'l:1', accessToken: t}}",
        "tracing: {tlsSettings: {mode: MUTUAL, clientCertificate: c, privateKey: k}}",
        "tracing: {tlsSettings: {mode: SIMPLE, credentialName: c}}",
        "privateKeyProvider: {qat: {pollDelay: 2ms}}",
        "controlPlaneAuthPolicy: NONE",
        "statsdUdpAddress: '[::1]:8125'",
        "connectionSettings: {httpMaxConcurrentStreams: 1, http2InitialStreamWindowSize: 65535}",
    ] {
        assert_eq!(problems(text, Release::NEWEST), Vec::<String>::new(), "{text}");
    }
}

/// A document and how its first problem begins.
const BROKEN: &[(&str, &str)] = &[
    ("serviceCluster: ''", "service cluster must be specified"),
    ("drainDuration: 0s", "invalid drain duration: duration must be greater than 1ms"),
    ("drainDuration: 1000001us", "invalid drain duration: only durations to ms precision"),
    ("drainDuration: 1500ms", "drain time only supports durations to seconds precision"),
    ("discoveryAddress: istiod", "invalid discovery address: unable to split \"istiod\""),
    ("statsdUdpAddress: x", "invalid statsd udp address \"x\": unable to split"),
    ("envoyMetricsServiceAddress: x", "invalid envoy metrics service address \"x\":"),
    (
        "envoyMetricsService: {address: 'x:0'}",
        "invalid envoy metrics service address \"x:0\": port number 0",
    ),
    ("envoyAccessLogService: {address: x}", "invalid envoy access log service address \"x\":"),
    ("tracing: {zipkin: {}}", "invalid zipkin config: unable to split \"\""),
    ("tracing: {datadog: {address: 'd:x'}}", "invalid datadog config: port (x) is not a number"),
    (
        "tracing: {lightstep: {address: 'l:1'}}",
        "invalid lightstep config: access token is required",
    ),
    ("tracing: {lightstep: {accessToken: t}}", "invalid lightstep config: address is required"),
    (
        "tracing: {tlsSettings: {mode: MUTUAL, privateKey: k}}",
        "invalid tracing TLS config: client certificate required",
    ),
    (
        "tracing: {tlsSettings: {mode: MUTUAL, clientCertificate: c}}",
        "invalid tracing TLS config: private key required",
    ),
    (
        "tracing: {tlsSettings: {mode: SIMPLE, credentialName: c, caCertificates: x}}",
        "invalid tracing TLS config: cannot specify client certificates",
    ),
    (
        "tracing: {tlsSettings: {mode: SIMPLE, insecureSkipVerify: true, caCertificates: x}}",
        "invalid tracing TLS config: cannot specify CaCertificates or CredentialName",
    ),
    ("proxyAdminPort: 65536", "invalid proxy admin port: port number 65536 must be in the range"),
    (
        "controlPlaneAuthPolicy: INHERIT",
        "invalid authentication policy: unrecognized control plane auth policy \"INHERIT\"",
    ),
    ("statusPort: -1", "invalid status port: port number -1"),
    ("privateKeyProvider: {}", "invalid private key provider configuration: private key provider"),
    (
        "privateKeyProvider: {qat: {}}",
        "invalid private key provider configuration: pollDelay is required",
    ),
    (
        "privateKeyProvider: {cryptomb: {pollDelay: 0s}}",
        "invalid private key provider configuration: pollDelay must be non zero",
    ),
    (
        "connectionSettings: {httpMaxConcurrentStreams: 0}",
        "invalid connection settings: http_max_concurrent_streams",
    ),
    (
        "connectionSettings: {http2InitialStreamWindowSize: 65534}",
        "invalid connection settings: http2_initial_stream_window_size",
    ),
    (
        "connectionSettings: {listenerConnectionLimit: 0}",
        "invalid connection settings: listener_connection_limit",
    ),
    (
        "connectionSettings: {httpIdleTimeout: -1s}",
        "invalid connection settings: http_idle_timeout",
    ),
];

#[test]
fn texts_begin_as_those_of_istio() {
    for (text, expected) in BROKEN {
        let problems = problems(text, Release::NEWEST);
        let first = problems.first().map_or("", String::as_str);
        assert!(first.starts_with(expected), "{text}: {first}");
    }
}

#[test]
fn a_drain_duration_is_an_hour_at_most_before_1_22() {
    let found =
        |text: &str, minor| problems(&format!("drainDuration: {text}"), Release::new(minor, 8));
    let too_long = "drain time 1h0m5s must be <1h0m0s".to_owned();
    assert_eq!(found("1h0m5s", 19), std::slice::from_ref(&too_long));
    assert_eq!(found("1h0m5s", 21), [too_long]);
    assert_eq!(found("1h0m5s", 22), [""; 0]);
    assert_eq!(found("1h", 19), [""; 0]);
    let precision = "drain time only supports durations to seconds precision";
    assert_eq!(found("3600500ms", 19), [precision, "drain time 1h0m0.5s must be <1h0m0s"]);
}

#[test]
fn all_problems_are_listed() {
    let problems = problems("{statusPort: 70000, drainDuration: 0s}", Release::NEWEST);
    let text = Invalid { problems }.to_string();
    assert!(text.starts_with("2 errors occurred:\n\t* invalid drain duration: "), "{text}");
    assert!(text.ends_with("1..65535\n\n"), "{text}");
}

#[test]
fn names_must_not_be_empty_where_a_mesh_clears_them() {
    let mut config = defaults::proxy_config(Release::NEWEST).clone();
    for name in ["config_path", "binary_path", "service_cluster", "discovery_address"] {
        config.set(name, None);
    }
    let invalid = proxy_config(&config, Release::NEWEST).expect_err("must be invalid");
    let expected = [
        "config path must be set",
        "binary path must be set",
        "oneof service cluster or tracing service name must be specified",
        "discovery address must be set to the proxy discovery service",
    ];
    assert_eq!(invalid.problems, expected);
}

#[test]
fn addresses_have_a_port_and_a_dns_name_or_an_ip_address() {
    for address in [
        "a:1",
        "a.b.:65535",
        "istiod-1.istio-system.svc:15012",
        "10.0.0.1:1",
        "[::1]:1",
        "[fe80::1%e]:1",
        "A1:+1",
    ] {
        assert_eq!(check(address), Ok(()), "{address}");
    }
    for (address, part) in [
        ("", "missing port in address"),
        ("a", "missing port in address"),
        ("[::1]", "missing port in address"),
        ("::1:1", "too many colons in address"),
        ("[::1]:1:2", "too many colons in address"),
        ("[::1:1", "missing ']' in address"),
        ("[::1]a", "missing port in address"),
        ("a:99999999999999999999", "value out of range"),
        ("a[:1", "unexpected '[' in address"),
        ("a]:1", "unexpected ']' in address"),
        ("a:", "is not a number"),
        ("a:http", "is not a number"),
        ("a:0", "must be in the range"),
        ("a:65536", "must be in the range"),
        (":1", "is not a valid hostname"),
        ("a_b:1", "is not a valid hostname"),
        ("-a:1", "is not a valid hostname"),
        ("a..b:1", "is not a valid hostname"),
        ("a.5:1", "is not a valid hostname"),
        ("10.0.0.256:1", "is not a valid hostname"),
        ("010.0.0.1:1", "is not a valid hostname"),
    ] {
        let text = check(address).expect_err(address);
        assert!(text.contains(part), "{address}: {text}");
    }
}
