use super::*;
use crate::proto::defaults;

fn apply_to(base: &Message, text: &str) -> Result<Message, String> {
    apply(base, text, Release::NEWEST).map_err(|error| error.to_string())
}

fn applied(text: &str) -> Message {
    apply_to(&defaults::mesh_config(Release::NEWEST), text).expect("the test must have valid YAML")
}

fn refused(text: &str) -> String {
    apply_to(&defaults::mesh_config(Release::NEWEST), text)
        .expect_err("the test must have an invalid mesh config")
}

#[test]
fn the_defaults_have_changed_with_1_22() {
    let json = |minor: u16| defaults::mesh_config(Release::new(minor, 0)).to_json();
    let zipkin = r#""tracing":{"zipkin":{"address":"zipkin.istio-system:9411"}}"#;
    assert!(json(21).contains(zipkin) && !json(22).contains(zipkin));
    assert!(!json(21).contains("inboundTrafficPolicy"));
    assert!(json(22).contains(r#""inboundTrafficPolicy":{}"#));
    assert!(json(19).contains(r#""extensionProviders":[{"name":"prometheus","prometheus":{}},"#));
}

#[test]
fn an_empty_document_changes_nothing() {
    for text in ["", "null", "{}", "# nothing"] {
        assert_eq!(applied(text), defaults::mesh_config(Release::NEWEST), "{text:?}");
    }
}

#[test]
fn a_field_replaces_the_default_also_by_a_zero() {
    let mesh = applied(
        "enableTracing: false\ndefaultServiceExportTo: []\nlocalityLbSetting: {}\n\
         inboundTrafficPolicy: {mode: LOCALHOST}\nproxyListenPort: 15101\n",
    );
    assert_eq!(mesh.boolean("enable_tracing"), None);
    assert!(mesh.list("default_service_export_to").is_empty());
    assert_eq!(mesh.message("locality_lb_setting").map(Message::to_json).as_deref(), Some("{}"));
    let policy = mesh.message("inbound_traffic_policy").map(Message::to_json);
    assert_eq!(policy.as_deref(), Some(r#"{"mode":"LOCALHOST"}"#));
    assert_eq!(mesh.integer("proxy_listen_port"), 15101);
    assert_eq!(mesh.integer("proxy_inbound_listen_port"), 15006);
}

#[test]
fn default_config_and_default_providers_are_merged_by_field() {
    let base = applied(
        "defaultConfig: {meshId: a, proxyMetadata: {A: '1', B: '1'}}\n\
         defaultProviders: {metrics: [prometheus]}\n",
    );
    let mesh = apply_to(
        &base,
        "defaultConfig: {proxyMetadata: {B: '2'}, statNameLength: 0}\n\
         defaultProviders: {tracing: [otel]}\n",
    );
    let mesh = mesh.expect("the test must have valid YAML");
    let config = mesh.message("default_config").map(Message::to_json).unwrap_or_default();
    assert!(config.contains(r#""proxyMetadata":{"A":"1","B":"2"}"#), "{config}");
    assert!(config.contains(r#""meshId":"a""#), "{config}");
    assert!(!config.contains("statNameLength"), "{config}");
    let providers = mesh.message("default_providers").map(Message::to_json);
    assert_eq!(providers.as_deref(), Some(r#"{"tracing":["otel"],"metrics":["prometheus"]}"#));
}

#[test]
fn extension_providers_are_replaced_by_name() {
    let mesh = applied(
        "extensionProviders:\n- {name: envoy, envoyFileAccessLog: {path: /x}}\n\
         - {name: otel, opentelemetry: {port: 4317, service: s}}\n",
    );
    let json = mesh.to_json();
    let expected = concat!(
        r#"{"name":"stackdriver","stackdriver":{}},"#,
        r#"{"name":"envoy","envoyFileAccessLog":{"path":"/x"}},"#,
        r#"{"name":"otel","opentelemetry":{"service":"s","port":4317}}]"#,
    );
    assert!(json.contains(expected), "{json}");
}

#[test]
fn trust_domain_aliases_become_the_sorted_union() {
    let base = applied("trustDomainAliases: [b, c]");
    let mesh = apply_to(&base, "trustDomainAliases: [c, a]").map(|mesh| mesh.to_json());
    let mesh = mesh.unwrap_or_default();
    assert!(mesh.contains(r#""trustDomainAliases":["a","b","c"]"#), "{mesh}");
}

#[test]
fn a_shared_mesh_config_lies_below_the_own_one() {
    let shared = applied("trustDomain: shared\nrootNamespace: shared\n");
    let mesh = apply_to(&shared, "trustDomain: own").expect("the test must have valid YAML");
    assert_eq!((mesh.text("trust_domain"), mesh.text("root_namespace")), ("own", "shared"));
}

#[test]
fn nonsense_is_refused_with_the_texts_of_go() {
    let text = refused("enablePrometheusMerge: perhaps");
    let expected = "failed to convert to proto. json: cannot unmarshal string into Go value of \
                    type bool";
    assert_eq!(text, expected);
    assert!(refused("a: [").starts_with("failed to convert to proto. "));
    assert!(refused("- a").ends_with("type map[string]json.RawMessage"));
    let text = refused("defaultConfig: {statusPort: 0}");
    assert_eq!(
        text,
        "1 error occurred:\n\t* invalid status port: port number 0 must be in the range 1..65535\n\n"
    );
}
