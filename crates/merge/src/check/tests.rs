#![expect(clippy::disallowed_types, reason = "patches are trees")]

use serde_json::{Value, json};

use super::check;

fn error(patch: &Value) -> String {
    check(patch).expect_err("must be an error").to_string()
}

fn container(fields: &Value) -> Value {
    json!({"spec": {"containers": [fields]}})
}

#[test]
fn errors_name_struct_path_and_type_as_go_does() {
    for (patch, text) in [
        (
            container(&json!({"image": 5})),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image \
             of type string",
        ),
        (
            container(&json!({"env": [{"value": true}]})),
            "json: cannot unmarshal bool into Go struct field EnvVar.spec.containers.env.value of \
             type string",
        ),
        (
            container(&json!({"ports": [{"containerPort": 1.5}]})),
            "json: cannot unmarshal number 1.5 into Go struct field \
             ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            json!({"spec": {"volumes": [{"emptyDir": []}]}}),
            "json: cannot unmarshal array into Go struct field \
             Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            json!({"metadata": {"labels": {"a": 5}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type \
             string",
        ),
        (
            json!({"spec": {"containers": "x"}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type \
             []v1.Container",
        ),
        (
            container(&json!({"resources": {"limits": {"cpu": "1kk"}}})),
            "unable to parse quantity's suffix",
        ),
    ] {
        assert_eq!(error(&patch), text);
    }
}

#[test]
fn what_kubernetes_reads_is_accepted() {
    for patch in [
        json!(null),
        container(&json!({"image": null, "xUnknown": 5, "IMAGE": "a", "$patch": "replace"})),
        container(&json!({"resources": {"limits": {"cpu": 2, "memory": " 1Gi "}}})),
        container(&json!({"livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 5.0}})),
        container(&json!({"name": "a", "$patch": "delete", "image": 5})),
        json!({"metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"}}),
        json!({"spec": {"$setElementOrder/containers": 5, "$retainKeys": ["containers"]}}),
    ] {
        assert_eq!(check(&patch), Ok(()), "{patch}");
    }
}

#[test]
fn quantities_and_times_go_before_other_errors() {
    let patch = json!({"metadata": {"name": 5}, "spec": {"overhead": {"cpu": true}}});
    assert!(error(&patch).starts_with("quantities must match the regular expression"));
    let patch = json!({"apiVersion": 5, "metadata": {"creationTimestamp": "today"}});
    assert!(error(&patch).starts_with("parsing time \"today\" as \"2006-01-02T15:04:05Z07:00\""));
}
