//! The webhooks of the table.

use injectd_webhooks::Plugin;
use serde_json::{Value, json};

use super::recorder::{Recorder, SERVICE};

/// The configurations, in the order of their names.
const NAMES: [&str; 4] =
    ["webhooks-a-rules", "webhooks-b-selectors", "webhooks-c-conditions", "webhooks-d-validating"];

/// The configurations, the last one first.
pub(super) fn configurations(recorder: &Recorder) -> Vec<Value> {
    let [rules, selectors, conditions, validating] = NAMES;
    let of = |plugin, name, webhooks: Vec<Value>| configuration(plugin, name, &webhooks, recorder);
    let some = [rules_table().split_off(4), conditions_table()].concat();
    vec![
        of(Plugin::Validating, validating, numbered("v-d", some)),
        of(Plugin::Mutating, conditions, numbered("m-c", conditions_table())),
        of(Plugin::Mutating, selectors, numbered("m-b", selectors_table())),
        of(Plugin::Mutating, rules, numbered("m-a", rules_table())),
    ]
}

/// A configuration of webhooks that call the recorder.
pub(super) fn configuration(
    plugin: Plugin,
    name: &str,
    webhooks: &[Value],
    recorder: &Recorder,
) -> Value {
    let complete = |webhook: &Value| {
        let mut webhook = webhook.clone();
        let path = webhook.as_object_mut().and_then(|map| map.remove("path"));
        let service = json!({"namespace": recorder.namespace, "name": SERVICE, "path": path,
            "port": recorder.port});
        webhook["clientConfig"] = json!({"service": service, "caBundle": recorder.ca});
        webhook["sideEffects"] = "None".into();
        webhook["admissionReviewVersions"] = json!(["v1"]);
        for (key, default) in [
            ("failurePolicy", json!("Ignore")),
            ("rules", json!([rule(&["*"], &["*"], &["*"], &["*/*"], "*")])),
        ] {
            if webhook.get(key).is_none() {
                webhook[key] = default;
            }
        }
        webhook
    };
    let kind = match plugin {
        Plugin::Mutating => "MutatingWebhookConfiguration",
        Plugin::Validating => "ValidatingWebhookConfiguration",
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": webhooks.iter().map(complete).collect::<Vec<_>>(),
    })
}

/// Gives each webhook a name, and a path that names it.
fn numbered(prefix: &str, webhooks: Vec<Value>) -> Vec<Value> {
    let number = |(index, mut webhook): (usize, Value)| {
        // Not in the order of their names.
        webhook["name"] = format!("w{}.example.com", 99 - index).into();
        webhook["path"] = format!("/{prefix}-{index}").into();
        webhook
    };
    webhooks.into_iter().enumerate().map(number).collect()
}

fn rule(
    operations: &[&str],
    groups: &[&str],
    versions: &[&str],
    resources: &[&str],
    scope: &str,
) -> Value {
    json!({"operations": operations, "apiGroups": groups, "apiVersions": versions,
        "resources": resources, "scope": scope})
}

fn rules_table() -> Vec<Value> {
    let all = ["*"];
    let rules = [
        rule(&all, &all, &all, &["*/*"], "*"),
        rule(&all, &all, &all, &["*"], "*"),
        rule(&all, &all, &all, &["*"], "Namespaced"),
        rule(&all, &all, &all, &["*"], "Cluster"),
        rule(&["CREATE"], &[""], &["v1"], &["pods"], "*"),
        rule(&["UPDATE", "DELETE"], &[""], &["v1"], &["pods", "namespaces"], "*"),
        rule(&all, &[""], &["v1"], &["pods/*"], "*"),
        rule(&all, &[""], &["v1"], &["pods/status"], "*"),
        rule(&all, &all, &all, &["*/status"], "*"),
        rule(&all, &["apps"], &["v1"], &["deployments/scale"], "*"),
        rule(&all, &["apps"], &["v1"], &["deployments"], "Namespaced"),
        rule(&all, &["apps"], &["v1beta1"], &["deployments"], "*"),
        rule(&all, &["autoscaling"], &["v1"], &["horizontalpodautoscalers"], "*"),
        rule(&all, &["autoscaling"], &["v2"], &["horizontalpodautoscalers"], "*"),
        rule(&all, &["events.k8s.io"], &["v1"], &["events"], "*"),
        rule(&all, &[""], &["v1"], &["events"], "*"),
        rule(&all, &[""], &["v1"], &["namespaces"], "Cluster"),
        rule(&all, &[""], &["v1"], &["namespaces"], "Namespaced"),
        rule(&["CREATE"], &["rbac.authorization.k8s.io"], &all, &["clusterroles"], "*"),
        rule(&["CONNECT"], &all, &all, &["*/*"], "*"),
    ];
    let with = |policy: &str| {
        let rules = rules.clone();
        rules.map(|rule| json!({"rules": [rule], "matchPolicy": policy})).to_vec()
    };
    let two = json!({"rules": [rules[9], rules[4]]});
    [with("Equivalent"), with("Exact"), vec![two]].concat()
}

fn selectors_table() -> Vec<Value> {
    let expression = |key: &str, operator: &str, values: &[&str]| {
        let mut expression = json!({"key": key, "operator": operator});
        if !values.is_empty() {
            expression["values"] = json!(values);
        }
        json!({"matchExpressions": [expression]})
    };
    let selectors = |key: &str, one: &str, other: &str| {
        vec![
            json!({"matchLabels": {key: one}}),
            json!({"matchLabels": {key: other}}),
            expression(key, "In", &[one, "x"]),
            expression(key, "In", &[other]),
            expression(key, "NotIn", &[one]),
            expression(key, "NotIn", &[other, "x"]),
            expression(key, "Exists", &[]),
            expression(key, "DoesNotExist", &[]),
            json!({}),
        ]
    };
    let namespaces = selectors("team", "shop", "bank").into_iter();
    let objects = selectors("app", "web", "api").into_iter();
    let namespaces = namespaces.map(|selector| json!({"namespaceSelector": selector}));
    let objects = objects.map(|selector| json!({"objectSelector": selector}));
    let both = json!({
        "namespaceSelector": {"matchLabels": {"team": "shop", "tier": "web"}},
        "objectSelector": {"matchLabels": {"app": "web"}},
    });
    namespaces.chain(objects).chain([both]).collect()
}

fn conditions_table() -> Vec<Value> {
    let conditions = [
        &["true"][..],
        &["false"],
        &["request.operation == 'CREATE'"],
        &["request.operation != 'DELETE'", "object != null"],
        &["oldObject == null"],
        &["oldObject != null && oldObject.metadata.name == 'first'"],
        &["request.resource.resource == 'pods'"],
        &["request.kind.kind in ['Pod', 'Namespace']"],
        &["has(request.namespace) && request.namespace.startsWith('webhooks-')"],
        &["has(request.subResource)"],
        &["request.dryRun"],
        &["object.metadata.labels.app == 'web'"],
        &["has(object.metadata.labels) && 'app' in object.metadata.labels"],
        &["object.metadata.labels.app == 'web'", "false"],
        &["object.metadata.absent.field == 1", "request.resource.resource != 'pods'"],
        &["object.metadata.?labels.?app.orValue('none') != 'none'"],
        &["object.spec.containers.all(it, it.image.matches('^example[.]com/'))"],
        &["object.spec.containers.exists(it, it.name == 'main')"],
        &["object.spec.containers.map(it, it.name).size() == 1"],
        &["size(request.name) > 3 || request.name == ''"],
        &["object.metadata.name.contains('i') ? true : false"],
        &["object.spec.replicas + 1 == 3"],
        &["request.requestKind.version == 'v1'"],
        &["object.metadata.name.upperAscii() == 'NEW'"],
    ];
    let conditions = conditions.into_iter().map(|texts| {
        let named = texts
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"name": format!("c{index}"), "expression": text}));
        json!({"matchConditions": named.collect::<Vec<_>>()})
    });
    conditions.collect()
}
