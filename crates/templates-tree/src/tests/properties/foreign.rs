//! Random pods, and what another webhook changes in them.

use injectd_templates::mark;
use proptest::{option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::templates::{handler, set};

pub(super) fn pods() -> impl Strategy<Value = Value> {
    let env = option::of(select(vec!["a", "own"]));
    let items = select(vec!["", "x", "x,y", "y,,z"]);
    let names = select(vec!["sidecar", "a-tail-0", "b-agent", "b-tail-1", "shared", "old"]);
    let init = option::of(any::<bool>());
    let port = option::of(select(vec![8080, 8081]));
    (env, items, option::of(names), init, option::of(0..3), port, option::of(handler())).prop_map(
        |(env, items, other, init, user, port, handler)| {
            let mut pod = json!({
                "metadata": {"name": "web", "annotations": {"example.com/items": items}},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            });
            let app = &mut pod["spec"]["containers"][0];
            if let Some(env) = env {
                app["env"] =
                    json!([{"name": "SHARED", "value": env}, {"name": "OLD", "value": "1"}]);
            }
            if let Some(handler) = handler {
                app["lifecycle"] = json!({"preStop": handler});
                app["readinessProbe"] = handler;
            }
            if let Some(port) = port {
                app["ports"] = json!([{"containerPort": port}]);
            }
            if let Some(other) = other {
                push(&mut pod["spec"], "containers", json!({"name": other, "image": "other"}));
            }
            if let Some(is_sidecar) = init {
                let mut init = json!({"name": "init", "image": "init"});
                set(&mut init, "restartPolicy", is_sidecar.then_some("Always"));
                push(&mut pod["spec"], "initContainers", init);
                push(&mut pod["spec"], "volumes", json!({"name": "old", "emptyDir": {}}));
            }
            if let Some(user) = user {
                pod["spec"]["securityContext"] = json!({"runAsUser": user});
                pod["spec"]["hostAliases"] = json!([{"ip": "1.1.1.1", "hostnames": ["a"]}]);
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
pub(super) enum Foreign {
    Container,
    InitContainer,
    Variable,
    Mount,
    Label,
    Image,
    Mark,
}

impl Foreign {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Container => "with a container",
            Self::InitContainer => "with an init container",
            Self::Variable => "with variables",
            Self::Mount => "with mounts",
            Self::Label => "with a label",
            Self::Image => "with other images",
            Self::Mark => "without the mark",
        }
    }

    pub(super) fn is_container(self) -> bool {
        matches!(self, Self::Container | Self::InitContainer)
    }

    pub(super) fn change(self, pod: &mut Value) {
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

/// Changes between two calls; not the images and the mark at once.
pub(super) fn foreign() -> impl Strategy<Value = Vec<Foreign>> {
    use Foreign::{Container, Image, InitContainer, Label, Mark, Mount, Variable};
    let all = vec![Container, InitContainer, Variable, Mount, Label, Image, Mark];
    let changes = proptest::sample::subsequence(all, 0..4);
    let changes = changes.prop_filter("an image and the mark at once", |changes| {
        !(changes.contains(&Image) && changes.contains(&Mark))
    });
    prop_oneof![3 => changes, 1 => Just(vec![Mark])]
}
