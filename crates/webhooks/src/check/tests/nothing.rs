//! Rules that match nothing.

use serde_json::{Value, json};

use super::{Severity, good};
use crate::check::check;

/// What is found about a rule of these groups, versions, operations, resources and scope.
fn found(rule: [&[&str]; 4], scope: &str) -> Vec<(Severity, String, String)> {
    let [groups, versions, operations, resources] = rule;
    let mut object = good();
    object["kind"] = "ValidatingWebhookConfiguration".into();
    object["webhooks"][0]["rules"] = json!([{
        "apiGroups": groups, "apiVersions": versions, "operations": operations,
        "resources": resources, "scope": scope,
    }]);
    problems(&object)
}

fn problems(object: &Value) -> Vec<(Severity, String, String)> {
    let all = check([object]);
    all.into_iter()
        .map(|it| (it.severity, it.field, format!("{}. {}", it.problem, it.advice)))
        .collect()
}

const V1: &[&str] = &["v1"];
const CREATE: &[&str] = &["CREATE"];
const CORE: &[&str] = &[""];
const ANY: &[&str] = &["*"];

#[test]
fn what_no_resource_has_is_named() {
    for (rule, scope, field, text) in [
        ([CORE, V1, CREATE, &["pod"]], "*", "resources", "Use the plural: pods."),
        ([CORE, V1, CREATE, &["po"]], "*", "resources", "Use the plural: pods."),
        ([ANY, ANY, CREATE, &["ingress"]], "*", "resources", "Use the plural: ingresses."),
        ([CORE, V1, CREATE, &["Pod"]], "*", "resources", "lower case: nothing matches. Use pods."),
        ([&["apps"], V1, CREATE, &["deployment"]], "*", "resources", "deployments"),
        ([CORE, V1, CREATE, &["pods", "service"]], "*", "resources", "\"service\" is not the name"),
        ([CORE, V1, CREATE, &["widgets"]], "*", "resources", "have no \"widgets\""),
        ([CORE, V1, CREATE, &["deployments"]], "*", "apiGroups", "in the API group \"apps\""),
        ([&["core"], V1, CREATE, &["pods"]], "*", "apiGroups", "no API group \"core\""),
        ([&["v1"], V1, CREATE, ANY], "*", "apiGroups", "no API group \"v1\""),
        ([&["apps/v1"], V1, CREATE, &["deployments"]], "*", "apiGroups", "without its version"),
        ([CORE, &["v1beta1"], CREATE, &["pods"]], "*", "apiVersions", "as v1 only"),
        ([&["apps"], &["apps/v1"], CREATE, &["deployments"]], "*", "apiVersions", "not a version"),
        (
            [&["autoscaling"], &["v2beta2"], CREATE, &["horizontalpodautoscalers"]],
            "*",
            "apiVersions",
            "as v1, v2 only",
        ),
        ([CORE, V1, CREATE, &["pods/foo"]], "*", "resources", "no subresource \"foo\""),
        ([CORE, V1, CREATE, &["nodes"]], "Namespaced", "scope", "nodes are never of scope"),
        ([CORE, V1, CREATE, &["namespaces"]], "Namespaced", "scope", "never of scope"),
        ([CORE, V1, CREATE, &["pods"]], "Cluster", "scope", "never of scope"),
        ([CORE, V1, &["CONNECT"], &["pods"]], "*", "operations", "such as pods/attach"),
        ([CORE, V1, CREATE, &["pods/exec"]], "*", "operations", "Use CONNECT."),
        ([CORE, V1, CREATE, &["pods/status"]], "*", "operations", "Use UPDATE."),
        ([CORE, V1, &["UPDATE", "DELETE"], &["pods/eviction"]], "*", "operations", "Use CREATE."),
        ([CORE, V1, ANY, &["pods/log"]], "*", "resources", "can only be read"),
        (
            [&["admissionregistration.k8s.io"], V1, CREATE, &["mutatingwebhookconfigurations"]],
            "*",
            "resources",
            "no webhook is called",
        ),
        ([&["authentication.k8s.io"], V1, CREATE, &["tokenreviews"]], "*", "resources", "1.37"),
        (
            [&["authorization.k8s.io"], V1, CREATE, &["subjectaccessreviews"]],
            "Cluster",
            "resources",
            "ExcludeAdmissionWebhookVirtualResources",
        ),
    ] {
        let all = found(rule, scope);
        let [(severity, at, problem)] = &*all else { panic!("{rule:?}: {all:?}") };
        assert_eq!(*severity, Severity::Warning, "{rule:?}");
        assert!(at.ends_with(field) && problem.contains(text), "{rule:?}: {at}: {problem}");
    }
}

#[test]
fn what_may_match_is_silent() {
    for (rule, scope) in [
        ([CORE, V1, CREATE, &["pods", "services"][..]], "Namespaced"),
        ([&["", "apps"], V1, CREATE, &["pods", "deployments"]], "*"),
        ([ANY, ANY, ANY, ANY], "*"),
        ([ANY, ANY, ANY, &["*/*"]], "*"),
        ([CORE, ANY, &["CONNECT"], &["pods/exec", "pods/attach"]], "*"),
        ([CORE, V1, ANY, &["pods/*"]], "*"),
        ([CORE, V1, &["UPDATE"], &["*/status"]], "*"),
        ([CORE, V1, &["CREATE", "CONNECT"], &["pods"]], "*"),
        // Groups with a domain may have anything.
        ([&["serving.knative.dev"], V1, CREATE, &["services"]], "Namespaced"),
        ([&["batch.volcano.sh"], &["v1alpha1"], CREATE, &["jobs"]], "*"),
        ([&["apps", "apps.kruise.io"], &["v1beta1"], CREATE, &["statefulsets"]], "*"),
        ([&["gateway.networking.k8s.io"], &["v1beta1"], CREATE, &["gateways"]], "*"),
        ([&["example.com"], &["v1alpha1"], CREATE, &["widget"]], "Cluster"),
        ([ANY, ANY, CREATE, &["widgets"]], "*"),
        // Older releases beside newer ones.
        ([&["extensions", "networking.k8s.io"], &["v1beta1", "v1"], CREATE, &["ingresses"]], "*"),
        ([&["autoscaling"], &["v2beta2", "v2"], CREATE, &["horizontalpodautoscalers"]], "*"),
        ([&["resource.k8s.io"], &["v1beta1"], CREATE, &["resourceclaims"]], "*"),
        ([&["apiextensions.k8s.io"], V1, CREATE, &["customresourcedefinitions"]], "Cluster"),
        ([&["rbac.authorization.k8s.io"], V1, CREATE, &["roles", "clusterroles"]], "*"),
    ] {
        assert_eq!(found(rule, scope), [], "{rule:?}");
    }
}

#[test]
fn a_name_for_files_of_the_api_server_is_named() {
    let mut object = good();
    object["metadata"]["name"] = "one.static.k8s.io".into();
    let all = problems(&object);
    assert_eq!((all[0].0, &*all[0].1), (Severity::Error, "clientConfig.service"));
    object["webhooks"][0]["clientConfig"] = json!({"url": "https://injector.example.com/inject"});
    // Only such configurations see others.
    object["webhooks"][0]["rules"][0]["apiGroups"] = json!(["admissionregistration.k8s.io"]);
    object["webhooks"][0]["rules"][0]["resources"] = json!(["validatingadmissionpolicies"]);
    object["webhooks"][0]["rules"][0]["scope"] = "*".into();
    let all = problems(&object);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].0, &*all[0].1), (Severity::Warning, "metadata.name"));
}
