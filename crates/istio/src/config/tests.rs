use super::*;

#[test]
fn every_key_is_read() {
    let config = Config::parse(
        "policy: enabled
defaultTemplates: [a, 5]
templates: {sidecar: text, other: 1.5}
aliases: {x: [sidecar, b]}
neverInjectSelector: [{matchLabels: {never: yes}}]
alwaysInjectSelector:
- matchExpressions: [{key: k, operator: In, values: [a]}]
- {}
injectedAnnotations: {a: true, b: null}
template: '{{ broken'
unknown: 1
",
    )
    .expect("the configuration must be valid");
    assert_eq!(config.policy, Policy::Enabled);
    assert_eq!(config.default_templates, ["a", "5"]);
    assert_eq!(config.templates["other"], "1.5");
    assert_eq!(config.aliases["x"], ["sidecar", "b"]);
    assert_eq!(config.never_inject.len(), 1);
    assert_eq!(config.always_inject.len(), 2);
    assert_eq!(config.injected_annotations["a"], "true");
    assert_eq!(config.injected_annotations["b"], "");
}

#[test]
fn the_case_of_keys_is_ignored_and_the_last_duplicate_wins() {
    let policy = |text| Config::parse(text).map(|config| config.policy);
    assert_eq!(policy("POLICY: enabled").ok(), Some(Policy::Enabled));
    assert_eq!(policy("policy: enabled\npolicy: disabled").ok(), Some(Policy::Disabled));
    assert_eq!(policy("policy: enabled\nPolicy: disabled").ok(), Some(Policy::Enabled));
    assert_eq!(policy("policy: sometimes").ok(), Some(Policy::Other("sometimes".into())));
}

#[test]
fn an_empty_configuration_has_the_default_template_and_injects_nothing() {
    for text in ["", "null", "templates:\ndefaultTemplates: []\npolicy:\n"] {
        let config = Config::parse(text).expect("the configuration must be valid");
        assert_eq!(config.default_templates, [DEFAULT_TEMPLATE], "{text}");
        assert_eq!(config.policy, Policy::Other(String::new()), "{text}");
        assert!(config.templates.is_empty(), "{text}");
    }
}

#[test]
fn errors_name_the_place() {
    for (text, expected) in [
        ("[]", "config must be a mapping, but is a list"),
        ("templates: {a: [1]}", "config.templates.a must be a string, but is a list"),
        ("defaultTemplates: a", "config.defaultTemplates must be a list, but is a string"),
        ("aliases: {a: [{}]}", "config.aliases.a[0] must be a string, but is a mapping"),
        (
            "neverInjectSelector: [{matchExpressions: [{values: 5}]}]",
            "config.neverInjectSelector[0].matchExpressions[0].values must be a list, but is a number",
        ),
        ("a: [", "config cannot be parsed as YAML"),
    ] {
        let error = Config::parse(text).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn types_of_known_values_are_checked() {
    for (text, expected) in [
        ("", "values is empty; expected the key values of the ConfigMap istio-sidecar-injector"),
        (
            "null",
            "values is empty; expected the key values of the ConfigMap istio-sidecar-injector",
        ),
        ("[]", "values must be a mapping, but is a list"),
        ("global: 5", "values.global must be a mapping, but is a number"),
        (r#"{"global":{"hub":5}}"#, "values.global.hub must be a string, but is a number"),
        ("global: {variant: true}", "values.global.variant must be a string, but is a boolean"),
        ("global: {network: []}", "values.global.network must be a string, but is a list"),
        (
            "global: {multiCluster: {clusterName: 1}}",
            "values.global.multiCluster.clusterName must be a string, but is a number",
        ),
        (
            "global: {proxy: {image: 1}}",
            "values.global.proxy.image must be a string, but is a number",
        ),
        (
            "global: {proxy_init: {image: 1}}",
            "values.global.proxy_init.image must be a string, but is a number",
        ),
        (
            "global: {proxy: {holdApplicationUntilProxyStarts: 'true'}}",
            "values.global.proxy.holdApplicationUntilProxyStarts must be a boolean, but is a string",
        ),
        (
            "sidecarInjectorWebhook: {rewriteAppHTTPProbe: 1}",
            "values.sidecarInjectorWebhook.rewriteAppHTTPProbe must be a boolean, but is a number",
        ),
        (
            "global: {proxy: {statusPort: abc}}",
            "values.global.proxy.statusPort must be a port, but is a string",
        ),
        (
            "global: {proxy: {resources: {requests: {cpu: 2}}}}",
            "values.global.proxy.resources.requests.cpu must be a string, but is a number",
        ),
        (
            "global: {proxy: {resources: {limits: []}}}",
            "values.global.proxy.resources.limits must be a mapping, but is a list",
        ),
    ] {
        let error = Values::parse(text).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn other_values_are_free() {
    let values = Values::parse(
        "global: {tag: 1.2, hub: null, network: net, proxy: {statusPort: '15020'}, other: [1]}
sidecarInjectorWebhook: {rewriteAppHTTPProbe: true}",
    )
    .expect("the values must be valid");
    assert_eq!(values.get(&["global", "tag"]), Some(&serde_json::json!(1.2)));
    assert_eq!(values.text(&["global", "network"]), "net");
    assert_eq!(values.text(&["global", "hub"]), "");
    assert!(values.flag(&["sidecarInjectorWebhook", "rewriteAppHTTPProbe"]));
    assert!(Values::parse("global: {proxy: {statusPort: 1.502e4}}").is_ok());
    assert!(Values::parse("{\n\t\"global\": {}\n}").is_ok(), "JSON with tabs");
}
