use serde_json::{Value, json};

use super::{check, misfits};
use crate::schema::POD;

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

#[test]
fn misfits_have_the_path_of_each_value() {
    let pod = json!({
        "metadata": {"labels": {"a": true, "b": null}, "Annotations": 5},
        "spec": {
            "hostNetwork": "true",
            "overhead": {"cpu": "x", "memory": 5},
            "containers": [
                {"name": "a", "resources": {"limits": [], "requests": {"cpu": "1"}}},
                {"name": 5, "securityContext": {"runAsUser": 1.0, "runAsGroup": 1.5}},
                [],
            ],
            "unknown": 5,
        },
    });
    let found = misfits(&pod, &POD, "", 100);
    let paths: Vec<_> = found.iter().map(|(path, _)| &**path).collect();
    assert_eq!(
        paths,
        [
            "metadata.labels.a",
            "spec.hostNetwork",
            "spec.overhead.cpu",
            "spec.containers[0].resources.limits",
            "spec.containers[1].name",
            "spec.containers[1].securityContext.runAsGroup",
            "spec.containers[2]",
        ]
    );
    assert_eq!(misfits(&pod, &POD, "", 2).len(), 2);
}

/// Where [`super::check_pod`] finds a value of the wrong type, so does [`misfits`].
#[test]
fn a_pod_has_misfits_if_it_has_an_error() {
    for (fields, is_wrong) in [
        (json!({"image": 5}), true),
        (json!({"resources": {"limits": "5"}}), true),
        (json!({"resources": {"limits": {"cpu": ""}}}), true),
        (json!({"resources": {"limits": {"cpu": " 1 "}}}), false),
        (json!({"ports": [{"containerPort": 4_294_967_376_u64}]}), true),
        (json!({"livenessProbe": {"httpGet": {"port": true}}}), true),
        (json!({"livenessProbe": {"httpGet": {"port": "http"}}}), false),
        (json!({"args": null, "env": [null]}), false),
    ] {
        let pod = container(&fields);
        assert_eq!(super::check_pod(&pod).is_err(), is_wrong, "{pod}");
        assert_eq!(!misfits(&pod, &POD, "", 1).is_empty(), is_wrong, "{pod}");
    }
}
