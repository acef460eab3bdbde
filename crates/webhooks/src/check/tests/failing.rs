//! Conditions that fail for some requests, and those that are guarded.

use serde_json::{Value, json};

use super::{Severity, good};
use crate::check::check;

/// A webhook for pods, with conditions.
pub(super) struct Case<'c> {
    pub(super) operations: &'c [&'c str],
    pub(super) resources: &'c [&'c str],
    pub(super) expressions: &'c [&'c str],
}

pub(super) const CREATE: &[&str] = &["CREATE"];
pub(super) const PODS: &[&str] = &["pods"];

impl Case<'_> {
    pub(super) fn object(&self, kind: &str, policy: &str) -> Value {
        let mut object = good();
        object["kind"] = kind.into();
        let webhook = &mut object["webhooks"][0];
        webhook["failurePolicy"] = policy.into();
        // Nothing else is found with Fail.
        webhook["objectSelector"] = json!({"matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": ["injector"]}]});
        webhook["namespaceSelector"] = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]});
        let rule = &mut webhook["rules"][0];
        rule["operations"] = json!(self.operations);
        rule["resources"] = json!(self.resources);
        rule["scope"] = "*".into();
        rule["apiGroups"] = json!(["*"]);
        rule["apiVersions"] = json!(["*"]);
        let conditions = self.expressions.iter().enumerate();
        webhook["matchConditions"] = conditions
            .map(|(index, text)| json!({"name": format!("c{index}"), "expression": text}))
            .collect();
        object
    }

    /// Problems and advice about the conditions.
    pub(super) fn found(&self, kind: &str, policy: &str) -> Vec<(Severity, String, String)> {
        let all = check([&self.object(kind, policy)]);
        let all = all.into_iter().filter(|it| it.field.starts_with("matchConditions["));
        all.map(|it| (it.severity, it.problem, it.advice)).collect()
    }
}

pub(super) fn of_pods(operations: &[&str], expression: &str) -> Vec<(Severity, String, String)> {
    let case = Case { operations, resources: PODS, expressions: &[expression] };
    case.found("MutatingWebhookConfiguration", "Fail")
}

#[test]
fn a_field_that_may_be_absent_needs_a_guard() {
    for (expression, lack) in [
        (
            "object.metadata.labels['app'] != 'x'",
            "pods without metadata.labels or metadata.labels.app",
        ),
        ("object.metadata.labels.app != 'x'", "metadata.labels.app"),
        ("object['metadata']['labels']['app'] != 'x'", "metadata.labels.app"),
        ("'app' in object.metadata.labels", "pods without metadata.labels;"),
        ("!('app' in object.metadata.annotations)", "metadata.annotations"),
        ("object.metadata.labels.exists(k, k == 'app')", "metadata.labels"),
        ("object.metadata.labels.all(k, k != 'app')", "metadata.labels"),
        ("size(object.metadata.labels) > 0", "metadata.labels"),
        ("object.metadata.annotations.size() > 0", "metadata.annotations"),
        ("has(object.metadata.labels.app)", "metadata.labels;"),
        ("has(object.metadata.labels) && object.metadata.labels['app'] == 'x'", "labels.app"),
        ("has(object.metadata.labels) || object.metadata.labels['app'] == 'x'", "labels;"),
        ("has(object.metadata.annotations) && 'a' in object.metadata.labels", "metadata.labels"),
        ("'app' in object.metadata.labels || has(object.metadata.labels)", "metadata.labels"),
        ("object.metadata.name != 'x'", "metadata.name"),
        ("request.name != 'x'", "request.name"),
        ("object.spec.hostNetwork != true", "spec.hostNetwork"),
        ("!object.spec.hostNetwork", "spec.hostNetwork"),
        ("object.spec.containers.all(c, !c.securityContext.privileged)", "[].securityContext"),
        (
            "object.spec.containers.exists(c, has(c.securityContext) && c.securityContext.privileged)",
            "spec.containers[].securityContext.privileged",
        ),
        ("object.spec.initContainers.size() == 0", "spec.initContainers"),
        ("object.spec.containers[1].name != 'x'", "spec.containers[1]"),
        ("object.metadata.ownerReferences[0].kind == 'Job'", "metadata.ownerReferences"),
        ("object.spec.nodeSelector['a'] == 'b'", "spec.nodeSelector"),
        ("request.subResource == ''", "request.subResource"),
        ("request.userInfo.extra['a'] == ['b']", "request.userInfo.extra"),
        ("request.userInfo.uid != ''", "request.userInfo.uid"),
        ("has(object.metadata.labels) ? true : object.metadata.labels.a == 'b'", "metadata.labels"),
        ("object.metadata.?labels.value()['a'] == 'b'", "an optional has no value"),
        ("object.metadata.?labels[?'a'].value() == 'b'", "an optional has no value"),
        ("object.spec.hostNetwrok == true", "spec.hostNetwrok"),
    ] {
        let all = of_pods(CREATE, expression);
        let [(severity, problem, advice)] = &*all else { panic!("{expression}: {all:?}") };
        assert_eq!(*severity, Severity::Danger, "{expression}");
        assert!(problem.contains(lack), "{expression}: {problem}");
        assert!(problem.ends_with("with Fail, they are rejected"), "{problem}");
        assert!(!advice.is_empty(), "{expression}");
    }
}

#[test]
fn a_guard_counts_wherever_it_stands() {
    for expression in [
        "true",
        "has(object.metadata.labels) && 'app' in object.metadata.labels && \
         object.metadata.labels['app'] == 'x'",
        "!has(object.metadata.labels) || !('app' in object.metadata.labels) || \
         object.metadata.labels['app'] != 'x'",
        "!(has(object.metadata.labels) && 'app' in object.metadata.labels) || \
         object.metadata.labels['app'] != 'x'",
        "has(object.metadata.labels) ? 'a' in object.metadata.labels : true",
        "!has(object.metadata.labels) ? true : 'a' in object.metadata.labels",
        "has(object.metadata.labels) && has(object.metadata.labels.app) && \
         object.metadata.labels.app == 'x'",
        "object.metadata.labels['a'] == 'b' && has(object.metadata.labels) && \
         has(object.metadata.labels.a)",
        "object.metadata.?labels[?'app'].orValue('') != 'x'",
        "object.metadata.?labels.app.orValue('') != 'x'",
        "object.metadata.?labels.orValue({}).size() > 0",
        "!object.?metadata.labels.app.hasValue()",
        "object.metadata.?labels[?'app'].optMap(v, v == 'x').orValue(false)",
        "has(object.spec.hostNetwork) && object.spec.hostNetwork",
        "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
        "object.kind == 'Pod' && object.apiVersion == 'v1'",
        "object.spec.containers.exists(c, c.name == 'app')",
        "object.spec.containers[0].image != 'x'",
        "object.spec.containers.all(c, !has(c.securityContext) || \
         !has(c.securityContext.privileged) || !c.securityContext.privileged)",
        "object.spec.containers.filter(c, has(c.env)).all(c, c.env.all(e, e.name != 'x'))",
        "has(object.metadata.labels) && object.metadata.labels.all(k, \
         object.metadata.labels[k] != 'x')",
        "has(object.metadata.labels) && object.metadata.labels.exists(k, k == 'a') && \
         object.metadata.labels['a'] == 'b'",
        "has(object.metadata.ownerReferences) && size(object.metadata.ownerReferences) > 0 && \
         object.metadata.ownerReferences[0].kind == 'Job'",
        "object.spec.containers.size() > 1 && object.spec.containers[1].name == 'x'",
        "has(object.metadata.ownerReferences) && object.metadata.ownerReferences[0].kind == 'Job'",
        "has(object.spec.volumes) && object.spec.volumes[0].name == 'x'",
        "has(object.spec.initContainers) && object.spec.initContainers.size() > 0 && \
         object.spec.initContainers[object.spec.initContainers.size() - 1].name == 'x'",
        "request.userInfo.groups[0] != 'x'",
        "has(object.metadata.name) && object.metadata.name == 'x'",
        "object.metadata.namespace != 'a' && request.namespace != 'a'",
        "request.operation == 'CREATE' && request.kind.kind == 'Pod'",
        "request.resource.resource == 'pods' && request.resource.group == ''",
        "request.userInfo.username != 'a' && !('b' in request.userInfo.groups)",
        "request.userInfo.groups.exists(g, g == 'b')",
        "!has(request.subResource) && !has(request.name)",
        "request.dryRun == false",
        "oldObject == null",
        "oldObject == null || oldObject.spec.x == 1",
        "has(oldObject.metadata) && oldObject.metadata.labels.a == 'b'",
        "authorizer.group('').resource('pods').check('create').allowed()",
        "['a', 'b'].exists(k, has(object.metadata.labels) && k in object.metadata.labels)",
        "has(object.spec.serviceAccountName) || object.spec.serviceAccountName != 'x'",
        // Never so for pods.
        "request.kind.kind == 'Deployment' && object.spec.template.x == 1",
        "request.operation == 'DELETE' && oldObject.metadata.labels.a == 'b'",
        "object.kind != 'Pod' && object.spec.x == 1",
    ] {
        assert_eq!(of_pods(CREATE, expression), [], "{expression}");
    }
}

#[test]
fn a_false_condition_beside_it_is_a_guard() {
    let labels = "object.metadata.labels['a'] == 'b'";
    let guard = "has(object.metadata.labels) && 'a' in object.metadata.labels";
    let kind = "MutatingWebhookConfiguration";
    for (expressions, count) in [
        (&[labels][..], 1),
        (&[labels, guard], 0),
        (&[guard, labels], 0),
        (&[labels, "has(object.metadata.labels)"], 1),
        (&[labels, "object.metadata.labels.exists(k, k == 'a')"], 2),
        (&[labels, "true"], 1),
        (&[labels, "false"], 0),
    ] {
        let case = Case { operations: CREATE, resources: PODS, expressions };
        assert_eq!(case.found(kind, "Fail").len(), count, "{expressions:?}");
    }
}

#[test]
fn an_object_that_is_null_needs_a_guard() {
    let delete = &["CREATE", "DELETE"];
    let all = of_pods(delete, "!has(object.spec.hostNetwork)");
    assert!(all[0].1.contains("DELETE of pods where object is null"), "{all:?}");
    assert!(all[0].2.contains("object != null && (…)"), "{all:?}");
    let update = &["CREATE", "UPDATE"];
    let all = of_pods(update, "oldObject.metadata.uid != ''");
    assert!(all[0].1.contains("CREATE of pods where oldObject is null"), "{all:?}");
    for (operations, expression) in [
        (delete, "request.operation == 'DELETE' || !has(object.spec.hostNetwork)"),
        (delete, "object == null || !has(object.spec.hostNetwork)"),
        (delete, "object != null && !has(object.spec.hostNetwork)"),
        (delete, "request.operation in ['CREATE', 'UPDATE'] && has(object.spec.hostNetwork)"),
        (delete, "!has(object.spec) || !has(object.spec.hostNetwork)"),
        (delete, "(object == null ? oldObject : object).kind == 'Pod'"),
        (update, "oldObject == null || has(oldObject.spec)"),
        (update, "request.operation == 'CREATE' || oldObject.metadata.name != ''"),
    ] {
        assert_eq!(of_pods(operations, expression), [], "{expression}");
    }
    // A deletion of many pods has no name.
    assert!(of_pods(&["DELETE"], "request.name != 'x'")[0].1.contains("request.name"));
    assert_eq!(of_pods(&["UPDATE"], "request.name != 'x'"), []);
}

#[test]
fn what_is_there_depends_on_the_resource() {
    let found = |operations: &[&str], resources: &[&str], expression: &str| {
        let case = Case { operations, resources, expressions: &[expression] };
        case.found("MutatingWebhookConfiguration", "Fail").into_iter().map(|it| it.1).collect()
    };
    for (operations, resource, expression, lack) in [
        (CREATE, "services", "object.spec.type == 'ClusterIP'", ""),
        (
            CREATE,
            "services",
            "object.spec.externalName == 'a'",
            "services without spec.externalName",
        ),
        (CREATE, "configmaps", "'a' in object.data", "configmaps without data"),
        (CREATE, "deployments", "object.spec.template.spec.containers.size() > 0", ""),
        (
            CREATE,
            "deployments",
            "object.spec.template.metadata.annotations.a == 'b'",
            "annotations",
        ),
        (CREATE, "namespaces", "object.metadata.labels['kubernetes.io/metadata.name'] == 'a'", ""),
        (CREATE, "nodes", "object.metadata.namespace == 'a'", "nodes without metadata.namespace"),
        (CREATE, "nodes", "request.namespace == 'a'", "request.namespace"),
        (&["CONNECT"], "pods/exec", "object.metadata.name == 'a'", "without metadata"),
        (&["CONNECT"], "pods/exec", "object.kind == 'PodExecOptions'", ""),
        (CREATE, "*", "object.spec.replicas > 1", "objects without spec"),
        (CREATE, "*", "object.kind != 'Deployment' || object.spec.replicas > 1", ""),
        (CREATE, "*", "!(request.resource.resource in ['leases', 'events'])", ""),
        (CREATE, "*", "request.resource.resource != 'pods' || has(object.spec.x)", ""),
        (CREATE, "*", "object.metadata.labels.a == 'b'", "objects without metadata.labels"),
    ] {
        let all: Vec<String> = found(operations, &[resource], expression);
        assert_eq!(all.is_empty(), lack.is_empty(), "{resource} {expression}: {all:?}");
        assert!(all.iter().all(|it| it.contains(lack)), "{resource} {expression}: {all:?}");
    }
    let of_custom = |expression: &str| {
        let case = Case { operations: CREATE, resources: PODS, expressions: &[expression] };
        let mut object = case.object("ValidatingWebhookConfiguration", "Fail");
        object["webhooks"][0]["rules"][0]["apiGroups"] = json!(["example.com"]);
        object["webhooks"][0]["rules"][0]["resources"] = json!(["widgets"]);
        let all = check([&object]);
        all.into_iter().map(|it| it.problem).collect::<Vec<_>>()
    };
    // Which fields a custom resource always has is not known.
    assert_eq!(of_custom("object.spec.size > 1"), [""; 0]);
    assert!(of_custom("object.metadata.labels.a == 'b'")[0].contains("widgets without"));
}

#[test]
fn the_failure_policy_and_the_plugin_decide_what_follows() {
    let found = |expression: &str, kind: &str, policy: &str| {
        let case = Case { operations: CREATE, resources: PODS, expressions: &[expression] };
        case.found(kind, policy)
    };
    let mutating = "MutatingWebhookConfiguration";
    let all = found("object.metadata.labels.a == 'b'", mutating, "Ignore");
    assert_eq!(all[0].0, Severity::Warning);
    assert!(all[0].1.ends_with("with Ignore, the webhook is not called for them"), "{all:?}");
    // The name is generated between both plugins.
    let validating = "ValidatingWebhookConfiguration";
    for expression in ["object.metadata.name != 'a'", "request.name != 'a'"] {
        assert_eq!(found(expression, validating, "Fail"), [], "{expression}");
        assert_eq!(found(expression, mutating, "Fail").len(), 1, "{expression}");
    }
}

#[test]
fn a_selector_is_a_guard_for_labels() {
    let found = |operations: &[&str]| {
        let case = Case {
            operations,
            resources: PODS,
            expressions: &["object.metadata.labels['a'] == 'b'"],
        };
        let mut object = case.object("MutatingWebhookConfiguration", "Fail");
        object["webhooks"][0]["objectSelector"] =
            json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
        check([&object]).len()
    };
    assert_eq!(found(CREATE), 0);
    // The old object may be the one with the label.
    assert_eq!(found(&["UPDATE"]), 1);
}

#[test]
fn namespace_object_is_null() {
    for (expression, text) in [
        ("'team' in namespaceObject.metadata.labels", "it fails for every request"),
        ("namespaceObject.metadata.name != 'a'", "it fails for every request"),
        ("namespaceObject.metadata.?labels[?'a'].orValue('') == 'b'", "for every request"),
        ("object.kind == 'Job' || namespaceObject.metadata.name == 'a'", "for every request"),
        ("request.dryRun || namespaceObject.metadata.name == 'a'", "for which it is read"),
        ("namespaceObject == null || namespaceObject.metadata.name == 'a'", "null in the"),
    ] {
        let all = of_pods(CREATE, expression);
        let [(severity, problem, advice)] = &*all else { panic!("{expression}: {all:?}") };
        let is_failing = problem.contains("fails");
        assert_eq!(*severity == Severity::Danger, is_failing, "{expression}");
        assert!(problem.contains(text), "{expression}: {problem}");
        assert!(advice.contains("namespaceSelector"), "{advice}");
    }
}

#[test]
fn the_requests_are_a_sentence() {
    let all = &["CREATE", "UPDATE", "DELETE"];
    let case = |resources: &'static [&'static str], expression: &'static str| {
        let case = Case { operations: all, resources, expressions: &[expression] };
        case.found("MutatingWebhookConfiguration", "Fail").remove(0).1
    };
    for (resources, expression, text) in [
        (
            PODS,
            "object.metadata.labels.a == 'b'",
            "pods without metadata.labels or metadata.labels.a \
            and for DELETE of pods where object is null",
        ),
        (
            PODS,
            "oldObject.metadata.labels.a == 'b'",
            "CREATE of pods where oldObject is null and for \
            UPDATE and DELETE of pods where oldObject.metadata.labels or oldObject.metadata.labels.a \
            is absent",
        ),
        (
            PODS,
            "request.userInfo.uid != ''",
            "CREATE, UPDATE and DELETE of pods where \
            request.userInfo.uid is absent",
        ),
        (
            &["pods", "services"],
            "request.userInfo.uid != ''",
            "CREATE, UPDATE and DELETE of pods and \
            services where request.userInfo.uid is absent",
        ),
        (
            &["*"],
            "request.userInfo.uid != ''",
            "CREATE, UPDATE and DELETE of objects where \
            request.userInfo.uid is absent",
        ),
    ] {
        let expected = format!("c0: it fails for {text}; with Fail, they are rejected");
        assert_eq!(case(resources, expression), expected);
    }
}

#[test]
fn namespace_object_does_not_hide_what_else_fails() {
    let all = of_pods(CREATE, "namespaceObject == null && object.metadata.labels.a == 'b'");
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all.iter().any(|it| it.1.contains("pods without metadata.labels")), "{all:?}");
}
