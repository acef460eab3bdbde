use super::*;
use crate::proto::{layers::read_annotation, schema::MESH_CONFIG};

fn over_default(text: &str, release: Release) -> String {
    let mut config = defaults::proxy_config(release).clone();
    let given = read_annotation(text, release).expect("the test must have valid YAML");
    for (field, value) in given.fields() {
        if let Some(value) = value {
            config.set(field.name, Some(value.clone()));
        }
    }
    proto_to_json(&config, release)
}

#[test]
fn what_equals_the_built_in_default_is_left_out() {
    for (text, json) in [
        ("", "{}"),
        ("drainDuration: 45000ms", "{}"),
        (
            "discoveryAddress: istiod-x.istio-system.svc:15012",
            r#"{"discoveryAddress":"istiod-x.istio-system.svc:15012"}"#,
        ),
        ("statusPort: 15021", r#"{"statusPort":15021}"#),
        ("concurrency: 0", r#"{"concurrency":0}"#),
        ("tracing: {}", r#"{"tracing":{}}"#),
        ("image: {}", r#"{"image":{}}"#),
        ("proxyMetadata: {}", "{}"),
        ("controlPlaneAuthPolicy: INHERIT", r#"{"controlPlaneAuthPolicy":"INHERIT"}"#),
        ("tracingServiceName: 0", r#"{"tracingServiceName":"APP_LABEL_AND_NAMESPACE"}"#),
    ] {
        assert_eq!(over_default(text, Release::NEWEST), json, "{text}");
    }
}

#[test]
fn the_default_tracer_of_old_releases_is_left_out() {
    let text = "tracing: {zipkin: {address: zipkin.istio-system:9411}}";
    assert_eq!(over_default(text, Release::new(21, 0)), "{}");
    let shown = r#"{"tracing":{"zipkin":{"address":"zipkin.istio-system:9411"}}}"#;
    assert_eq!(over_default(text, Release::new(22, 0)), shown);
}

#[test]
fn other_messages_are_written_whole() {
    let mesh = defaults::mesh_config(Release::NEWEST);
    assert_eq!(mesh.of(), *MESH_CONFIG);
    assert_eq!(proto_to_json(&mesh, Release::NEWEST), mesh.to_json());
}
