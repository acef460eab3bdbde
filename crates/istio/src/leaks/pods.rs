//! The pods that a check of templates renders.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::{
    annotations::PROXY_CONFIG_ANNOTATION,
    taint::{NameOf, Source, neutral::Form},
};

/// The fields of a `ProxyConfig` that are texts, and a map of texts.
const TEXT_FIELDS: [&str; 6] = [
    "configPath",
    "binaryPath",
    "serviceCluster",
    "discoveryAddress",
    "statsdUdpAddress",
    "proxyBootstrapTemplatePath",
];

/// Values with a hostile text: alone, and in what a template may read it from.
pub(super) fn values(source: &Source, hostile: &str) -> Vec<(String, Form)> {
    let alone = (hostile.to_owned(), Form::Text);
    match source {
        Source::Annotation(key) if key == PROXY_CONFIG_ANNOTATION => {
            let fields = TEXT_FIELDS.iter().map(|field| json!({*field: hostile}).to_string());
            let metadata = [json!({"A": hostile}), json!({hostile: "a"})]
                .map(|map| json!({"proxyMetadata": map}).to_string());
            fields.chain(metadata).map(|text| (text, Form::Text)).chain([alone]).collect()
        }
        Source::Annotation(_) => {
            let json = [
                json!({hostile: {"a": hostile}}),
                json!({"a": hostile}),
                json!([{"name": hostile}]),
            ];
            json.iter().map(|json| (json.to_string(), Form::Json)).chain([alone]).collect()
        }
        _ => vec![alone],
    }
}

/// A pod with a value at a source, and with another value of all other annotations and labels.
pub(super) fn pod_with(
    source: &Source,
    value: &str,
    beside: Option<&str>,
    others: &BTreeSet<Source>,
) -> Json {
    let mut pod = json!({
        "metadata": {"name": "web", "namespace": "default", "labels": {}, "annotations": {}},
        "spec": {"containers": [{"name": "web", "image": "web", "ports": [{"containerPort": 80}]}]},
    });
    let mut set = |source: &Source, value: &str| match source {
        Source::Annotation(key) => pod["metadata"]["annotations"][key] = value.into(),
        Source::Label(key) => pod["metadata"]["labels"][key] = value.into(),
        Source::Name(NameOf::Namespace) => pod["metadata"]["namespace"] = value.into(),
        Source::Name(NameOf::Pod | NameOf::Owner) => pod["metadata"]["name"] = value.into(),
        Source::Name(NameOf::Part) => pod["spec"] = spec_of(value),
    };
    if let Some(value) = beside {
        for other in others.iter().filter(|other| !matches!(other, Source::Name(_))) {
            set(other, value);
        }
    }
    set(source, value);
    pod
}

/// A spec of which every text is this value.
fn spec_of(text: &str) -> Json {
    let container = json!({
        "name": text, "image": text, "imagePullPolicy": text, "command": [text], "args": [text],
        "workingDir": text, "env": [{"name": text, "value": text}],
        "ports": [{"name": text, "protocol": text, "containerPort": 80}],
        "resources": {"limits": {text: "1"}, "requests": {text: "1"}},
        "volumeMounts": [{"name": text, "mountPath": text, "subPath": text}],
    });
    json!({
        "containers": [container], "initContainers": [container],
        "volumes": [{"name": text, "hostPath": {"path": text}}],
        "serviceAccountName": text, "hostname": text, "subdomain": text, "nodeName": text,
        "schedulerName": text, "priorityClassName": text, "runtimeClassName": text,
        "dnsPolicy": text, "restartPolicy": text, "nodeSelector": {text: text},
        "imagePullSecrets": [{"name": text}],
        "tolerations": [{"key": text, "operator": text, "value": text, "effect": text}],
        "hostAliases": [{"ip": text, "hostnames": [text]}],
        "dnsConfig": {"nameservers": [text], "searches": [text]},
        "securityContext": {"sysctls": [{"name": text, "value": text}]},
    })
}
