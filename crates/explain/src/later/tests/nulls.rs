//! A null is as good as absent, except for an amount: Kubernetes reads that as zero.

use super::*;

/// A pod with many fields, to which something objects in each check.
pub(super) fn rich() -> Value {
    json!({
        "metadata": {"annotations": {
            "container.apparmor.security.beta.kubernetes.io/app": "unconfined",
        }},
        "spec": {
            "hostNetwork": true,
            "hostUsers": false,
            "os": {"name": "linux"},
            "activeDeadlineSeconds": 5,
            "priorityClassName": "high",
            "overhead": {"cpu": "1"},
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "securityContext": {
                "runAsNonRoot": false,
                "runAsUser": 0,
                "seccompProfile": {"type": "Unconfined"},
                "seLinuxOptions": {"user": "u", "role": "r", "type": "t"},
                "sysctls": [{"name": "kernel.msgmax", "value": "1"}],
                "windowsOptions": {"hostProcess": true},
            },
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "n", "nfs": {}}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "a", "namespaces": ["b"], "namespaceSelector": {}},
            ]}},
            "initContainers": [{
                "name": "init",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            }],
            "containers": [{
                "name": "app",
                "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
                "ports": [{"containerPort": 80, "hostPort": 80}],
                "livenessProbe": {"httpGet": {"host": "h", "port": 1}},
                "lifecycle": {"preStop": {"tcpSocket": {"host": "h", "port": 1}}},
                "securityContext": {
                    "privileged": true,
                    "allowPrivilegeEscalation": true,
                    "procMount": "Unmasked",
                    "capabilities": {"add": ["NET_ADMIN"], "drop": ["KILL"]},
                    "appArmorProfile": {"type": "Unconfined"},
                },
            }],
        },
    })
}

/// The places of all members of objects, but for amounts.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    if ["requests", "limits", "overhead"].iter().any(|amounts| at.ends_with(amounts)) {
        return;
    }
    let children: Vec<_> = match value {
        Value::Object(members) => {
            members.iter().map(|(key, it)| (key.replace('/', "~1"), it)).collect()
        }
        Value::Array(list) => {
            list.iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect()
        }
        _ => Vec::new(),
    };
    for (key, child) in children {
        let at = format!("{at}/{key}");
        if value.is_object() {
            found.push(at.clone());
        }
        places(child, &at, found);
    }
}

fn without(mut pod: Value, place: &str) -> Value {
    let (parent, key) = place.rsplit_once('/').expect("a place");
    let parent = pod.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
    parent.remove(&key.replace("~1", "/"));
    pod
}

#[test]
fn a_null_is_as_good_as_absent() {
    let pod = rich();
    let mut found = Vec::new();
    places(&pod, "", &mut found);
    assert!(found.len() > 60, "{found:?}");
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "baseline"});
    let namespace = json!({"metadata": {"labels": labels}});
    let hard = json!({"cpu": "0", "requests.memory": "0", "limits.cpu": "0", "pods": "0"});
    let selector =
        json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]});
    let scopes = ["Terminating", "NotBestEffort", "CrossNamespacePodAffinity"];
    let quotas: Vec<_> = scopes
        .iter()
        .map(|scope| json!({"spec": {"hard": hard, "scopes": [scope], "scopeSelector": selector}}))
        .chain([json!({"spec": {"hard": hard, "scopes": null, "scopeSelector": null}})])
        .collect();
    let ranges = [json!({"spec": {"limits": [
        {"type": "Container", "max": {"cpu": "1"}, "default": null, "min": null},
        {"type": "Pod", "maxLimitRequestRatio": {"cpu": "1"}, "max": {"memory": "1"}},
    ]}})];
    for minor in [34, 36, 37] {
        let checks = Checks {
            namespace: Some(&namespace),
            quotas: &quotas,
            limit_ranges: &ranges,
            ..on(minor)
        };
        for place in &found {
            let mut null = pod.clone();
            *null.pointer_mut(place).expect("a member") = Value::Null;
            let absent = without(pod.clone(), place);
            let of = |pod: &Value| objections(checks, pod, pod);
            assert_eq!(of(&null), of(&absent), "{place} on 1.{minor}");
        }
    }
}

#[test]
fn an_amount_that_is_null_is_zero() {
    let quotas = quota(&json!({"hard": {"limits.cpu": "1"}}));
    let checks = Checks { quotas: &quotas, ..Checks::default() };
    assert_eq!(refusals(checks, &pod(&json!({"limits": {"cpu": null}}))), Vec::<String>::new());
    assert_eq!(refusals(checks, &pod(&json!({"limits": null}))).len(), 1);
}
