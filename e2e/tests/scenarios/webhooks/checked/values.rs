//! The values of the table of configurations, by the field.

use serde_json::{Value, json};

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

/// Pointers of a configuration, and the values that are tried there.
pub(super) fn all() -> Vec<(&'static str, Vec<Value>)> {
    [metadata(), webhook(), conditions(), client(), rules(), rule_parts(), selectors()].concat()
}

fn metadata() -> Vec<(&'static str, Vec<Value>)> {
    let long = "a".repeat(254);
    vec![
        ("/apiVersion", texts(&["admissionregistration.k8s.io/v1"])),
        ("/extra", vec![json!(1)]),
        ("/metadata/name", texts(&["", "A", "a_b", "a.b-c", "-a", "a.", &long])),
        ("/metadata/name", vec![json!(1), Value::Null]),
        ("/metadata/namespace", texts(&["", "a"])),
        ("/metadata/extra", texts(&["a"])),
        ("/metadata/labels", vec![json!({"a/b": "c"}), json!({"a b": "c"}), json!({"a": "-"})]),
        ("/metadata/labels", vec![json!({"a": 1}), json!([]), Value::Null]),
        (
            "/metadata/annotations",
            vec![json!({"a/b": "c d"}), json!({"a b": ""}), json!({"A.b/C": ""})],
        ),
        ("/webhooks", vec![json!([]), Value::Null, json!({}), json!("a"), json!([1]), json!([[]])]),
    ]
}

fn webhook() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        (
            "/webhooks/0/name",
            texts(&["", "a", "a.b", "a.b.c", "A.b.c", "a.b.c.", "a..b.c", "a_b.c.d"]),
        ),
        ("/webhooks/0/name", vec![Value::Null, json!(1)]),
        ("/webhooks/0/extra", texts(&[""])),
        ("/webhooks/0/failurePolicy", texts(&["Fail", "Ignore", "fail", "", "Retry"])),
        ("/webhooks/0/matchPolicy", texts(&["Exact", "Equivalent", "exact", ""])),
        ("/webhooks/0/reinvocationPolicy", texts(&["Never", "IfNeeded", "Always"])),
        (
            "/webhooks/0/sideEffects",
            texts(&["None", "NoneOnDryRun", "Some", "Unknown", "none", ""]),
        ),
        ("/webhooks/0/sideEffects", vec![Value::Null, json!(false)]),
        (
            "/webhooks/0/timeoutSeconds",
            (-1..=31).step_by(8).map(|seconds| json!(seconds)).collect(),
        ),
        ("/webhooks/0/timeoutSeconds", vec![json!(0), json!(1), json!(30), json!("5"), json!(5.5)]),
        ("/webhooks/0/timeoutSeconds", vec![Value::Null, json!(5_000_000_000_i64)]),
        (
            "/webhooks/0/admissionReviewVersions",
            vec![
                json!([]),
                json!(["v1"]),
                json!(["v1beta1"]),
                json!(["v1", "v1beta1"]),
                json!(["v2"]),
                json!(["v2", "v1"]),
                json!(["v1", "v1"]),
                json!(["V1", "v1"]),
                json!(["1", "v1"]),
                json!([""]),
                json!("v1"),
                json!([1]),
                Value::Null,
            ],
        ),
    ]
}

fn conditions() -> Vec<(&'static str, Vec<Value>)> {
    let some = |count: usize| {
        let all = (0..count).map(|i| json!({"name": format!("c{i}"), "expression": "true"}));
        Value::Array(all.collect())
    };
    let named = |name: &str| json!([{"name": name, "expression": "true"}]);
    vec![(
        "/webhooks/0/matchConditions",
        vec![
            json!([]),
            Value::Null,
            some(64),
            some(65),
            named("a"),
            named(""),
            named("a/b"),
            named("a b"),
            named("A.b_c"),
            named("-a"),
            json!([{"name": "a"}]),
            json!([{"name": "a", "expression": ""}]),
            json!([{"name": "a", "expression": " \n "}]),
            json!([{"name": "a", "expression": " true "}]),
            json!([{"expression": "true"}]),
            json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]),
            json!([{"name": "a", "expression": "true", "extra": 1}]),
            json!({}),
            json!(["a"]),
        ],
    )]
}

const URLS: [&str; 41] = [
    "https://a",
    "https://a/",
    "https://a.b:8443/c/d",
    "http://a",
    "a",
    "",
    "https://",
    "https:///a",
    "https://u@a",
    "https://u:p@a/b",
    "https://@a",
    "https://a?b",
    "https://a?",
    "https://a#b",
    "https://a#",
    "HTTPS://a",
    "https://a:99999/b",
    "https://a:b",
    "https://a:",
    "https://[::1]:80/a",
    "https://[::1",
    "https://a b/c",
    "https://a/b c",
    "https://a/%zz",
    "https://a/%20",
    "https://a%20b/c",
    "https:a",
    "https:/a",
    "//a/b",
    "https://a/b?c#d",
    "https://a\u{7f}/b",
    "https://ä/b",
    "https://a:1:2/b",
    "https://a/b@c",
    "https://a\\b/c",
    "https://:443/a",
    "https://a_b/c",
    "https://a|b/c",
    "https://a{b}/c",
    "ftp://a",
    " https://a",
];
const PATHS: [&str; 20] = [
    "",
    "/",
    "//",
    "a",
    "/a",
    "/a/",
    "/a/b",
    "/a//b",
    "/A",
    "/a_b",
    "/a-b.c",
    "/a b",
    "/a%20b",
    "/inject/cluster/x/net/y",
    "/inject/cluster/X",
    "/a?b",
    "/a/b//",
    "///",
    "/-a",
    "/a.",
];

fn client() -> Vec<(&'static str, Vec<Value>)> {
    let url = |url: &&str| json!({"url": url});
    let service = |service: Value| json!({"service": service});
    let path = |path: &&str| service(json!({"namespace": "a", "name": "b", "path": path}));
    let port = |port: Value| service(json!({"namespace": "a", "name": "b", "port": port}));
    let ports =
        [json!(0), json!(1), json!(443), json!(65535), json!(65536), json!(-1), json!("443")];
    let bundle =
        |bundle: &str| json!({"service": {"namespace": "a", "name": "b"}, "caBundle": bundle});
    vec![
        ("/webhooks/0/clientConfig", URLS.iter().map(url).collect()),
        ("/webhooks/0/clientConfig", PATHS.iter().map(path).collect()),
        ("/webhooks/0/clientConfig", ports.into_iter().map(port).collect()),
        (
            "/webhooks/0/clientConfig",
            vec![
                json!({}),
                Value::Null,
                json!("a"),
                json!({"url": null}),
                json!({"service": {}}),
                json!({"service": null}),
                json!({"url": "https://a", "service": {"namespace": "a", "name": "b"}}),
                service(json!({"namespace": "a"})),
                service(json!({"name": "a"})),
                service(json!({"namespace": "", "name": "a"})),
                service(json!({"namespace": "A b", "name": "C"})),
                service(json!({"namespace": "a", "name": "b", "extra": 1})),
                json!({"url": 1}),
                bundle(""),
                bundle("YQ=="),
                bundle("YQ"),
                bundle("YQ==\n"),
                bundle("Y_-="),
                bundle("a b="),
                bundle("YR=="),
                bundle("===="),
            ],
        ),
    ]
}

fn rules() -> Vec<(&'static str, Vec<Value>)> {
    let list = |items: &[&str]| json!(items);
    vec![
        ("/webhooks/0/rules", vec![json!([]), Value::Null, json!({}), json!([{}]), json!(["a"])]),
        ("/webhooks/0/rules/0/extra", texts(&[""])),
        (
            "/webhooks/0/rules/0/operations",
            vec![
                list(&[]),
                list(&["*"]),
                list(&["*", "*"]),
                list(&["*", "CREATE"]),
                list(&["create"]),
                list(&["CREATE", "CREATE"]),
                list(&["CREATE", "UPDATE", "DELETE", "CONNECT"]),
                list(&[""]),
                json!("CREATE"),
                Value::Null,
            ],
        ),
    ]
}

fn rule_parts() -> Vec<(&'static str, Vec<Value>)> {
    let list = |items: &[&str]| json!(items);
    vec![
        (
            "/webhooks/0/rules/0/apiGroups",
            vec![
                list(&[]),
                list(&["*"]),
                list(&["*", ""]),
                list(&["*", "*"]),
                list(&["", "apps"]),
                list(&["A b"]),
                Value::Null,
            ],
        ),
        (
            "/webhooks/0/rules/0/apiVersions",
            vec![
                list(&[]),
                list(&["*"]),
                list(&["*", "v1"]),
                list(&[""]),
                list(&["v1", ""]),
                list(&["x y"]),
            ],
        ),
        (
            "/webhooks/0/rules/0/resources",
            vec![
                list(&[]),
                list(&["*"]),
                list(&["*/*"]),
                list(&["*", "*/*"]),
                list(&["*", "pods"]),
                list(&["*", "pods/exec"]),
                list(&["pods/*", "pods/exec"]),
                list(&["pods/exec", "pods/*"]),
                list(&["*/exec", "pods/exec"]),
                list(&["pods/exec", "*/exec"]),
                list(&["pods", "pods/*"]),
                list(&["pods/*", "pods/*"]),
                list(&["*", "*"]),
                list(&["*/*", "*/*"]),
                list(&[""]),
                list(&["/"]),
                list(&["pods/"]),
                list(&["a/b/c"]),
                list(&["*", "*/exec"]),
                list(&["Pods"]),
                list(&["*/status", "*/scale"]),
                list(&["pods", ""]),
                json!("pods"),
            ],
        ),
        ("/webhooks/0/rules/0/scope", texts(&["*", "Cluster", "Namespaced", "namespaced", ""])),
        ("/webhooks/0/rules/0/scope", vec![Value::Null, json!(1)]),
    ]
}

fn selectors() -> Vec<(&'static str, Vec<Value>)> {
    let expression = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let long = "a".repeat(64);
    let values = vec![
        json!({}),
        Value::Null,
        json!([]),
        json!({"matchLabels": {"a": "b"}}),
        json!({"matchLabels": {"a b": "b"}}),
        json!({"matchLabels": {"a": "b c"}}),
        json!({"matchLabels": {"a.b/C": "D_e"}}),
        json!({"matchLabels": {"a": 1}}),
        json!({"matchLabels": ["a"]}),
        json!({"matchLabels": {"a": long}}),
        json!({"matchFields": {}}),
        json!({"matchExpressions": [{}]}),
        expression("a", "In", json!(["b"])),
        expression("a", "In", json!([])),
        expression("a", "In", Value::Null),
        expression("a", "NotIn", json!(["b", "b"])),
        expression("a", "NotIn", json!(["b c"])),
        expression("a", "In", json!([""])),
        expression("a", "Exists", json!([])),
        expression("a", "Exists", json!(["b"])),
        expression("a", "DoesNotExist", Value::Null),
        expression("a", "Is", json!(["b"])),
        expression("a", "in", json!(["b"])),
        expression("", "Exists", json!([])),
        expression("a/b/c", "Exists", json!([])),
        expression("/a", "Exists", json!([])),
        expression("A.b/c", "Exists", json!([])),
        expression(&long, "Exists", json!([])),
        expression("a", "In", json!("b")),
        expression("a", "In", json!([1])),
    ];
    vec![("/webhooks/0/namespaceSelector", values.clone()), ("/webhooks/0/objectSelector", values)]
}
