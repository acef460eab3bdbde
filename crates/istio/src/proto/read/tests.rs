use serde_json::json;

use super::*;
use crate::proto::schema::{MESH_CONFIG, PROXY_CONFIG};

fn proxy(json: &Json) -> Result<Message, ReadError> {
    Message::read(*PROXY_CONFIG, json, Release::NEWEST)
}

fn written(json: &Json) -> String {
    proxy(json).map_or_else(|error| error.to_string(), |message| message.to_json())
}

#[test]
fn both_spellings_are_read_and_that_of_json_wins() {
    assert_eq!(written(&json!({"mesh_id": "a"})), r#"{"meshId":"a"}"#);
    assert_eq!(written(&json!({"mesh_id": "a", "meshId": "b"})), r#"{"meshId":"b"}"#);
    // A null in the spelling that wins: the field is not set.
    assert_eq!(written(&json!({"mesh_id": "a", "meshId": null})), "{}");
}

#[test]
fn unknown_fields_are_ignored_and_case_counts() {
    assert_eq!(written(&json!({"noSuchField": {"a": [1]}, "MeshId": "a"})), "{}");
}

#[test]
fn fields_that_the_release_does_not_know_are_dropped_with_any_value() {
    let json = json!({"fileFlushInterval": 5, "tracing": {"enableIstioTags": true}});
    let old = Message::read(*PROXY_CONFIG, &json, Release::new(24, 6)).map(|old| old.to_json());
    assert_eq!(old.as_deref(), Ok(r#"{"tracing":{}}"#));
    assert!(proxy(&json).is_err());
}

#[test]
fn null_is_not_set_and_zero_in_lists_and_maps() {
    assert_eq!(written(&json!(null)), "{}");
    assert_eq!(
        written(&json!({"concurrency": null, "tracing": null, "runtimeValues": null})),
        "{}"
    );
    let json = json!({"proxyMetadata": {"A": null}, "extraStatTags": [null]});
    assert_eq!(written(&json), r#"{"proxyMetadata":{"A":""},"extraStatTags":[""]}"#);
    let tags = json!({"tracing": {"customTags": {"a": null}}});
    assert_eq!(written(&tags), r#"{"tracing":{"customTags":{"a":{}}}}"#);
}

#[test]
fn an_empty_message_is_set_and_plain_zeros_are_not() {
    assert_eq!(written(&json!({"tracing": {}, "image": {}})), r#"{"tracing":{},"image":{}}"#);
    let zeros = json!({
        "statusPort": 0, "interceptionMode": "REDIRECT", "meshId": "", "extraStatTags": [],
        "proxyMetadata": {}, "controlPlaneAuthPolicy": 0,
    });
    assert_eq!(written(&zeros), "{}");
    let wrapped = json!({"concurrency": 0, "holdApplicationUntilProxyStarts": false});
    assert_eq!(written(&wrapped), r#"{"concurrency":0,"holdApplicationUntilProxyStarts":false}"#);
    assert_eq!(written(&json!({"drainDuration": "0s"})), r#"{"drainDuration":"0s"}"#);
}

#[test]
fn the_later_field_of_a_group_wins_also_with_a_zero() {
    let both = json!({"tracingServiceName": "APP_LABEL_AND_NAMESPACE", "serviceCluster": "a"});
    assert_eq!(written(&both), r#"{"tracingServiceName":"APP_LABEL_AND_NAMESPACE"}"#);
    let tracers = json!({"tracing": {"datadog": {"address": "d:1"}, "zipkin": {"address": "z:1"}}});
    assert_eq!(written(&tracers), r#"{"tracing":{"datadog":{"address":"d:1"}}}"#);
}

#[test]
fn enums_are_read_by_exact_name_or_number() {
    for (json, text) in [
        (json!("TPROXY"), r#"{"interceptionMode":"TPROXY"}"#),
        (json!(2), r#"{"interceptionMode":"NONE"}"#),
        (json!(7), r#"{"interceptionMode":7}"#),
        (
            json!("tproxy"),
            r#"unknown value "\"tproxy\"" for enum istio.mesh.v1alpha1.ProxyConfig.InboundInterceptionMode"#,
        ),
        (
            json!(1.5),
            "json: cannot unmarshal number 1.5 into Go value of type protoreflect.EnumNumber",
        ),
    ] {
        assert_eq!(written(&json!({"interceptionMode": json})), text);
    }
}

#[test]
fn integers_may_be_quoted_but_have_no_fraction_and_fit() {
    for (json, text) in [
        (json!(15), r#"{"statusPort":15}"#),
        (json!("15"), r#"{"statusPort":15}"#),
        (json!(1.5), "json: cannot unmarshal number 1.5 into Go value of type int32"),
        (json!("1.5"), "json: cannot unmarshal number 1.5 into Go value of type int32"),
        (
            json!(2_147_483_648_i64),
            "json: cannot unmarshal number 2147483648 into Go value of type int32",
        ),
        (json!(true), "json: cannot unmarshal bool into Go value of type int32"),
        (json!("abc"), "invalid character 'a' looking for beginning of value"),
        (json!("5x"), "invalid character 'x' after top-level value"),
        (json!(""), "unexpected end of JSON input"),
        (json!(" -0 "), "{}"),
        (json!("1e3"), "json: cannot unmarshal number 1e3 into Go value of type int32"),
        (json!("05"), "invalid character '5' after top-level value"),
        (json!("-x"), "invalid character 'x' in numeric literal"),
        (json!("1.x"), "invalid character 'x' after decimal point in numeric literal"),
        (json!("1ex"), "invalid character 'x' in exponent of numeric literal"),
        (json!("tRUE"), "invalid character 'R' in literal true (expecting 'r')"),
        (json!("null"), "{}"),
        (json!("\n7"), "invalid character '\\\\' looking for beginning of value"),
    ] {
        assert_eq!(written(&json!({"statusPort": json})), text);
    }
    let unsigned = written(&json!({"fileFlushMinSizeKb": -1}));
    assert_eq!(unsigned, "json: cannot unmarshal number -1 into Go value of type uint32");
    let long = json!({"tracing": {"stackdriver": {"maxNumberOfAttributes": "9007199254740993"}}});
    let text = r#"{"tracing":{"stackdriver":{"maxNumberOfAttributes":"9007199254740993"}}}"#;
    assert_eq!(written(&long), text);
}

#[test]
fn strings_and_booleans_are_strict() {
    for (json, text) in [
        (
            json!({"discoveryAddress": 5}),
            "json: cannot unmarshal number into Go value of type string",
        ),
        (
            json!({"proxyMetadata": {"A": 1}}),
            "json: cannot unmarshal number into Go value of type string",
        ),
        (
            json!({"holdApplicationUntilProxyStarts": "true"}),
            "json: cannot unmarshal string into Go value of type bool",
        ),
        (
            json!({"extraStatTags": "x, y"}),
            "json: cannot unmarshal string into Go value of type []json.RawMessage",
        ),
        (
            json!({"tracing": true}),
            "json: cannot unmarshal bool into Go value of type map[string]json.RawMessage",
        ),
        (
            json!([]),
            "json: cannot unmarshal array into Go value of type map[string]json.RawMessage",
        ),
    ] {
        assert_eq!(written(&json), text);
    }
}

#[test]
fn doubles_may_be_quoted_and_not_finite() {
    for (json, text) in [
        (json!(12.5), "12.5"),
        (json!("100"), "100"),
        (json!(1e-7), "1e-7"),
        (json!(1e21), "1e+21"),
        (json!("NaN"), "\"NaN\""),
        (json!("-Infinity"), "\"-Infinity\""),
    ] {
        let written = written(&json!({"tracing": {"sampling": json}}));
        assert_eq!(written, format!("{{\"tracing\":{{\"sampling\":{text}}}}}"));
    }
}

#[test]
fn durations_are_those_of_go() {
    for (json, text) in [
        (json!("45s"), r#"{"drainDuration":"45s"}"#),
        (json!("1h1m"), r#"{"drainDuration":"3660s"}"#),
        (json!("1.5s"), r#"{"drainDuration":"1.500s"}"#),
        (json!("-2us"), r#"{"drainDuration":"-0.000002s"}"#),
        (json!("3ns"), r#"{"drainDuration":"0.000000003s"}"#),
        (json!(45), "json: cannot unmarshal number into Go value of type string"),
        (json!("45"), "bad Duration: time: missing unit in duration \"45\""),
        (json!("1d"), "bad Duration: time: unknown unit \"d\" in duration \"1d\""),
        (json!("1..5s"), "bad Duration: time: missing unit in duration \"1..5s\""),
        (json!("µs\n"), "bad Duration: time: invalid duration \"\\xc2\\xb5s\\x0a\""),
        (json!("."), "bad Duration: time: invalid duration \".\""),
        (json!("soon"), "bad Duration: time: invalid duration \"soon\""),
    ] {
        assert_eq!(written(&json!({"drainDuration": json})), text);
    }
}

#[test]
fn any_object_is_kept_with_sorted_keys() {
    let json = json!({"extensionProviders": [
        {"name": "e", "envoyFileAccessLog": {"logFormat": {"labels": {"b": 1, "a": ["<", null]}}}},
    ]});
    let mesh = Message::read(*MESH_CONFIG, &json, Release::NEWEST).map(|mesh| mesh.to_json());
    let expected = concat!(
        r#"{"extensionProviders":[{"name":"e","envoyFileAccessLog":{"logFormat":"#,
        r#"{"labels":{"a":["\u003c",null],"b":1}}}}]}"#,
    );
    assert_eq!(mesh.as_deref(), Ok(expected));
}
