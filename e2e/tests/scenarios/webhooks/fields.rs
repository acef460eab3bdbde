//! Fields that objects always have, against the API server: it rejects an object without a field, or
//! completes it, exactly if `manifest check` has no finding about a condition that reads the field.

use hyper::Method;
use injectd_harness::{
    api::Api,
    expect::{Outcome, failed},
    scenario::note,
};
use injectd_webhooks::check::check;
use serde_json::{Value, json};

use super::with_rule;

/// The least number of objects that are accepted without the field, and of those that are not.
const LEAST: usize = 8;

/// An object without a field: its path in the API, its kind, the field, and the object's other fields.
struct Row {
    path: &'static str,
    kind: &'static str,
    field: &'static str,
    rest: Value,
}

/// Asks the API server about each row.
pub(super) async fn all(api: &Api, namespace: &str) -> Outcome {
    let (mut counts, mut differences) = ([0, 0], Vec::new());
    for row in rows() {
        let is_lacking = row.is_lacking(api, namespace).await?;
        counts[usize::from(is_lacking)] += 1;
        let found = row.findings();
        if found.is_empty() == is_lacking {
            let Row { kind, field, .. } = row;
            differences.push(format!("{kind} {field}: lacking {is_lacking}, found {found:?}"));
        }
    }
    if !differences.is_empty() {
        return Err(failed(differences.join("\n  ")));
    }
    if counts.iter().any(|count| *count < LEAST) {
        return Err(failed(format!("too few rows: {counts:?}")));
    }
    let [there, lacking] = counts;
    note(&format!("{there} fields are there, {lacking} are absent or null"));
    Ok(())
}

impl Row {
    /// Whether the API server accepts the object, without the field or with null there.
    async fn is_lacking(&self, api: &Api, namespace: &str) -> Outcome<bool> {
        let (version, path) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        let (prefix, version) = match version.split_once('/') {
            Some(_) => (format!("/apis/{version}"), version),
            None => (format!("/api/{version}"), version),
        };
        let mut object = self.rest.clone();
        object["apiVersion"] = version.into();
        object["kind"] = self.kind.into();
        object["metadata"]["name"] = "webhooks-fields".into();
        let is_namespaced = self.is_namespaced();
        let within = if is_namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        let path = format!("{prefix}{within}/{path}?dryRun=All");
        let answer = api.call(Method::POST, &path, Some(object.to_string())).await?;
        match answer.status {
            201 => {}
            400 | 422 => return Ok(false),
            status => {
                let text = format!("{}: status {status}: {}", self.kind, answer.body["message"]);
                return Err(failed(text));
            }
        }
        let mut value = &answer.body;
        for step in self.field.split('.') {
            let (name, is_list) =
                step.strip_suffix("[]").map_or((step, false), |name| (name, true));
            value = &value[name];
            if is_list {
                value = &value[0];
            }
        }
        Ok(value.is_null())
    }

    fn is_namespaced(&self) -> bool {
        !["clusterroles", "csinodes", "persistentvolumes", "flowschemas", "deviceclasses"]
            .iter()
            .any(|name| self.path.ends_with(name))
    }

    /// What is found about a condition that reads the field as a list or a map, and needs nothing else.
    fn findings(&self) -> Vec<String> {
        let (version, resource) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let read = self.field.replace("[]", "[0]");
        let mut object = with_rule(&json!({"apiGroups": [group], "apiVersions": [version],
            "operations": ["CREATE"], "resources": [resource]}));
        // What the field is in is there, so that only the field is asked about.
        let within = read.rsplit_once('.').map(|(within, _)| within);
        let guards = within.into_iter().flat_map(guards).map(|guard| format!("{guard} && "));
        let guards: String = guards.collect();
        let expression = format!("{guards}'x' in object.{read}");
        object["webhooks"][0]["matchConditions"] =
            json!([{"name": "read", "expression": expression}]);
        check([&object]).into_iter().map(|finding| finding.problem).collect()
    }
}

/// Conditions that are true if a field and all that it is in are there.
fn guards(field: &str) -> Vec<String> {
    let (mut all, mut path) = (Vec::new(), "object".to_owned());
    for step in field.split('.') {
        let (name, is_list) = step.strip_suffix("[0]").map_or((step, false), |name| (name, true));
        path = format!("{path}.{name}");
        all.push(format!("has({path}) && {path} != null"));
        if is_list {
            all.push(format!("size({path}) > 0"));
            path.push_str("[0]");
        }
    }
    all
}

fn row(path: &'static str, kind: &'static str, field: &'static str, rest: Value) -> Row {
    Row { path, kind, field, rest }
}

fn rows() -> Vec<Row> {
    [of_pods(), of_workloads(), of_storage(), of_access(), of_others()]
        .into_iter()
        .flatten()
        .collect()
}

fn pod(more: &Value) -> Value {
    let mut pod = json!({"spec": {"containers": [{"name": "a", "image": "a"}]}});
    let more = more.as_object().into_iter().flatten();
    for (key, value) in more {
        pod["spec"][key] = value.clone();
    }
    pod
}

fn volume(of: Value) -> Value {
    let mut volume = of;
    volume["name"] = "v".into();
    pod(&json!({"volumes": [volume]}))
}

fn of_pods() -> Vec<Row> {
    let pod_row = |field, rest| row("v1/pods", "Pod", field, rest);
    let terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
                 nodeSelectorTerms";
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}});
    vec![
        pod_row("spec.containers", json!({"spec": {}})),
        pod_row("spec.containers[].image", json!({"spec": {"containers": [{"name": "a"}]}})),
        pod_row("spec.tolerations", pod(&json!({}))),
        pod_row("spec.serviceAccountName", pod(&json!({}))),
        pod_row("spec.nodeSelector", pod(&json!({}))),
        pod_row(terms, pod(&json!({"affinity": affinity}))),
        pod_row("spec.volumes[].rbd.monitors", volume(json!({"rbd": {"image": "a"}}))),
        pod_row("spec.volumes[].cephfs.monitors", volume(json!({"cephfs": {}}))),
        pod_row("spec.volumes[].projected.sources", volume(json!({"projected": {}}))),
    ]
}

fn of_workloads() -> Vec<Row> {
    let template = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let selector = json!({"matchLabels": {"a": "b"}});
    let deployment =
        |field, spec| row("apps/v1/deployments", "Deployment", field, json!({"spec": spec}));
    let mut bare = template.clone();
    bare["metadata"] = json!({});
    let recreated = json!({"template": template, "selector": selector,
        "strategy": {"type": "Recreate"}});
    let mut once = template.clone();
    once["spec"]["restartPolicy"] = "Never".into();
    let job = |field, more: Value| {
        let mut spec = json!({"template": once});
        more.as_object().into_iter().flatten().for_each(|(key, value)| spec[key] = value.clone());
        row("batch/v1/jobs", "Job", field, json!({"spec": spec}))
    };
    vec![
        deployment("spec.selector", json!({"template": template})),
        deployment(
            "spec.template.metadata.labels",
            json!({"template": bare, "selector": selector}),
        ),
        deployment("spec.strategy.rollingUpdate", recreated),
        job("spec.podFailurePolicy.rules", json!({"podFailurePolicy": {}})),
        job(
            "spec.successPolicy.rules",
            json!({"successPolicy": {}, "completionMode": "Indexed",
            "completions": 2}),
        ),
    ]
}

fn of_storage() -> Vec<Row> {
    let volume = |field, more: Value| {
        let mut spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/a"}});
        more.as_object().into_iter().flatten().for_each(|(key, value)| spec[key] = value.clone());
        row("v1/persistentvolumes", "PersistentVolume", field, json!({"spec": spec}))
    };
    let claim = |field, spec| {
        row("v1/persistentvolumeclaims", "PersistentVolumeClaim", field, json!({"spec": spec}))
    };
    vec![
        volume("spec.accessModes", json!({"accessModes": null})),
        volume("spec.capacity", json!({"capacity": null})),
        volume("spec.mountOptions", json!({})),
        claim("spec.accessModes", json!({"resources": {"requests": {"storage": "1Gi"}}})),
        claim("spec.resources.requests", json!({"accessModes": ["ReadWriteOnce"]})),
        row("storage.k8s.io/v1/csinodes", "CSINode", "spec.drivers", json!({"spec": {}})),
    ]
}

fn of_access() -> Vec<Row> {
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"]}]});
    let of_roles = "rbac.authorization.k8s.io/v1/roles";
    let cluster_roles = "rbac.authorization.k8s.io/v1/clusterroles";
    vec![
        row(of_roles, "Role", "rules", json!({})),
        row(of_roles, "Role", "rules[].verbs", rules.clone()),
        row(cluster_roles, "ClusterRole", "rules", json!({})),
        row(cluster_roles, "ClusterRole", "rules", json!({"rules": []})),
        row(cluster_roles, "ClusterRole", "rules[].verbs", rules),
    ]
}

fn of_others() -> Vec<Row> {
    let slices = "discovery.k8s.io/v1/endpointslices";
    let slice = |field, more: Value| {
        let mut rest = json!({"addressType": "IPv4"});
        more.as_object().into_iter().flatten().for_each(|(key, value)| rest[key] = value.clone());
        row(slices, "EndpointSlice", field, rest)
    };
    let ingress = |field, rules| {
        row("networking.k8s.io/v1/ingresses", "Ingress", field, json!({"spec": {"rules": rules}}))
    };
    vec![
        slice("endpoints", json!({})),
        slice("ports", json!({})),
        slice("endpoints[].addresses", json!({"endpoints": [{}]})),
        row("v1/limitranges", "LimitRange", "spec.limits", json!({"spec": {}})),
        row("v1/configmaps", "ConfigMap", "data", json!({})),
        row("v1/services", "Service", "spec.selector", json!({"spec": {"ports": [{"port": 80}]}})),
        row(
            "resource.k8s.io/v1/resourceclaims",
            "ResourceClaim",
            "spec.devices.requests",
            json!({"spec": {}}),
        ),
        ingress("spec.rules[].http.paths", json!([{"http": {}}])),
    ]
}
