use serde_json::json;

use super::*;
use crate::proto::mesh;

const RELEASE: Release = Release::NEWEST;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn resource(name: &str, namespace: &str, created: &str, spec: &Json) -> Json {
    json!({
        "apiVersion": "networking.istio.io/v1beta1",
        "kind": "ProxyConfig",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created},
        "spec": spec,
    })
}

fn in_mesh(text: &str, annotation: Option<&str>, objects: &[Json]) -> Message {
    let base = defaults::mesh_config(RELEASE);
    let mesh = mesh::apply(&base, text, RELEASE).expect("the test must have a valid mesh config");
    let labels = labels(&[("tier", "a"), ("app", "web")]);
    let label = |key: &str| labels.get(key).map(String::as_str);
    let annotation = annotation.and_then(|text| read_annotation(text, RELEASE).ok());
    let pod = Pod { namespace: "shop", label: &label, annotation: annotation.as_ref() };
    effective(&mesh, &Resources::new(objects, RELEASE), pod, RELEASE)
}

fn concurrency(objects: &[Json], annotation: Option<&str>) -> Option<i64> {
    let config = in_mesh("", annotation, objects);
    config.value("concurrency").map(|_| config.integer("concurrency"))
}

#[test]
fn a_layer_replaces_whole_fields_but_proxy_metadata_is_merged() {
    let config = in_mesh(
        "defaultConfig: {tracing: {sampling: 5, zipkin: {address: 'z:1'}}, \
         proxyMetadata: {A: '1', B: '1'}, extraStatTags: [a]}",
        Some("{tracing: {sampling: 7}, proxyMetadata: {B: '2'}, extraStatTags: [b]}"),
        &[],
    );
    let json = config.to_json();
    assert!(json.contains(r#""tracing":{"sampling":7}"#), "{json}");
    assert!(json.contains(r#""proxyMetadata":{"A":"1","B":"2"}"#), "{json}");
    assert!(json.contains(r#""extraStatTags":["b"]"#), "{json}");
}

#[test]
fn zeros_do_not_override_but_wrappers_and_empty_messages_do() {
    let config = in_mesh(
        "defaultConfig: {interceptionMode: TPROXY, statusPort: 15099, concurrency: 4, \
         holdApplicationUntilProxyStarts: true, tracing: {sampling: 5}}",
        Some(
            "{interceptionMode: REDIRECT, statusPort: 0, concurrency: 0, \
             holdApplicationUntilProxyStarts: false, tracing: {}}",
        ),
        &[],
    );
    assert_eq!(config.integer("interception_mode"), 1);
    assert_eq!(config.integer("status_port"), 15099);
    assert_eq!(config.value("concurrency"), Some(&Value::Integer(0)));
    assert_eq!(config.boolean("hold_application_until_proxy_starts"), Some(false));
    assert_eq!(config.message("tracing").map(Message::to_json).as_deref(), Some("{}"));
}

#[test]
fn fields_of_a_group_replace_each_other() {
    let config = in_mesh("", Some("tracingServiceName: CANONICAL_NAME_ONLY"), &[]);
    assert!(config.value("service_cluster").is_none());
    assert_eq!(config.integer("tracing_service_name"), 1);
    let below = "defaultConfig: {tracingServiceName: CANONICAL_NAME_ONLY}";
    let config = in_mesh(below, Some("serviceCluster: c"), &[]);
    assert_eq!(config.text("service_cluster"), "c");
    assert!(config.value("tracing_service_name").is_none());
}

#[test]
fn missing_headers_come_from_below_since_1_19_1() {
    let base = "{forwardedClientCert: SANITIZE, requestId: {disabled: true}, \
                attemptCount: {disabled: true}, server: {value: s}, \
                envoyDebugHeaders: {disabled: true}, metadataExchangeHeaders: {mode: IN_MESH}}";
    let text = |release| {
        let read = |text: &str| read_annotation(text, release).expect("must be valid");
        let mut config = read(&format!("proxyHeaders: {base}"));
        merge(&mut config, &read("proxyHeaders: {server: {disabled: true}}"), release);
        config.to_json()
    };
    assert_eq!(text(Release::new(19, 0)), r#"{"proxyHeaders":{"server":{"disabled":true}}}"#);
    let kept = concat!(
        r#"{"proxyHeaders":{"forwardedClientCert":"SANITIZE","requestId":{"disabled":true},"#,
        r#""server":{"disabled":true},"attemptCount":{"disabled":true},"#,
        r#""envoyDebugHeaders":{"disabled":true}}}"#,
    );
    assert_eq!(text(Release::new(19, 1)), kept);
}

#[test]
fn resources_lie_around_the_annotation() {
    let root = resource("r", "istio-system", "2026-01-01T00:00:00Z", &json!({"concurrency": 1}));
    let namespace = resource("n", "shop", "2026-01-01T00:00:00Z", &json!({"concurrency": 2}));
    let selected = resource(
        "s",
        "shop",
        "2026-01-01T00:00:00Z",
        &json!({"selector": {"matchLabels": {"tier": "a"}}, "concurrency": 4}),
    );
    let other = resource("o", "bank", "2026-01-01T00:00:00Z", &json!({"concurrency": 5}));
    let all = [root, namespace, selected, other];
    assert_eq!(concurrency(&all[3..], None), None);
    assert_eq!(concurrency(&all[..1], None), Some(1));
    assert_eq!(concurrency(&all[..2], None), Some(2));
    assert_eq!(concurrency(&all[..2], Some("concurrency: 3")), Some(3));
    assert_eq!(concurrency(&all, Some("concurrency: 3")), Some(4));
}

#[test]
fn the_oldest_resource_matches_then_order_is_by_name() {
    let one = |name: &str, created: &str, number: i64| {
        resource(name, "shop", created, &json!({"concurrency": number}))
    };
    let by_age = [one("a", "2026-01-02T00:00:00Z", 1), one("b", "2026-01-01T00:00:00Z", 2)];
    assert_eq!(concurrency(&by_age, None), Some(2));
    let by_name = [one("b", "2026-01-01T00:00:00Z", 1), one("a", "2026-01-01T00:00:00Z", 2)];
    assert_eq!(concurrency(&by_name, None), Some(2));
}

#[test]
fn a_selector_matches_if_it_has_labels_and_the_pod_has_them_all() {
    for (selector, matches) in [
        (json!({"matchLabels": {"tier": "a", "app": "web"}}), true),
        (json!({"matchLabels": {"tier": "a", "app": "db"}}), false),
        (json!({"matchLabels": {"other": "a"}}), false),
        (json!({"matchLabels": {}}), false),
        (json!({}), false),
        (json!(null), true),
    ] {
        let spec = json!({"selector": selector, "concurrency": 3});
        let object = resource("s", "shop", "2026-01-01T00:00:00Z", &spec);
        assert_eq!(concurrency(&[object], None).is_some(), matches, "{selector}");
    }
    // In the root namespace a selector is of no use.
    let spec = json!({"selector": {"matchLabels": {"tier": "a"}}, "concurrency": 3});
    let object = resource("s", "istio-system", "2026-01-01T00:00:00Z", &spec);
    assert_eq!(concurrency(&[object], None), None);
}

#[test]
fn a_resource_carries_three_fields() {
    let spec = json!({
        "environmentVariables": {"A": "1"}, "image": {"imageType": "debug"}, "statusPort": 1,
    });
    let object = resource("n", "shop", "2026-01-01T00:00:00Z", &spec);
    let config = in_mesh("defaultConfig: {proxyMetadata: {B: '1'}}", None, &[object]);
    let json = config.to_json();
    assert!(json.contains(r#""proxyMetadata":{"A":"1","B":"1"}"#), "{json}");
    assert!(json.contains(r#""image":{"imageType":"debug"}"#), "{json}");
    assert!(json.contains(r#""statusPort":15020"#), "{json}");
}

#[test]
fn objects_of_any_shape_are_left_out() {
    let objects = [json!(null), json!([1]), json!({"metadata": 5, "spec": "x"})];
    assert_eq!(concurrency(&objects, None), None);
}

#[test]
fn an_annotation_that_cannot_be_read_is_left_out_and_denied() {
    assert_eq!(in_mesh("", Some("concurrency: abc"), &[]), in_mesh("", None, &[]));
    let check = |text: &str| check_annotation(text, RELEASE).map_err(|error| error.to_string());
    let prefix = "failed to convert to apply proxy config: ";
    assert_eq!(
        check("concurrency: abc"),
        Err(format!("{prefix}invalid character 'a' looking for beginning of value"))
    );
    assert!(check("a: [").is_err_and(|text| text.starts_with(prefix)));
    assert_eq!(check("drainDuration: 30s"), Ok(()));
    assert_eq!(check(""), Ok(()));
    let text = "1 error occurred:\n\t* invalid status port: port number 70000 must be in the range \
                1..65535\n\n";
    assert_eq!(check("statusPort: 70000"), Err(text.to_owned()));
}
