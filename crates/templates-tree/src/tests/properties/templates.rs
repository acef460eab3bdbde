//! Random templates. Two of them share names of containers, volumes, variables and fields.

use proptest::{option, prelude::*, sample::select};
use serde_json::{Value, json};

const CONFLICTS: [&str; 5] = ["Fail", "SkipStep", "SkipTemplate", "Keep", "Replace"];

pub(super) fn set(object: &mut Value, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        object[name] = json!(value);
    }
}

fn existing() -> impl Strategy<Value = Option<&'static str>> {
    option::of(select(vec!["Keep", "Replace", "Fail"]))
}

fn conflict() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![1 => Just(None), 4 => select(CONFLICTS.to_vec()).prop_map(Some)]
}

/// Where containers are put.
fn place() -> impl Strategy<Value = Value> {
    let named = (select(vec!["Before", "After"]), select(vec!["app", "init", "nobody", "a-agent"]));
    let named = (named, option::of(select(vec!["First", "Last"])));
    let named = named.prop_map(|((position, name), otherwise)| {
        let mut place = json!({"position": position, "name": name});
        set(&mut place, "otherwise", otherwise);
        place
    });
    let end = select(vec!["First", "Last"]).prop_map(|position| json!({"position": position}));
    prop_oneof![named, end]
}

/// A container for each item of a list.
fn tails(letter: char) -> impl Strategy<Value = Vec<Value>> {
    (conflict(), existing(), any::<bool>()).prop_map(move |(on_conflict, existing, has_rule)| {
        let mut step = json!({"name": "tails", "forEach": {"items": "params.items",
            "variables": [{"name": "upper", "expression": "item + '-' + string(index)"}]},
            "overlay": {"spec": {"containers": [{"name": format!("{letter}-tail-${{index}}"),
                "image": "tail:${item}", "args": ["${variables.upper}"]}]}}});
        set(&mut step, "onConflict", on_conflict);
        if has_rule {
            let env = json!([{"name": format!("ITEM_{letter}_${{index}}"), "value": "${item}"}]);
            let mut rule = json!({"overlay": {"env": env}});
            set(&mut rule, "existing", existing);
            step["containers"] = json!([rule]);
        }
        vec![step]
    })
}

/// A container with a volume and a port; a second step may write it, too.
fn agent(letter: char) -> impl Strategy<Value = Vec<Value>> {
    let name = prop_oneof![
        3 => Just(format!("{letter}-agent")),
        1 => Just("shared".to_owned()),
        1 => Just("init".to_owned()),
    ];
    let volume = prop_oneof![2 => Just(format!("{letter}-v")), 1 => Just("shared-v".to_owned())];
    let parts = (name, volume, conflict(), place(), any::<[bool; 3]>());
    parts.prop_map(move |(name, volume, on_conflict, place, [is_init, has_port, is_twice])| {
        let list = if is_init || name == "init" { "initContainers" } else { "containers" };
        let mut container = json!({"name": name, "image": format!("agent:{letter}"),
            "env": [{"name": "SHARED", "value": letter}, {"name": "OLD", "value": "1"}],
            "volumeMounts": [{"name": volume, "mountPath": "/v"}]});
        if list == "initContainers" {
            container["restartPolicy"] = json!("Always");
        }
        if has_port {
            container["ports"] = json!([{"containerPort": "${variables.ports[0]}"}]);
        }
        let medium = if letter == 'a' { "Memory" } else { "" };
        let mut steps = vec![json!({"name": "agent", "placement": {list: place},
            "overlay": {"metadata": {"labels": {"agent": letter}}, "spec": {
                list: [container],
                "volumes": [{"name": volume, "emptyDir": {"medium": medium}}]}}})];
        if is_twice {
            steps.push(json!({"name": "more", "overlay": {"spec": {
                list: [{"name": name, "args": [letter], "env": [{"name": "SHARED", "value": "more"}]}]}}}));
        }
        for step in &mut steps {
            set(step, "onConflict", on_conflict);
        }
        steps
    })
}

/// Fields of the pod, one or two steps.
fn fields(letter: char) -> impl Strategy<Value = Vec<Value>> {
    let step = (0..3, existing(), any::<bool>()).prop_map(move |(user, existing, has_alias)| {
        let mut overlay = json!({"metadata": {"annotations": {"shared": format!("{letter}{user}")}},
            "spec": {"securityContext": {"runAsUser": user}}});
        if has_alias {
            overlay["spec"]["hostAliases"] = json!([{"ip": "1.1.1.1", "hostnames": [letter]}]);
        }
        let mut step = json!({"overlay": overlay});
        set(&mut step, "existing", existing);
        step
    });
    prop::collection::vec(step, 1..3).prop_map(|mut steps| {
        for (at, step) in steps.iter_mut().enumerate() {
            step["name"] = json!(format!("fields{at}"));
        }
        steps
    })
}

/// Directives: what they remove or replace is the pod's, or another template's.
fn directives(letter: char) -> impl Strategy<Value = Vec<Value>> {
    let all = vec![
        json!({"hostAliases": [{"$patch": "delete", "ip": "1.1.1.1"}]}),
        json!({"hostAliases": [{"$patch": "replace"}, {"ip": "2.2.2.2", "hostnames": [letter]}]}),
        json!({"volumes": [{"$patch": "delete", "name": "old"}]}),
        json!({"containers": [{"$patch": "delete", "name": "old"}]}),
        json!({"containers": [{"$patch": "replace", "name": "old", "image": format!("new:{letter}")}]}),
        json!({"securityContext": {"$patch": "delete"}}),
        json!({"securityContext": {"$patch": "replace", "fsGroup": 1}}),
    ];
    select(all).prop_map(|spec| {
        vec![json!({"name": "directives", "existing": "Replace", "overlay": {"spec": spec}})]
    })
}

/// Which containers a rule is for.
fn selected() -> impl Strategy<Value = Option<Value>> {
    let selects = vec![
        json!({"names": ["app"]}),
        json!({"names": "${['app', 'init']}"}),
        json!({"expression": "container.name != 'sidecar'"}),
        json!({"expression": "index == 0"}),
    ];
    option::of(select(selects))
}

/// What a probe or a hook does.
pub(super) fn handler() -> impl Strategy<Value = Value> {
    let all = [json!({"exec": {"command": ["a"]}}), json!({"httpGet": {"port": 80}})];
    select(all.to_vec())
}

/// Changes of containers of the pod.
fn rules(letter: char) -> impl Strategy<Value = Vec<Value>> {
    let kinds = select(vec![
        json!(["Container"]),
        json!(["Container", "Sidecar"]),
        json!(["Container", "Sidecar", "InitContainer"]),
        json!(["InitContainer"]),
    ]);
    let rule =
        (kinds, selected(), existing(), existing(), option::of(handler()), any::<[bool; 3]>());
    let rule = rule.prop_map(
        move |(kinds, select, existing, exception, handler, [is_first, deletes, has_index])| {
            let mut env = vec![json!({"name": "SHARED", "value": letter})];
            // What depends on the order of containers is another value if one is added.
            if has_index && existing != Some("Fail") {
                env.push(json!({"name": format!("AT_{letter}"), "value": "${index}"}));
            }
            if deletes && existing == Some("Replace") {
                env.push(json!({"$patch": "delete", "name": "OLD"}));
            }
            let mut rule = json!({"kinds": kinds, "overlay": {"env": env}});
            if let Some(handler) = handler {
                rule["overlay"]["lifecycle"] = json!({"preStop": handler});
                rule["overlay"]["readinessProbe"] = handler;
                rule["overlay"]["readinessProbe"]["periodSeconds"] = json!(7);
            }
            set(&mut rule, "existing", existing);
            if let Some(exception) = exception {
                rule["existingEnv"] = json!({"SHARED": exception});
            }
            if is_first {
                rule["placement"] = json!({"env": "First"});
            }
            if let Some(select) = select {
                rule["select"] = select;
            }
            rule
        },
    );
    prop::collection::vec(rule, 1..3)
        .prop_map(|rules| vec![json!({"name": "rules", "containers": rules})])
}

/// Changes of what other templates add.
fn added(letter: char) -> impl Strategy<Value = Vec<Value>> {
    (existing(), any::<[bool; 3]>()).prop_map(
        move |(existing, [has_image, has_shared, deletes])| {
            let mut env = vec![json!({"name": format!("FROM_{letter}"), "value": "1"})];
            if has_shared {
                env.push(json!({"name": "SHARED", "value": format!("added-{letter}")}));
            }
            if deletes && existing == Some("Replace") {
                env.push(json!({"$patch": "delete", "name": "OLD"}));
            }
            let mut overlay = json!({"env": env});
            if has_image {
                overlay["image"] = json!("mirror/agent");
            }
            let names = ["a-agent", "b-agent", "c-tail-0", "shared"];
            let mut rule =
                json!({"kinds": ["Added"], "select": {"names": names}, "overlay": overlay});
            set(&mut rule, "existing", existing);
            vec![json!({"name": "added", "containers": [rule]})]
        },
    )
}

/// A template with a letter in its names.
pub(super) fn object(letter: char) -> impl Strategy<Value = Value> {
    let steps = (
        option::of(tails(letter)),
        option::weighted(0.6, agent(letter)),
        option::weighted(0.3, fields(letter)),
        option::weighted(0.2, directives(letter)),
        option::of(rules(letter)),
        option::of(added(letter)),
    );
    (steps, 0..3).prop_map(move |((tails, agent, fields, directives, rules, added), priority)| {
        let parts = [tails, agent, fields, directives, rules, added];
        let mut steps = parts.into_iter().flatten().flatten().collect::<Vec<_>>();
        if steps.is_empty() {
            steps.push(
                json!({"name": "label", "overlay": {"metadata": {"labels": {"one": letter}}}}),
            );
        }
        json!({
            "apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
            "metadata": {"name": letter},
            "spec": {"priority": priority, "match": {"namespaceSelector": {}}, "steps": steps,
                "variables": [{"name": "ports", "expression": "freePorts(8080, 1)"}],
                "parameters": [
                    {"name": "items", "type": "List", "default": "",
                        "from": [{"podAnnotation": "example.com/items"}]},
                    {"name": format!("of_{letter}"), "type": "String", "default": letter}]},
        })
    })
}
