use super::*;

fn object(json: &str) -> Object<'_> {
    crate::json::read(json).expect("the object must decode")
}

#[test]
fn null_reads_as_absent_everywhere() {
    let pod = object(
        r#"{"metadata":{"labels":null,"annotations":null,"ownerReferences":null},
            "spec":{"containers":[{"ports":null,"livenessProbe":null,"volumeMounts":null,
            "securityContext":{"capabilities":null}},null],"volumes":null,"initContainers":null}}"#,
    );
    assert_eq!(pod.spec.pod.containers.len(), 2);
    assert!(pod.spec.pod.capabilities().is_none());
    assert!(pod.metadata.is_zero());
}

#[test]
fn the_last_of_repeated_keys_wins() {
    let pod = object(
        r#"{"metadata":{"name":"a","name":"b","annotations":{
        "linkerd.io/inject":"enabled","linkerd.io/inject":"disabled"}}}"#,
    );
    assert_eq!(&*pod.metadata.name, "b");
    assert_eq!(pod.metadata.annotations.get("linkerd.io/inject"), Some("disabled"));
}

#[test]
fn unread_fields_may_hold_anything() {
    let pod = object(
        r#"{"metadata":{"annotations":{"x":1}},"spec":{"nodeName":7,"containers":[
        {"name":"a","env":"odd","resources":{"limits":{"cpu":[]}}}]},"status":3}"#,
    );
    assert_eq!(&*pod.spec.pod.containers[0].name, "a");
    assert!(!pod.metadata.annotations.is_empty());
}

#[test]
fn a_wrong_type_in_a_read_field_is_an_error() {
    for json in [
        r#"{"metadata":{"name":1}}"#,
        r#"{"metadata":{"annotations":{"linkerd.io/inject":true}}}"#,
        r#"{"spec":{"containers":{}}}"#,
        r#"{"spec":{"containers":[{"ports":[{"containerPort":"80"}]}]}}"#,
        r#"{"spec":{"containers":[{"ports":[{"containerPort":80.5}]}]}}"#,
        r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":true}}}]}}"#,
        r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":4294967296}}}]}}"#,
        r#"{"spec":{"containers":[{"volumeMounts":[{"mountPath":1}]}]}}"#,
        r#"{"spec":{"hostNetwork":"yes"}}"#,
    ] {
        assert!(crate::json::read::<Object<'_>>(json).is_err(), "{json}");
    }
}

#[test]
fn the_length_of_a_list_is_limited() {
    let pod = |items: usize| {
        let ports = vec![r#"{"containerPort":1}"#; items].join(",");
        format!(r#"{{"spec":{{"containers":[{{"ports":[{ports}]}}]}}}}"#)
    };
    assert_eq!(object(&pod(10_000)).spec.pod.containers[0].ports.len(), 10_000);
    let error = crate::json::read::<Object<'_>>(&pod(10_001)).expect_err("too many");
    assert!(
        error.to_string().contains("spec.containers[0].ports[10000]: expected a list of 10000")
    );
}

#[test]
fn the_first_token_mount_of_a_container_is_kept() {
    let pod = object(
        r#"{"spec":{"containers":[{"volumeMounts":[{"name":"x","mountPath":"/x"},
            {"name":"t1","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"},
            {"name":"t2","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}]}]}}"#,
    );
    let mount = pod.spec.pod.service_account_mount().expect("mount");
    assert_eq!((&*mount.name, mount.read_only), ("t1", None));
}

#[test]
fn mounts_and_capabilities_are_those_of_the_first_container() {
    let mount = r#"[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}]"#;
    let context = r#"{"capabilities":{"drop":["ALL"]}}"#;
    let copied = format!(r#"{{"volumeMounts":{mount},"securityContext":{context}}}"#);
    let json = format!(r#"{{"spec":{{"containers":[{copied},{{}}]}}}}"#);
    let pod = object(&json);
    assert!(pod.spec.pod.service_account_mount().is_some());
    assert_eq!(&*pod.spec.pod.capabilities().expect("capabilities").drop[0], "ALL");
    for lists in [
        format!(r#""containers":[{{}},{copied}]"#),
        format!(r#""containers":[null,{copied}]"#),
        format!(r#""initContainers":[{copied}],"containers":[{{}}]"#),
        format!(r#""containers":[{copied}],"containers":[{{}}]"#),
    ] {
        let json = format!(r#"{{"spec":{{{lists}}}}}"#);
        let pod = object(&json);
        assert!(pod.spec.pod.service_account_mount().is_none(), "{lists}");
        assert!(pod.spec.pod.capabilities().is_none(), "{lists}");
    }
}

#[test]
fn only_numbered_http_probe_ports_count() {
    let pod = object(
        r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":8080}},
            "readinessProbe":{"httpGet":{"port":"8081"}}},
            {"livenessProbe":{"tcpSocket":{"port":1}},"readinessProbe":{"httpGet":{}}}]}}"#,
    );
    assert_eq!(pod.spec.pod.containers[0].probe_ports().as_slice(), [8080]);
    assert_eq!(pod.spec.pod.containers[1].probe_ports().as_slice(), [0]);
}

#[test]
fn template_metadata_is_zero_as_go_sees_it() {
    for (json, zero) in [
        (r"{}", true),
        (r#"{"creationTimestamp":null,"name":"","annotations":{}}"#, true),
        (r#"{"labels":{}}"#, false),
        (r#"{"finalizers":[]}"#, false),
        (r#"{"deletionGracePeriodSeconds":0}"#, false),
        (r#"{"generation":0}"#, true),
        (r#"{"generateName":"x"}"#, false),
        (r#"{"annotations":{"other":"x"}}"#, false),
        (r#"{"unknown":1}"#, true),
    ] {
        let metadata: Metadata<'_> = crate::json::read(json).expect("metadata");
        assert_eq!(metadata.is_zero(), zero, "{json}");
    }
}

#[test]
fn kinds_ignore_case() {
    assert_eq!(Kind::of("POD"), Kind::Pod);
    assert_eq!(Kind::of("deployment"), Kind::Workload("deployment"));
    assert_eq!(Kind::of("CronJob").path_prefix(), "/spec/jobTemplate/spec/template");
    assert_eq!(Kind::of("Widget"), Kind::Other);
}

#[test]
fn templates_do_not_nest() {
    let inner = r#"{"spec":{"containers":[{"name":"inner"}],"template":7,"jobTemplate":7}}"#;
    let text = format!(r#"{{"kind":"Job","spec":{{"template":{inner}}}}}"#);
    let object = object(&text);
    let (_, spec) = object.pod(Kind::of("Job")).expect("a pod");
    assert_eq!(&*spec.containers[0].name, "inner");
}
