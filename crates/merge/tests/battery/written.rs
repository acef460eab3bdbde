//! Merges by hand, some for each rule.

#![expect(clippy::too_many_lines, reason = "tables of cases")]

use serde_json::{Value, json};

/// The merges.
pub(crate) fn merges() -> Vec<(Value, Value)> {
    let mut merges = documents();
    merges.extend(specs());
    let containers = |list: Value| json!({"spec": {"containers": list}});
    merges.extend(lists().into_iter().map(|(one, other)| (containers(one), containers(other))));
    let metadata = |value: Value| json!({"metadata": value});
    merges.extend(objects().into_iter().map(|(one, other)| (metadata(one), metadata(other))));
    // Wrong types, each in a field of its own.
    for value in [json!(5), json!(1.5), json!("x"), json!(true), json!([]), json!({}), json!(1e20)]
    {
        for path in FIELDS {
            let wrap = |inner: Value, key: &str| match key.strip_suffix("[]") {
                Some(key) => json!({key: [inner]}),
                None => json!({key: inner}),
            };
            let patch = path.rsplit('.').fold(value.clone(), wrap);
            merges.push((json!({}), patch));
        }
    }
    merges
}

const FIELDS: &[&str] = &[
    "kind",
    "metadata",
    "metadata.labels",
    "metadata.labels.a",
    "metadata.finalizers",
    "metadata.creationTimestamp",
    "metadata.generation",
    "metadata.managedFields[].fieldsV1",
    "spec",
    "spec.priority",
    "spec.hostNetwork",
    "spec.activeDeadlineSeconds",
    "spec.dnsPolicy",
    "spec.overhead",
    "spec.overhead.cpu",
    "spec.securityContext",
    "spec.securityContext.supplementalGroups",
    "spec.securityContext.supplementalGroups[]",
    "spec.containers",
    "spec.containers[]",
    "spec.containers[].command",
    "spec.containers[].command[]",
    "spec.containers[].livenessProbe",
    "spec.containers[].livenessProbe.httpGet",
    "spec.containers[].livenessProbe.httpGet.port",
    "spec.containers[].securityContext.capabilities.add[]",
    "spec.containers[].env[].valueFrom.resourceFieldRef.divisor",
    "spec.containers[].env[].valueFrom.secretKeyRef.name",
    "spec.ephemeralContainers[].image",
    "spec.volumes[].emptyDir",
    "spec.volumes[].emptyDir.sizeLimit",
    "spec.volumes[].projected.sources[].serviceAccountToken.expirationSeconds",
    "spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources.requests.storage",
    "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].topologyKey",
];

fn documents() -> Vec<(Value, Value)> {
    vec![
        (json!({}), json!({})),
        (json!({}), json!(null)),
        (json!(null), json!({"kind": "Pod"})),
        (json!({}), json!([])),
        (json!({}), json!("x")),
        (json!([]), json!({})),
        (json!({"kind": "Pod"}), json!({"$patch": "replace", "apiVersion": "v1"})),
        (json!({"kind": "Pod"}), json!({"$patch": "delete", "apiVersion": "v1"})),
        (json!({"kind": "Pod"}), json!({"$patch": "merge"})),
        (json!({"kind": "Pod"}), json!({"$patch": null})),
        (json!({"kind": "Pod", "xNew": {"a": 1}}), json!({"xNew": {"b": 2}})),
        (json!({"kind": "Pod", "xNew": [1]}), json!({"xNew": [2]})),
        (json!({"kind": {"a": 1}}), json!({"kind": {"a": {"b": 1}}})),
        (json!({"kind": {"a": {"b": 1}}}), json!({"kind": {"a": {"b": 2}}})),
        (json!({"kind": [1]}), json!({"kind": [2]})),
        (json!({"KIND": "Pod"}), json!({"kind": "pod"})),
        (json!({"kind": "Pod"}), json!({"KIND": "pod"})),
        (json!({}), json!({"KIND": "pod"})),
        (json!({}), json!({"KIND": "pod", "Kind": "Pod"})),
    ]
}

fn objects() -> Vec<(Value, Value)> {
    let finalizers = |list: Value| json!({"finalizers": list});
    vec![
        (json!({"labels": {"a": "b"}}), json!({"labels": {"a": null, "c": "d"}})),
        (json!({"labels": {"a": "b"}}), json!({"labels": null})),
        (json!({"labels": {"a": "b"}}), json!({"labels": {"$patch": "replace", "c": null}})),
        (json!({"labels": {"a": "b"}}), json!({"labels": {"$patch": "delete", "c": "d"}})),
        (json!({"labels": {}}), json!({"labels": {"$patch": "replace", "c": "d"}})),
        (json!({}), json!({"labels": {"$patch": "replace", "c": "d"}})),
        (json!({}), json!({"labels": {"a": null}})),
        (json!({"labels": {"a": {"b": 1}}}), json!({"labels": {"a": {"b": 2}}})),
        (json!({"labels": {"a": {"b": {"c": 1}}}}), json!({"labels": {"a": {"b": {"c": 2}}}})),
        (json!({"labels": {"a": "b"}}), json!({"$retainKeys": ["name"], "name": "n"})),
        (json!({"labels": {"a": "b"}}), json!({"$retainKeys": ["labels"], "name": "n"})),
        (json!({"labels": {"a": "b"}}), json!({"$retainKeys": ["labels"], "name": null})),
        (json!({"labels": {"a": "b"}}), json!({"$retainKeys": "labels"})),
        (json!({"labels": {"a": "b"}}), json!({"$retainKeys": [5, ["a"]]})),
        (finalizers(json!(["a", "b"])), finalizers(json!(["c", "a"]))),
        (finalizers(json!(["a", "b"])), finalizers(json!(["c", 1]))),
        (finalizers(json!(["a", "b"])), finalizers(json!([{"a": 1}]))),
        (finalizers(json!([{"a": 2}])), finalizers(json!([{"a": 1}]))),
        (finalizers(json!([["a"]])), finalizers(json!([["b"]]))),
        (finalizers(json!(["a"])), finalizers(json!([["b"]]))),
        (finalizers(json!(["a"])), finalizers(json!([null]))),
        (finalizers(json!([null])), finalizers(json!(["a"]))),
        (finalizers(json!(["a", "b", "c"])), json!({"$deleteFromPrimitiveList/finalizers": ["b"]})),
        (finalizers(json!(["a"])), json!({"$deleteFromPrimitiveList/finalizers": [5]})),
        (finalizers(json!(["a"])), json!({"$deleteFromPrimitiveList/finalizers": null})),
        (finalizers(json!(["a"])), json!({"$deleteFromPrimitiveList/finalizers": "a"})),
        (finalizers(json!(["a"])), json!({"$deleteFromPrimitiveList": ["a"]})),
        (finalizers(json!(["a"])), json!({"$deleteFromPrimitiveList/": ["a"]})),
        (finalizers(json!(["a"])), json!({"$deleteFromPrimitiveListx/finalizers": ["a"]})),
        (json!({}), json!({"$deleteFromPrimitiveList/finalizers": ["a"]})),
        (
            finalizers(json!(["a", "b", "c"])),
            json!({"$setElementOrder/finalizers": ["c", "d", "a"], "finalizers": ["d"]}),
        ),
        (
            finalizers(json!(["a", "b"])),
            json!({"$setElementOrder/finalizers": [], "finalizers": ["d", "e"]}),
        ),
        (finalizers(json!(["a"])), json!({"$setElementOrder/finalizers": ["b"], "finalizers": []})),
        (finalizers(json!([])), json!({"$setElementOrder/finalizers": ["b"], "finalizers": []})),
        (finalizers(json!(["a"])), json!({"$setElementOrder/finalizers": "b"})),
        (finalizers(json!(["a"])), json!({"$setElementOrder": ["b"]})),
        (finalizers(json!(["a"])), json!({"$setElementOrder/name": ["b"]})),
        (json!({"name": "x"}), json!({"$setElementOrder/name": ["b"]})),
        (json!({}), json!({"$setElementOrder/xNew": ["b"]})),
        (json!({}), json!({"$setElementOrder/xNew": ["b"], "xNew": ["b"]})),
        (
            json!({"ownerReferences": [{"name": "a"}]}),
            json!({"ownerReferences": [{"uid": "u", "name": "b"}]}),
        ),
    ]
}

fn specs() -> Vec<(Value, Value)> {
    let spec = |one: Value, other: Value| (json!({"spec": one}), json!({"spec": other}));
    vec![
        spec(json!({"nodeName": "a"}), json!(null)),
        spec(json!({"nodeName": "a"}), json!({"nodeName": null})),
        spec(json!({"tolerations": [{"key": "a"}]}), json!({"tolerations": [{"key": "b"}, null]})),
        spec(json!({"tolerations": [{"key": "a"}]}), json!({"tolerations": []})),
        spec(json!({"tolerations": [{"key": "a"}]}), json!({"tolerations": {"key": "b"}})),
        spec(json!({"securityContext": {}}), json!({"securityContext": {"$patch": "delete"}})),
        spec(json!({}), json!({"securityContext": {"runAsUser": null}})),
        spec(json!({}), json!({"securityContext": {"runAsUser": 0, "runAsNonRoot": false}})),
        spec(
            json!({"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}),
            json!({"volumes": [{"name": "a", "emptyDir": {}}]}),
        ),
        spec(
            json!({"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}),
            json!({"volumes": [{"name": "a", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}),
        ),
        spec(
            json!({"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a"]}]}),
            json!({"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["b"]}, {"ip": "::1"}]}),
        ),
        spec(json!({"imagePullSecrets": [{}]}), json!({"imagePullSecrets": [{"name": "a"}]})),
        spec(json!({"imagePullSecrets": []}), json!({"imagePullSecrets": [{}, {}]})),
        spec(
            json!({"imagePullSecrets": [{"name": ""}]}),
            json!({"imagePullSecrets": [{"name": "a"}]}),
        ),
        spec(json!({"overhead": {"cpu": "1"}}), json!({"overhead": {"cpu": "1000m", "memory": 1}})),
        spec(json!({"containers": {"a": {}}}), json!({"containers": {"a": {"b": 1}}})),
        spec(json!({"containers": {"a": [1]}}), json!({"containers": {"a": [2]}})),
        spec(json!({"containers": null}), json!({"containers": [{"name": "a"}, {"name": "a"}]})),
        spec(json!({"containers": []}), json!({"containers": [{"name": "a"}, {"name": "a"}]})),
        spec(json!({}), json!({"containers": [{"name": "a"}, {}, null]})),
        spec(json!({}), json!({"$setElementOrder/containers": [{"name": "a"}]})),
        spec(
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
        ),
        spec(
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}],
                "containers": [{"name": "c"}, {"name": "a", "image": "i"}]}),
        ),
        spec(
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"$setElementOrder/containers": [{"name": "c"}],
                "containers": [{"name": "b", "$patch": "delete"}, {"name": "c"}]}),
        ),
        spec(
            json!({"containers": [{"name": "a"}]}),
            json!({"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "d"}]}),
        ),
        spec(
            json!({"containers": [{"name": "a"}]}),
            json!({"$setElementOrder/containers": ["a"], "containers": [{"name": "a"}]}),
        ),
        spec(json!({"containers": [{"name": "a"}]}), json!({"$setElementOrder/containers": ["a"]})),
        spec(
            json!({"containers": [{"name": "a"}]}),
            json!({"$setElementOrder/containers": [{"name": "a"}, "b"]}),
        ),
        spec(
            json!({"tolerations": [{"key": "a"}]}),
            json!({"$setElementOrder/tolerations": [{"key": "a"}], "tolerations": [{"key": "a"}]}),
        ),
        spec(
            json!({"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}),
            json!({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "c"}]}),
        ),
    ]
}

fn lists() -> Vec<(Value, Value)> {
    let env = |list: Value| json!([{"name": "a", "env": list}]);
    let ports = |list: Value| json!([{"name": "a", "ports": list}]);
    vec![
        (json!([{"name": "a"}]), json!([{"name": "b"}])),
        (json!([{"name": "a"}]), json!([])),
        (json!([{"name": "a"}, {"name": "b"}, {"name": "a"}]), json!([])),
        (
            json!([{"name": "app"}, {"name": "istio-proxy"}, {"name": "z"}]),
            json!([{"name": "new1"}, {"name": "istio-proxy"}, {"name": "new2"}]),
        ),
        (json!([{"name": "a"}]), json!([{"image": "b"}])),
        (json!([{"image": "a"}]), json!([{"name": "b"}])),
        (json!([{"image": "a"}]), json!([{"name": ""}])),
        (json!([null]), json!([{"name": "b"}])),
        (json!([{"name": "a"}]), json!([null])),
        (json!([{"name": "a"}]), json!(["a"])),
        (json!([{"name": "a"}]), json!([["a"]])),
        (json!([{"name": "a"}]), json!([{"name": null}])),
        (json!([{"name": "a"}]), json!([{"name": null}, {"name": null}])),
        (json!([{"name": "a"}]), json!([{"name": {"a": 1}}])),
        (json!([{"name": "a"}]), json!([{"name": 5}])),
        (json!(["a"]), json!(["b"])),
        (json!([["a"]]), json!([["b"]])),
        (json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "a", "$patch": "delete"}])),
        (json!([{"name": "a"}, {"name": "a"}]), json!([{"name": "a", "$patch": "delete"}])),
        (json!([{"name": "a"}]), json!([{"name": "a", "$patch": "delete"}, {"name": "a"}])),
        (json!([{"name": "a"}]), json!([{"$patch": "delete"}])),
        (json!([{"name": "a"}]), json!([{"$patch": "replace"}])),
        (json!([{"name": "a"}]), json!([{"$patch": "replace"}, {"name": "b"}, {"name": "b"}])),
        (json!([{"name": "a"}]), json!([{"$patch": "replace"}, {"image": "b"}])),
        (json!([{"name": "a"}]), json!([{"name": "a", "$patch": "merge"}])),
        (json!([{"name": "a"}]), json!([{"name": "a", "$patch": "x"}])),
        (json!([{"name": "a"}]), json!([{"name": "a", "$patch": 5}])),
        (
            json!([{"name": "a", "resources": {"limits": {"cpu": "1"}}}]),
            json!([{"name": "a", "resources": {"limits": {"cpu": null, "memory": null}}}]),
        ),
        (
            json!([{"name": "a"}]),
            json!([{"name": "b", "resources": {"limits": {"cpu": null}}, "args": [null]}]),
        ),
        (json!([{"name": "a"}]), json!([{"name": "a", "resources": {"$patch": "replace"}}])),
        (json!([{"name": "a"}]), json!([{"name": "b", "securityContext": {"$patch": "delete"}}])),
        (json!([{"name": "a", "args": ["a"]}]), json!([{"name": "a", "args": ["b", null]}])),
        (
            json!([{"name": "a", "args": ["a", "b"]}]),
            json!([{"name": "a", "$deleteFromPrimitiveList/args": ["a"]}]),
        ),
        (
            json!([{"name": "a", "args": ["a", "b", "c"]}]),
            json!([{"name": "a", "$setElementOrder/args": ["c", "a"]}]),
        ),
        (
            json!([{"name": "a", "args": ["a", "b", "c"]}]),
            json!([{"name": "a", "$setElementOrder/args": [], "args": ["x", "a", "y"]}]),
        ),
        (json!([{"name": "a", "image": "i"}]), json!([{"name": "a", "Image": "j"}])),
        (json!([{"name": "a"}]), json!([{"name": "a", "Image": "j"}])),
        (
            env(json!([{"name": "U"}, {"name": "T2", "value": "t"}, {"name": "U", "value": "2"}])),
            env(json!([{"name": "T1"}, {"name": "T2", "value": "u"}, {"name": "T3"}])),
        ),
        (
            env(json!([{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}])),
            env(json!([{"name": "A", "value": "3"}, {"name": "A", "value": "4"}])),
        ),
        (
            env(json!([{"name": "A", "value": "1"}])),
            env(
                json!([{"name": "A", "value": null, "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
            ),
        ),
        (
            ports(json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}])),
            ports(json!([{"containerPort": 80, "name": "a"}, {"containerPort": "80"}])),
        ),
        (
            ports(json!([{"containerPort": 80}, {"name": "zero"}])),
            ports(json!([{"containerPort": 80.0, "name": "a"}, {"containerPort": 0}])),
        ),
        (
            ports(json!([{"containerPort": 9_007_199_254_740_993_i64}])),
            ports(json!([{"containerPort": 9_007_199_254_740_992_i64}])),
        ),
    ]
}
