use super::*;

fn values(change: &str) -> Result<Values> {
    values_in(Release::NEWEST, change)
}

fn values_in(release: Release, change: &str) -> Result<Values> {
    let mut tree = parse_tree(DEFAULT_VALUES).expect("built-in values");
    injectd_testkit::merge(&mut tree, parse_tree(change)?);
    Values::from_tree(&tree, release)
}

#[test]
fn scalars_become_strings_where_a_string_is_wanted() {
    for (yaml, text) in [
        ("3306", "3306"),
        ("1.10", "1.1"),
        ("true", "true"),
        ("off", "false"),
        ("0777", "511"),
        ("1_000", "1000"),
        ("null", ""),
        ("1e6", "1e+06"),
        ("'0777'", "0777"),
    ] {
        let values = values(&format!("proxy: {{opaquePorts: {yaml}}}")).expect("values");
        assert_eq!(values.proxy.opaque_ports, text, "{yaml}");
    }
}

#[test]
fn a_wrong_type_names_the_key_the_expected_type_and_the_value() {
    for (change, message) in [
        ("cniEnabled: 'false'", r#"cniEnabled: expected a boolean, found the string "false""#),
        ("proxy: {uid: '7'}", r#"proxy.uid: expected an integer, found the string "7""#),
        ("proxy: {uid: 7.5}", "proxy.uid: expected an integer, found the number 7.5"),
        ("proxy: {opaquePorts: [1]}", "proxy.opaquePorts: expected a string, found a list"),
        ("proxy: 7", "proxy: expected a map, found the number 7"),
        ("proxy: null", "proxy: missing; use the complete values of a Linkerd installation"),
        (
            "proxyInit: null",
            "proxyInit: missing; use the complete values of a Linkerd installation",
        ),
        (
            "proxy: {additionalEnv: [{name: [x]}]}",
            "proxy.additionalEnv: expected a list of environment variables, \
             found an invalid one: [0].name is not a string",
        ),
    ] {
        assert_eq!(values(change).expect_err(change).to_string(), message);
    }
    assert!(values("proxy: {uid: 2102.0}").is_ok());
}

#[test]
fn a_file_without_values_is_not_printed() {
    for (file, found) in [("-----BEGIN PRIVATE KEY-----", "a single value"), ("[secret]", "a list")]
    {
        let tree = parse_tree(file).expect("YAML");
        let error = Values::from_tree(&tree, Release::NEWEST).expect_err(file);
        assert_eq!(error.to_string(), format!("the whole file: expected a map, found {found}"));
    }
}

#[test]
fn keys_match_in_any_case_and_the_last_of_two_wins() {
    let tree = parse_tree(
        "identityTrustDomain: x\nPROXY: {Image: {NAME: a}, logLevel: b, logLevel: c}\nproxyInit: {}",
    );
    let values = Values::from_tree(&tree.expect("YAML"), Release::NEWEST).expect("values");
    assert_eq!(values.proxy.image.name, "a");
    assert_eq!(values.proxy.log_level, "c");
}

#[test]
fn a_release_ignores_the_keys_of_others() {
    let older =
        "proxy: {logHTTPHeaders: [1], runtime: 7, livenessProbe: 7, tracing: 7, outbound: 7}";
    let newer = "proxy: {tracing: {enable: 7}}\nproxyInit: {image: 7, resources: 7}";
    let oldest = Release::stable_2_14();
    let proxy = values_in(oldest, older).expect("older values").proxy;
    assert_eq!(proxy.log_http_headers, "");
    assert_eq!((proxy.workers, proxy.tracing), (Workers::default(), Tracing::default()));
    assert_eq!(proxy.liveness_probe.initial_delay_seconds, 10);
    assert_eq!(proxy.parameters, []);
    let init = values(newer).expect("newer values").proxy_init;
    assert_eq!((init.image, init.resources.cpu.limit.as_str()), (None, "100m"));
    assert!(values(older).is_err() && values_in(oldest, newer).is_err());
}

#[test]
fn missing_optional_sections_have_the_charts_values() {
    let change = "proxy: {metrics: null, tracing: null, livenessProbe: null, resources: null}\n\
                  debugContainer: null";
    let values = values(change).expect("values");
    assert_eq!(values.proxy.liveness_probe.initial_delay_seconds, 10);
    assert_eq!(values.debug_image.name, "cr.l5d.io/linkerd/debug");
    assert!(!values.proxy.tracing.enabled && !values.proxy.hostname_labels);
}

#[test]
fn parameters_are_variables_in_order() {
    let change = "proxy: {inbound: {server: {http2: {keepAliveTimeout: 1048576, a: true, b: null}}}, \
                  outbound: null}";
    let parameters = values(change).expect("values").proxy.parameters;
    let expected = [
        ("LINKERD2_PROXY_INBOUND_SERVER_HTTP2_A", Some("true")),
        ("LINKERD2_PROXY_INBOUND_SERVER_HTTP2_B", None),
        ("LINKERD2_PROXY_INBOUND_SERVER_HTTP2_KEEP_ALIVE_INTERVAL", Some("10s")),
        ("LINKERD2_PROXY_INBOUND_SERVER_HTTP2_KEEP_ALIVE_TIMEOUT", Some("1048576")),
    ];
    let found: Vec<_> = parameters.iter().map(|(k, v)| (k.as_str(), v.as_deref())).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_release_comes_from_the_version_the_fallback_or_the_markers() {
    let choice = |yaml, fallback| release_of(&parse_tree(yaml).expect("YAML"), fallback);
    let release = |yaml, fallback| choice(yaml, fallback).release;
    let fallback = Some(Release::NEWEST);
    assert_eq!(release("linkerdVersion: edge-25.4.4", fallback), Release::edge(25, 4, 4));
    let marked = "linkerdVersion: dev-x\nproxy: {metrics: null}";
    assert_eq!(release(marked, fallback), Release::NEWEST);
    assert_eq!(release(marked, None), Release::edge(25, 3, 4));
    assert_eq!(release("{}", None), Release::stable_2_14());
    for (yaml, version) in
        [("linkerdVersion: 2.14", "2.14"), ("linkerdVersion: null", ""), ("{}", "")]
    {
        assert_eq!(choice(yaml, None).version, version, "{yaml}");
    }
}

#[test]
fn invalid_yaml_is_an_error() {
    assert!(matches!(parse_tree("a: [b"), Err(ValuesError::Syntax(_))));
}
