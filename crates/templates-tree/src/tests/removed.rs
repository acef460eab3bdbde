//! What is removed later is no failure for `existing: Fail`: not what a later step of the template removes,
//! and not what a later template removes and another one writes again.

use serde_json::{Value, json};

use super::{injected, read};

/// A template with these steps.
fn template(name: &str, priority: i32, steps: &Value) -> Value {
    json!({
        "apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
        "metadata": {"name": name},
        "spec": {"priority": priority, "match": {"namespaceSelector": {}}, "steps": steps},
    })
}

/// A piece of `spec`, or of the container `app`, in a step that insists on it.
fn writes(place: &str, written: &Value) -> Value {
    match place {
        "spec" => json!({"name": "writes", "existing": "Fail", "onConflict": "Fail",
            "overlay": {"spec": written}}),
        _ => json!({"name": "writes", "containers": [{"existing": "Fail", "overlay": written}]}),
    }
}

fn removes(place: &str, removed: &Value) -> Value {
    match place {
        "spec" => json!({"name": "removes", "existing": "Replace", "overlay": {"spec": removed}}),
        _ => json!({"name": "removes",
            "containers": [{"existing": "Replace", "overlay": removed}]}),
    }
}

fn pod() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "image": "app"}]}})
}

fn without_mark(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let annotations = pod["metadata"]["annotations"].as_object_mut();
    annotations.map(|annotations| annotations.shift_remove(crate::mark::ANNOTATION));
    pod
}

/// Where something is written, what an earlier template writes, what is removed, what a later one writes.
fn cases() -> Vec<(&'static str, [Value; 3])> {
    let alias = |host: &str| json!({"ip": "1.1.1.1", "hostnames": [host]});
    let env = |value: &str| json!({"env": [{"name": "A", "value": value}]});
    let agent = |image: &str| json!({"containers": [{"name": "agent", "image": image}]});
    let volume = |medium: &str| json!({"volumes": [{"name": "v", "emptyDir": {"medium": medium}}]});
    let user = |user: i64| json!({"securityContext": {"runAsUser": user}});
    vec![
        ("spec", [user(1), json!({"securityContext": {"$patch": "delete"}}), user(2)]),
        (
            "spec",
            [user(1), json!({"securityContext": {"$patch": "replace", "fsGroup": 1}}), user(2)],
        ),
        (
            "spec",
            [
                json!({"hostAliases": [alias("a")]}),
                json!({"hostAliases": [{"$patch": "delete", "ip": "1.1.1.1"}]}),
                json!({"hostAliases": [alias("b")]}),
            ],
        ),
        (
            "spec",
            [
                json!({"hostAliases": [alias("a")]}),
                json!({"hostAliases": [{"$patch": "replace"}, {"ip": "2.2.2.2", "hostnames": ["c"]}]}),
                json!({"hostAliases": [alias("b")]}),
            ],
        ),
        (
            "spec",
            [
                agent("a"),
                json!({"containers": [{"$patch": "delete", "name": "agent"}]}),
                agent("b"),
            ],
        ),
        (
            "spec",
            [volume(""), json!({"volumes": [{"$patch": "delete", "name": "v"}]}), volume("Memory")],
        ),
        ("app", [env("1"), json!({"env": [{"$patch": "delete", "name": "A"}]}), env("2")]),
        (
            "app",
            [
                json!({"securityContext": {"runAsUser": 1}}),
                json!({"securityContext": {"$patch": "delete"}}),
                json!({"securityContext": {"runAsUser": 2}}),
            ],
        ),
    ]
}

/// A pod that these are applied to is the same without its mark, and the order in which they were created
/// does not matter.
fn assert_idempotent(mut templates: Vec<Value>, case: &str) {
    let read_templates = read(&templates);
    let first = injected(&read_templates, &pod()).unwrap_or_else(|why| panic!("{case}: {why}")).pod;
    templates.reverse();
    for templates in [read_templates, read(&templates)] {
        for pod in [&first, &without_mark(&first)] {
            let again = injected(&templates, pod).unwrap_or_else(|why| panic!("{case}: {why}"));
            assert_eq!(again.pod, first, "{case}");
        }
    }
}

#[test]
fn what_a_later_template_removes_and_another_writes_is_no_conflict() {
    for (place, [earlier, removed, later]) in cases() {
        let case = format!("{place}: {earlier} {removed} {later}");
        let templates = vec![
            template("earlier", 2, &json!([writes(place, &earlier)])),
            template("removes", 1, &json!([removes(place, &removed)])),
            template("later", 0, &json!([writes(place, &later)])),
        ];
        assert_idempotent(templates, &case);
    }
}

#[test]
fn what_a_later_step_removes_is_no_conflict() {
    for (place, [earlier, removed, later]) in cases() {
        let case = format!("{place}: {earlier} {removed} {later}");
        for (own, other) in [(2, 0), (0, 2)] {
            let steps = json!([writes(place, &earlier), removes(place, &removed)]);
            let templates = vec![
                template("own", own, &steps),
                template("other", other, &json!([writes(place, &later)])),
            ];
            assert_idempotent(templates, &case);
        }
    }
}

#[test]
fn what_a_pod_has_that_nobody_would_write_is_a_conflict() {
    let (place, [earlier, removed, later]) = cases().swap_remove(0);
    let templates = [
        template("earlier", 2, &json!([writes(place, &earlier)])),
        template("removes", 1, &json!([removes(place, &removed)])),
        template("later", 0, &json!([writes(place, &later)])),
    ];
    let mut pod = pod();
    pod["spec"]["securityContext"] = json!({"runAsUser": 3});
    let denied = injected(&read(&templates), &pod).expect_err("it is denied");
    assert!(denied.contains("`existing` is Fail"), "{denied}");
}
