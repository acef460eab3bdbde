use serde_json::json;

use super::*;
use crate::{
    proto::schema::{MESH_CONFIG, PROXY_CONFIG},
    release::Release,
};

fn proxy(json: &serde_json::Value) -> Message {
    Message::read(*PROXY_CONFIG, json, Release::NEWEST).expect("the test must have valid JSON")
}

fn pointer(message: &Message) -> Pointer<'_> {
    Pointer { of: message.of(), target: Some(message) }
}

fn printed(message: &Message, field: &str) -> String {
    pointer(message).field(field).map_or_else(|error| error.to_string(), |view| view.to_string())
}

#[test]
fn fields_print_as_in_go() {
    let message = proxy(&json!({
        "meshId": "m", "statusPort": 15020, "interceptionMode": "TPROXY", "concurrency": 2,
        "drainDuration": "1.5s", "extraStatTags": ["b", "a"], "proxyMetadata": {"b": "2", "a": "1"},
        "holdApplicationUntilProxyStarts": false,
    }));
    for (field, text) in [
        ("MeshId", "m"),
        ("StatusPort", "15020"),
        ("StatNameLength", "0"),
        ("InterceptionMode", "TPROXY"),
        ("ControlPlaneAuthPolicy", "NONE"),
        ("Concurrency", "value:2"),
        ("DrainDuration", "seconds:1 nanos:500000000"),
        ("TerminationDrainDuration", "<nil>"),
        ("ExtraStatTags", "[b a]"),
        ("CaCertificatesPem", "[]"),
        ("ProxyMetadata", "map[a:1 b:2]"),
        ("RuntimeValues", "map[]"),
        ("HoldApplicationUntilProxyStarts", ""),
        ("Tracing", "<nil>"),
        ("meshId", "can't evaluate field meshId in type *v1alpha1.ProxyConfig"),
        ("ServiceCluster", "can't evaluate field ServiceCluster in type *v1alpha1.ProxyConfig"),
    ] {
        assert_eq!(printed(&message, field), text, "{field}");
    }
}

#[test]
fn a_field_of_a_nil_pointer_is_an_error_and_its_getter_is_not() {
    let message = proxy(&json!({}));
    let Ok(View::Message(tracing)) = pointer(&message).field("Tracing") else {
        panic!("tracing must be a message")
    };
    let error = tracing.field("Sampling").map(|view| view.to_string());
    let text = "nil pointer evaluating *v1alpha1.Tracing.Sampling".to_owned();
    assert_eq!(error.map_err(|error| error.to_string()), Err(text));
    let Some(View::Message(zipkin)) = tracing.getter("GetZipkin") else {
        panic!("zipkin must be a message")
    };
    assert!(zipkin.target.is_none());
    assert_eq!(zipkin.getter("GetAddress").map(|view| view.to_string()).as_deref(), Some(""));
    assert!(zipkin.getter("GetNothing").is_none());
    assert!(zipkin.getter("Address").is_none());
}

#[test]
fn a_wrapper_that_holds_false_is_not_nil() {
    let set = proxy(&json!({"holdApplicationUntilProxyStarts": false}));
    let unset = proxy(&json!({}));
    for (message, is_set) in [(&set, true), (&unset, false)] {
        let view = pointer(message).field("HoldApplicationUntilProxyStarts");
        let Ok(view @ View::Wrapper { value, .. }) = view else { panic!("must be a wrapper") };
        assert_eq!(value.is_some(), is_set);
        assert!(matches!(view.wrapped(), Some(View::Bool(false))));
    }
}

#[test]
fn a_group_is_an_interface_and_its_fields_have_getters() {
    let message = proxy(&json!({"serviceCluster": "a"}));
    assert_eq!(printed(&message, "ClusterName"), "&{a}");
    let pointer = pointer(&message);
    let text = |method: &str| pointer.getter(method).map(|view| view.to_string());
    assert_eq!(text("GetServiceCluster").as_deref(), Some("a"));
    assert_eq!(text("GetTracingServiceName").as_deref(), Some("APP_LABEL_AND_NAMESPACE"));
    assert!(matches!(pointer.getter("GetClusterName"), Some(View::Oneof(Some(_)))));
}

#[test]
fn enums_of_unknown_numbers_print_the_number() {
    assert_eq!(printed(&proxy(&json!({"interceptionMode": 9})), "InterceptionMode"), "9");
}

#[test]
fn every_field_of_every_message_can_be_reached_by_its_name_in_go() {
    for of in [*MESH_CONFIG, *PROXY_CONFIG] {
        let nil = Pointer { of, target: None };
        for field in &of.get().fields {
            assert!(nil.getter(&format!("Get{}", field.go)).is_some(), "{}", field.go);
        }
    }
}

#[test]
fn members_are_fields_and_methods() {
    let message = proxy(&json!({
        "concurrency": 2, "drainDuration": "45.5s", "interceptionMode": "TPROXY",
        "tracingServiceName": "CANONICAL_NAME_ONLY",
    }));
    let path = |path: &str| {
        let mut steps = path.split('.').skip(1);
        let found = steps.try_fold(View::of_message(&message), View::member);
        found.map_or_else(|error| error.to_string(), |view| view.to_string())
    };
    for (text, expected) in [
        (".Concurrency.GetValue", "2"),
        (".Concurrency.Value", "2"),
        (".DrainDuration.Seconds", "45"),
        (".DrainDuration.GetNanos", "500000000"),
        (".TerminationDrainDuration.GetSeconds", "0"),
        (
            ".TerminationDrainDuration.Seconds",
            "nil pointer evaluating *durationpb.Duration.Seconds",
        ),
        (".InterceptionMode.String", "TPROXY"),
        (".ClusterName.TracingServiceName", "CANONICAL_NAME_ONLY"),
        (".GetTracing.GetZipkin.GetAddress", ""),
        (".Tracing.GetZipkin.Address", "nil pointer evaluating *v1alpha1.Tracing_Zipkin.Address"),
        (".HoldApplicationUntilProxyStarts.GetValue", "false"),
        (
            ".HoldApplicationUntilProxyStarts.Value",
            "nil pointer evaluating *wrapperspb.BoolValue.Value",
        ),
        (".MeshId.x", "can't evaluate field x in type string"),
        (
            ".InterceptionMode.x",
            "can't evaluate field x in type v1alpha1.ProxyConfig_InboundInterceptionMode",
        ),
        (".ExtraStatTags.x", "can't evaluate field x in type []string"),
    ] {
        assert_eq!(path(text), expected, "{text}");
    }
}
