//! Rules that hold for all templates, pods, and changes of other webhooks between two calls.

use proptest::{option, prelude::*, sample::select};

use super::*;
use crate::{lay::patch, mark};

/// A template with a letter in its names: containers and volumes are its own, or the pod's (`app`).
fn object(letter: char) -> impl Strategy<Value = Value> {
    let existing = || option::of(select(vec!["Keep", "Replace"]));
    let kinds = select(vec![
        json!(["Container"]),
        json!(["Container", "Sidecar"]),
        json!(["Container", "Sidecar", "InitContainer"]),
    ]);
    let conflict = select(vec!["Keep", "SkipStep", "SkipTemplate"]);
    let parts = (any::<[bool; 6]>(), select(vec!["First", "Last"]), conflict, 0..3, 0..3);
    (parts, existing(), existing(), kinds).prop_map(
        move |((has, position, conflict, priority, user), of_step, of_rule, kinds)| {
            let [has_tails, has_agent, has_rule, has_added, is_named, has_user] = has;
            let mut steps = Vec::new();
            if has_tails {
                steps.push(json!({"name": "tails", "onConflict": "Keep",
                    "forEach": {"items": "params.items"},
                    "overlay": {"spec": {"containers": [{"name": format!("{letter}-tail-${{index}}"),
                        "image": "tail:${item}"}]}}}));
            }
            if has_agent {
                let name = if is_named { "init".to_owned() } else { format!("{letter}-agent") };
                let volume = format!("{letter}-v");
                steps.push(json!({"name": "agent", "onConflict": conflict,
                    "placement": {"initContainers": {"position": position}},
                    "overlay": {"metadata": {"labels": {"agent": letter}}, "spec": {
                        "initContainers": [{"name": name, "image": "agent", "restartPolicy": "Always",
                            "volumeMounts": [{"name": volume, "mountPath": "/v"}]}],
                        "volumes": [{"name": volume, "emptyDir": {}}]}}}));
            }
            if has_user {
                let mut step = json!({"name": "user",
                    "overlay": {"spec": {"securityContext": {"runAsUser": user}}}});
                set(&mut step, "existing", of_step);
                steps.push(step);
            }
            if has_rule || steps.is_empty() {
                let mut rule = json!({"kinds": kinds, "overlay": {
                    "env": [{"name": "SHARED", "value": letter}, {"name": "AT", "value": "${index}"}]}});
                set(&mut rule, "existing", of_rule);
                steps.push(json!({"name": "rule", "containers": [rule]}));
            }
            if has_added {
                let names = ["a-agent", "b-agent", "c-tail-0"];
                steps.push(json!({"name": "added", "containers": [{"kinds": ["Added"],
                    "select": {"names": names},
                    "overlay": {"env": [{"name": format!("FROM_{letter}"), "value": "1"}]}}]}));
            }
            json!({
                "apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
                "metadata": {"name": letter},
                "spec": {"priority": priority, "match": {"namespaceSelector": {}}, "steps": steps,
                    "parameters": [{"name": "items", "type": "List", "default": "",
                        "from": [{"podAnnotation": "example.com/items"}]}]},
            })
        },
    )
}

fn set(object: &mut Value, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        object[name] = json!(value);
    }
}

fn pods() -> impl Strategy<Value = Value> {
    let env = option::of(select(vec!["a", "own"]));
    let items = select(vec!["", "x", "x,y", "y,,z"]);
    let names = select(vec!["sidecar", "a-tail-0", "b-agent", "b-tail-1"]);
    let init = option::of(any::<bool>());
    (env, items, option::of(names), init, option::of(0..3)).prop_map(
        |(env, items, other, init, user)| {
            let mut pod = json!({
                "metadata": {"name": "web", "annotations": {"example.com/items": items}},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            });
            if let Some(env) = env {
                pod["spec"]["containers"][0]["env"] = json!([{"name": "SHARED", "value": env}]);
            }
            if let Some(other) = other {
                let other = json!({"name": other, "image": "other"});
                push(&mut pod["spec"], "containers", other);
            }
            if let Some(is_sidecar) = init {
                let mut init = json!({"name": "init", "image": "init"});
                set(&mut init, "restartPolicy", is_sidecar.then_some("Always"));
                push(&mut pod["spec"], "initContainers", init);
            }
            if let Some(user) = user {
                pod["spec"]["securityContext"] = json!({"runAsUser": user});
            }
            pod
        },
    )
}

fn push(object: &mut Value, list: &str, value: Value) {
    if !object[list].is_array() {
        object[list] = json!([]);
    }
    object[list].as_array_mut().expect("a list").push(value);
}

/// What another webhook does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    Container,
    InitContainer,
    Variable,
    Mount,
    Label,
    Image,
    Mark,
}

impl Foreign {
    fn change(self, pod: &mut Value) {
        let each = |pod: &mut Value, then: &dyn Fn(&mut Value)| {
            for list in ["initContainers", "containers"] {
                let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
                containers.into_iter().flatten().for_each(then);
            }
        };
        let other = json!({"name": "foreign", "image": "foreign"});
        match self {
            Self::Container => push(&mut pod["spec"], "containers", other),
            Self::InitContainer => {
                let mut containers = pod["spec"]["initContainers"].as_array().cloned();
                let other = json!({"name": "foreign-init", "image": "foreign"});
                containers.get_or_insert_default().insert(0, other);
                pod["spec"]["initContainers"] = json!(containers);
            }
            Self::Variable => each(pod, &|container| {
                push(container, "env", json!({"name": "FOREIGN", "value": "1"}));
            }),
            Self::Mount => {
                push(&mut pod["spec"], "volumes", json!({"name": "foreign", "emptyDir": {}}));
                each(pod, &|container| {
                    let mount = json!({"name": "foreign", "mountPath": "/foreign"});
                    push(container, "volumeMounts", mount);
                });
            }
            Self::Label => pod["metadata"]["labels"]["foreign"] = json!("1"),
            Self::Image => each(pod, &|container| container["image"] = json!("mirror")),
            Self::Mark => {
                let annotations = pod.pointer_mut("/metadata/annotations");
                let annotations = annotations.and_then(Value::as_object_mut);
                annotations.map(|annotations| annotations.shift_remove(mark::ANNOTATION));
            }
        }
    }
}

fn foreign() -> impl Strategy<Value = Vec<Foreign>> {
    use Foreign::{Container, Image, InitContainer, Label, Mark, Mount, Variable};
    let all = vec![Container, InitContainer, Variable, Mount, Label, Image, Mark];
    let changes = proptest::sample::subsequence(all, 0..4);
    changes.prop_filter("an image and the mark at once", |changes| {
        !(changes.contains(&Image) && changes.contains(&Mark))
    })
}

fn read(objects: &[Value]) -> Vec<Template> {
    let read =
        |object| Template::read(object).unwrap_or_else(|found| panic!("{object}: {found:?}"));
    objects.iter().map(read).collect()
}

fn applied(before: &Value, patch: &[Value]) -> Value {
    let mut pod = before.clone();
    let operations: json_patch::Patch =
        serde_json::from_value(patch.to_vec().into()).expect("a JSON patch");
    json_patch::patch(&mut pod, &operations).expect("the patch applies");
    pod
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn injecting_again_is_injecting_once(
        objects in (object('a'), object('b'), object('c')),
        count in 1..4_usize,
        pod in pods(),
        changes in foreign(),
    ) {
        let objects = [objects.0, objects.1, objects.2];
        let mut templates = read(&objects[..count]);
        let once = injected(&templates, &pod).map_err(TestCaseError::fail)?.pod;
        prop_assert_eq!(&applied(&pod, &patch(&pod, &once)), &once);
        let twice = injected(&templates, &once).map_err(TestCaseError::fail)?.pod;
        prop_assert_eq!(patch(&once, &twice), Vec::<Value>::new());

        let mut changed = once.clone();
        for change in &changes {
            change.change(&mut changed);
        }
        let again = injected(&templates, &changed).map_err(TestCaseError::fail)?.pod;
        prop_assert_eq!(&applied(&changed, &patch(&changed, &again)), &again);
        let last = injected(&templates, &again).map_err(TestCaseError::fail)?.pod;
        prop_assert_eq!(&last, &again);
        let is_more = |change: &Foreign| {
            matches!(change, Foreign::Container | Foreign::InitContainer)
        };
        if changes == [Foreign::Mark] {
            prop_assert_eq!(&again, &once);
        } else if !changes.iter().any(is_more) && !changes.contains(&Foreign::Mark) {
            prop_assert_eq!(&again, &changed);
        }

        templates.reverse();
        prop_assert_eq!(&injected(&templates, &pod).map_err(TestCaseError::fail)?.pod, &once);
        prop_assert_eq!(&injected(&templates, &changed).map_err(TestCaseError::fail)?.pod, &again);
    }
}
