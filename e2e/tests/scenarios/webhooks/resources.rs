//! Rules that match nothing, against the discovery of the API server: none that names a served resource,
//! and each that differs from one.

use injectd_harness::{
    api::Api,
    expect::{Outcome, expect, failed},
    scenario::note,
};
use injectd_webhooks::check::check;
use serde_json::{Value, json};

use super::with_rule;

/// The least number of resources with subresources; Kubernetes 1.36 serves 98 that webhooks see.
const RESOURCES: usize = 90;
/// Groups whose requests no webhook sees, or none from 1.37 on: they have a finding anyway.
const NOT_ASKED: [&str; 3] =
    ["admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"];
const VERBS: [(&str, &str); 4] =
    [("create", "CREATE"), ("update", "UPDATE"), ("patch", "UPDATE"), ("delete", "DELETE")];
/// Subresources that are connected to, whatever verbs discovery has for them.
const CONNECTED: [&str; 6] =
    ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy"];

/// Checks rules for all resources that the API server serves itself.
pub(super) async fn all(api: &Api) -> Outcome {
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = api.get("/apis").await?.ok()?;
    for group in groups["groups"].as_array().into_iter().flatten() {
        // Those of other scenarios are custom resources.
        let name = group["name"].as_str().unwrap_or_default();
        if name.contains('.') && !name.ends_with(".k8s.io") {
            continue;
        }
        let of_group = group["versions"].as_array().into_iter().flatten();
        versions
            .extend(of_group.filter_map(|version| {
                Some(format!("/apis/{}", version["groupVersion"].as_str()?))
            }));
    }
    let mut count = 0;
    for version in versions {
        let list = api.get(&version).await?.ok()?;
        for resource in list["resources"].as_array().into_iter().flatten() {
            count += usize::from(one(&list, resource)?);
        }
    }
    if count < RESOURCES {
        return Err(failed(format!("only {count} resources")));
    }
    note(&format!("{count} resources"));
    Ok(())
}

/// Checks a resource; `false` if webhooks are not asked about it.
fn one(list: &Value, resource: &Value) -> Outcome<bool> {
    let version = list["groupVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let name = resource["name"].as_str().unwrap_or_default();
    let verbs = resource["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let operations: Vec<_> = verbs
        .filter_map(|verb| VERBS.iter().find(|(known, _)| *known == verb))
        .map(|(_, operation)| *operation)
        .collect();
    let operations =
        if group.is_empty() && CONNECTED.contains(&name) { vec!["CONNECT"] } else { operations };
    if operations.is_empty() || NOT_ASKED.contains(&group) {
        return Ok(false);
    }
    let is_namespaced = resource["namespaced"] == true;
    let scopes = if is_namespaced { ["Namespaced", "Cluster"] } else { ["Cluster", "Namespaced"] };
    for operation in &operations {
        let rule = [group, version, name, scopes[0], operation];
        expect(format!("the findings of {rule:?}"), Vec::<String>::new(), findings(rule))?;
    }
    let singular = resource["singularName"]
        .as_str()
        .filter(|singular| !singular.is_empty() && *singular != name);
    let other = if operations == ["CONNECT"] { "CREATE" } else { "CONNECT" };
    let wrong = [
        Some([group, version, name, scopes[1], operations[0]]),
        Some([group, "v9", name, scopes[0], operations[0]]),
        Some([group, version, name, scopes[0], other]),
        singular.map(|singular| [group, version, singular, scopes[0], operations[0]]),
    ];
    for rule in wrong.into_iter().flatten() {
        expect(format!("the number of findings of {rule:?}"), 1, findings(rule).len())?;
    }
    Ok(true)
}

/// What is found about a rule: group, version, resource, scope, operation.
fn findings([group, version, resource, scope, operation]: [&str; 5]) -> Vec<String> {
    let object = with_rule(&json!({"apiGroups": [group], "apiVersions": [version],
        "operations": [operation], "resources": [resource], "scope": scope}));
    check([&object])
        .into_iter()
        .map(|finding| format!("{}: {}", finding.field, finding.problem))
        .collect()
}
