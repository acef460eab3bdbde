use injectd_gotemplate::{Context, Functions, Template};
use serde_json::json;

use super::*;
use crate::proto::schema::PROXY_CONFIG;

fn rendered(template: &str) -> String {
    let json = json!({
        "configPath": "a\"b\\c\n\u{1}é\u{85}", "drainDuration": "1.5s", "statusPort": 15020,
        "concurrency": 0, "proxyMetadata": {"b": "2", "a": "1"}, "extraStatTags": ["q", "p"],
        "interceptionMode": "TPROXY", "holdApplicationUntilProxyStarts": true, "image": {},
        "proxyStatsMatcher": {"inclusionPrefixes": ["i"]},
        "tracing": {
            "zipkin": {"address": "z:9411"},
            "customTags": {"b": {"literal": {"value": "2"}}, "a": {"header": {"name": "h"}}},
            "sampling": 1_000_000.5, "tlsSettings": {"mode": "SIMPLE", "subjectAltNames": ["x", "y"]},
        },
    });
    let message = Message::read(*PROXY_CONFIG, &json, Release::NEWEST).expect("must be valid");
    let template = Template::parse("t", template, &Functions::istio()).expect("must be valid");
    template
        .execute(&of(Arc::new(message)), &mut Context::default())
        .unwrap_or_else(|error| error.to_string())
}

/// Go's texts, with one blank where its library wrote two.
#[test]
fn messages_print_as_in_go() {
    for (template, text) in [
        (
            "{{ . }}",
            concat!(
                r#"config_path:"a\"b\\c\n\x01é\u0085" drain_duration:{seconds:1 nanos:500000000} "#,
                r#"concurrency:{} interception_mode:TPROXY tracing:{zipkin:{address:"z:9411"} "#,
                r#"custom_tags:{key:"a" value:{header:{name:"h"}}} "#,
                r#"custom_tags:{key:"b" value:{literal:{value:"2"}}} sampling:1.0000005e+06 "#,
                r#"tls_settings:{mode:SIMPLE subject_alt_names:"x" subject_alt_names:"y"}} "#,
                r#"proxy_metadata:{key:"a" value:"1"} proxy_metadata:{key:"b" value:"2"} "#,
                r#"status_port:15020 extra_stat_tags:"q" extra_stat_tags:"p" "#,
                r#"proxy_stats_matcher:{inclusion_prefixes:"i"} "#,
                "hold_application_until_proxy_starts:{value:true} image:{}",
            ),
        ),
        ("{{ .Tracing.CustomTags }}", r#"map[a:header:{name:"h"} b:literal:{value:"2"}]"#),
        ("{{ .ReadinessProbe }} {{ .ReadinessProbe.String }}", "<nil> <nil>"),
        ("{{ .Image }}", ""),
    ] {
        assert_eq!(rendered(template), text, "{template}");
    }
}

#[test]
fn durations_have_the_methods_of_go() {
    for (template, text) in [
        (
            "{{ .DrainDuration }} {{ .DrainDuration.GetNanos }}",
            "seconds:1 nanos:500000000 500000000",
        ),
        ("{{ .DrainDuration.AsDuration }} {{ .TerminationDrainDuration.AsDuration }}", "1.5s 0s"),
        ("{{ with .DrainDuration.AsDuration }}{{ .Seconds }} {{ .Minutes }}{{ end }}", "1.5 0.025"),
        ("{{ .DrainDuration.AsDuration.Milliseconds }} {{ .DrainDuration.IsValid }}", "1500 true"),
        (
            r#"{{ with .DrainDuration.AsDuration }}{{ printf "%d %T" . . }}{{ end }}"#,
            "1500000000 time.Duration",
        ),
        ("{{ formatDuration .DrainDuration }}", "1.5s"),
    ] {
        assert_eq!(rendered(template), text, "{template}");
    }
}

/// As `json.Marshal` writes the structs of Go, which is not Protobuf's JSON.
#[test]
fn fields_have_the_json_of_go() {
    for (template, json) in [
        ("{{ toJson .InterceptionMode }}", "1"),
        ("{{ toJson .DrainDuration }}", r#"{"seconds":1,"nanos":500000000}"#),
        ("{{ structToJSON .TerminationDrainDuration }}", "null"),
        ("{{ toJson .Concurrency }}", "{}"),
        ("{{ toJson .HoldApplicationUntilProxyStarts }}", r#"{"value":true}"#),
        ("{{ structToJSON .RuntimeValues }} {{ toJSON .RuntimeValues }}", "null {}"),
        ("{{ toYaml (dict \"m\" .InterceptionMode \"c\" .Concurrency) }}", "c: {}\nm: 1"),
    ] {
        assert_eq!(rendered(template).trim_end(), json, "{template}");
    }
}
