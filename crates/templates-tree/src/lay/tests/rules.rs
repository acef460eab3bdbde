//! Rules for containers, and what an API server would refuse.

use super::*;

static NONE: BTreeMap<String, Existing> = BTreeMap::new();

fn bare(overlay: &Value) -> RuleOverlay<'_> {
    RuleOverlay {
        overlay,
        existing: None,
        existing_env: &NONE,
        env_first: false,
        others: Others::default(),
    }
}

fn ruled(container: &Value, rule: &RuleOverlay) -> Value {
    let mut container = container.clone();
    assert_eq!(self::rule(&mut container, rule), Ok(()));
    container
}

fn app(fields: &Value) -> Value {
    let mut app = json!({"name": "app"});
    let fields = fields.as_object().expect("fields").clone();
    app.as_object_mut().expect("an object").extend(fields);
    app
}

#[test]
fn entries_are_kept_replaced_or_denied_as_a_whole() {
    let container = app(&json!({
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}],
        "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 80, "protocol": "UDP"}],
    }));
    let overlay = json!({
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "w", "mountPath": "/v"}, {"name": "v", "mountPath": "/w"}],
        "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}],
    });
    let mut kept = container.clone();
    kept["volumeMounts"] = json!([
        {"name": "v", "mountPath": "/v", "readOnly": true}, {"name": "v", "mountPath": "/w"}]);
    assert_eq!(ruled(&container, &bare(&overlay)), kept);
    let rule = RuleOverlay { existing: Some(Existing::Replace), ..bare(&overlay) };
    let replaced = app(&json!({
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "w", "mountPath": "/v"}, {"name": "v", "mountPath": "/w"}],
        "ports": [
            {"containerPort": 80, "protocol": "TCP", "name": "http"},
            {"containerPort": 80, "protocol": "UDP"}],
    }));
    assert_eq!(ruled(&container, &rule), replaced);
    let rule = RuleOverlay { existing: Some(Existing::Fail), ..bare(&overlay) };
    let text = self::rule(&mut container.clone(), &rule).expect_err("must be denied");
    assert!(text.starts_with(r#"container["app"].env["A"]: the pod has another value"#), "{text}");
    let rule = RuleOverlay { existing: Some(Existing::Fail), ..bare(&replaced["env"]) };
    let same = json!({"env": rule.overlay});
    let rule = RuleOverlay { overlay: &same, ..rule };
    assert_eq!(ruled(&replaced, &rule), replaced, "equal values are no conflict");
}

#[test]
fn variables_have_exceptions_by_name() {
    let container =
        app(&json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]}));
    let overlay = json!({"env": [{"name": "A", "value": "2"}, {"name": "B", "value": "2"}]});
    let exceptions = BTreeMap::from([("B".to_owned(), Existing::Replace)]);
    let rule = RuleOverlay { existing_env: &exceptions, ..bare(&overlay) };
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]);
    assert_eq!(ruled(&container, &rule)["env"], env);
}

fn env(values: &[(&str, &str)]) -> Value {
    values.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

#[test]
fn variables_stand_behind_those_they_name() {
    let container = app(&json!({"env": env(&[("A", "1"), ("B", "$(Z)"), ("C", "1"), ("Z", "1")])}));
    let overlay = json!({"env": env(&[("N", "$(M)"), ("A", "$(C)"), ("M", "$$(N)")])});
    let rule = RuleOverlay { existing: Some(Existing::Replace), ..bare(&overlay) };
    let expected =
        env(&[("B", "$(Z)"), ("C", "1"), ("A", "$(C)"), ("Z", "1"), ("M", "$$(N)"), ("N", "$(M)")]);
    assert_eq!(ruled(&container, &rule)["env"], expected);
    let rule = RuleOverlay { env_first: true, ..rule };
    let overlay = json!({"env": env(&[("N", "$(Z)"), ("M", "1"), ("L", "1"), ("B", "$(Z)")])});
    let rule = RuleOverlay { overlay: &overlay, ..rule };
    let expected = env(&[
        ("M", "1"),
        ("L", "1"),
        ("A", "1"),
        ("B", "$(Z)"),
        ("C", "1"),
        ("Z", "1"),
        ("N", "$(Z)"),
    ]);
    assert_eq!(ruled(&container, &rule)["env"], expected, "an equal one is not moved");
}

#[test]
fn fields_of_a_container_follow_existing() {
    let container = app(&json!({"args": ["a"], "securityContext": {"runAsUser": 1}}));
    let overlay = json!({"args": ["b"], "securityContext": {"runAsUser": 2, "privileged": false}, "tty": true});
    let kept = app(&json!({
        "args": ["a"], "securityContext": {"runAsUser": 1, "privileged": false}, "tty": true}));
    assert_eq!(ruled(&container, &bare(&overlay)), kept);
    let rule = RuleOverlay { existing: Some(Existing::Replace), ..bare(&overlay) };
    assert_eq!(ruled(&container, &rule), app(&overlay));
    let overlay = json!({
        "args": ["b"], "securityContext": {"$patch": "delete"}, "env": [{"name": "A", "$patch": "delete"}]});
    let rule = RuleOverlay { overlay: &overlay, ..rule };
    let with_env =
        app(&json!({"args": ["a"], "securityContext": {}, "env": env(&[("A", ""), ("B", "")])}));
    assert_eq!(ruled(&with_env, &rule), app(&json!({"args": ["b"], "env": env(&[("B", "")])})));
    assert!(self::rule(&mut container.clone(), &bare(&json!({"name": "x"}))).is_err());
}

#[test]
fn what_an_api_server_would_refuse_is_named() {
    let pod = json!({"spec": {
        "initContainers": [{"name": "a", "ports": [{"containerPort": 1, "hostPort": 9}]}],
        "containers": [
            {"name": "a",
                "env": [{"name": "E", "value": "1", "valueFrom": {}}, {"name": "F", "value": "", "valueFrom": {}}],
                "volumeMounts": [{"name": "v", "mountPath": "/x"}, {"name": "w", "mountPath": "/x"}],
                "ports": [{"containerPort": 1, "name": "p"}, {"containerPort": 1, "protocol": "TCP"},
                    {"containerPort": 1, "protocol": "UDP"}, {"containerPort": 2, "name": "p"}]},
            {"name": "b", "ports": [{"containerPort": 1, "hostPort": 9}]},
            {"name": "c", "ports": [{"containerPort": 2, "hostPort": 9}]}],
        "volumes": [{"name": "v", "emptyDir": {}, "hostPath": {}}, {"name": "v"}],
    }});
    let expected = [
        r#"spec.volumes["v"]: the volume has more than one source"#,
        r#"spec.volumes["v"]: the pod has two volumes of this name"#,
        r#"spec.containers["a"].env["E"]: the variable has `value` beside `valueFrom`"#,
        r#"spec.containers["a"].volumeMounts["/x"]: the pod has no volume "w""#,
        r#"spec.containers["a"].volumeMounts["/x"]: the container has two mounts at this path"#,
        r#"spec.containers["a"].ports["p"]: the container has two ports of this name"#,
        r#"spec.containers["a"].ports["1/TCP"]: the container has this port and protocol twice"#,
        r#"spec.containers["a"]: the pod has two containers of this name"#,
        r#"spec.containers["c"].ports["9/TCP"]: the host port is taken already"#,
    ];
    assert_eq!(refused(&json!({}), &pod), expected);
    assert_eq!(refused(&pod, &pod), [""; 0]);
    let between = |before: &Value| Refused::between(before, &pod).map(|known| known.is_some());
    assert_eq!(between(&json!({})), Err(expected[0].to_owned()));
    assert_eq!(between(&pod), Ok(false));
    let port = json!([{"containerPort": 1}]);
    let host = json!({"spec": {"hostNetwork": true,
        "containers": [{"name": "a", "ports": port}, {"name": "b", "ports": port}]}});
    assert_eq!(
        refused(&json!({}), &host),
        [r#"spec.containers["b"].ports["1/TCP"]: the host port is taken already"#]
    );
}

#[test]
fn a_volume_that_a_pod_of_a_stateful_set_mounts_without_having_it_is_there() {
    let pod = |names: &[&str]| {
        let mount = |name: &&str| json!({"name": name, "mountPath": format!("/{name}")});
        let mounts: Vec<Value> = names.iter().map(mount).collect();
        json!({
            "metadata": {"ownerReferences": [{"kind": "StatefulSet", "controller": true}]},
            "spec": {"containers": [{"name": "a", "volumeMounts": mounts}]},
        })
    };
    let with = |names: &[&str], other: &[&str]| {
        let mut both = pod(names);
        let mut container = pod(other)["spec"]["containers"][0].take();
        container["name"] = json!("b");
        both["spec"]["containers"].as_array_mut().expect("a list").push(container);
        both
    };
    assert_eq!(refused(&pod(&["claim"]), &with(&["claim"], &["claim"])), [""; 0]);
    assert_eq!(
        refused(&pod(&["claim"]), &with(&["claim"], &["new"])),
        [r#"spec.containers["b"].volumeMounts["/new"]: the pod has no volume "new""#]
    );
    let mut other = with(&["claim"], &["claim"]);
    other["metadata"]["ownerReferences"][0]["kind"] = json!("ReplicaSet");
    assert_eq!(refused(&json!({}), &other).len(), 2, "a pod of another kind");
    let mut before = pod(&["v"]);
    before["spec"]["volumes"] = json!([{"name": "v"}]);
    assert_eq!(refused(&before, &pod(&["v"])).len(), 1, "a volume that was removed");
}
