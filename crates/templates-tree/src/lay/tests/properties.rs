//! Rules that hold for all pods and overlays.

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{patches::applied, *};

fn variables() -> impl Strategy<Value = Value> {
    let value = select(vec!["1", "2", "$(A)", "$(B)-$(C)", "$$(A)"]);
    let variable = (select(vec!["A", "B", "C", "D"]), value, any::<bool>());
    vec(variable, 0..4).prop_map(|variables| -> Value {
        let variable = |(name, value, is_source)| {
            if is_source {
                json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": value}}})
            } else {
                json!({"name": name, "value": value})
            }
        };
        unique(variables.into_iter().map(variable).collect(), "name").into()
    })
}

/// A piece of a container without a name.
pub(super) fn piece() -> impl Strategy<Value = Value> {
    let mount = (select(vec!["/x", "/y", "/z"]), select(vec!["v", "w"]), any::<bool>());
    let mounts = vec(mount, 0..3).prop_map(|mounts| -> Value {
        let mount = |(path, name, read_only)| {
            json!({"mountPath": path, "name": name, "readOnly": read_only})
        };
        unique(mounts.into_iter().map(mount).collect(), "mountPath").into()
    });
    let port =
        (select(vec![80, 81]), option::of(select(vec!["TCP", "UDP"])), select(vec!["p", "q"]));
    let ports = vec(port, 0..3).prop_map(|ports| -> Value {
        let port = |(number, protocol, name)| match protocol {
            Some(protocol) => json!({"containerPort": number, "protocol": protocol, "name": name}),
            None => json!({"containerPort": number, "name": name}),
        };
        unique(ports.into_iter().map(port).collect(), "containerPort").into()
    });
    let cpu = option::of(select(vec!["1", "1000m", "2"]));
    (variables(), mounts, ports, cpu, option::of(vec(select(vec!["a", "b"]), 0..3))).prop_map(
        |(env, mounts, ports, cpu, args)| {
            let mut piece = json!({"env": env, "volumeMounts": mounts, "ports": ports});
            if let Some(cpu) = cpu {
                piece["resources"] = json!({"requests": {"cpu": cpu}});
            }
            if let Some(args) = args {
                piece["args"] = json!(args);
            }
            piece
        },
    )
}

/// A pod, or a piece of one, whose names begin with a letter.
pub(super) fn part(letter: &'static str) -> impl Strategy<Value = Value> {
    let container = (select(vec!["a", "b", "c"]), piece()).prop_map(move |(name, mut piece)| {
        piece["name"] = json!(format!("{letter}{name}"));
        piece
    });
    let sources = vec![json!({"emptyDir": {}}), json!({"secret": {"secretName": "s"}})];
    let volumes = vec((select(vec!["v", "w", "x"]), select(sources)), 0..3);
    let texts = vec((select(vec!["k", "l", "m"]), select(vec!["1", "2", ""])), 0..3);
    let fields = (option::of(0..2), option::of(0..2), option::of(any::<bool>()));
    let containers = vec(container, 0..4);
    (containers, volumes, texts.clone(), texts, fields).prop_map(
        move |(containers, volumes, labels, annotations, (group, user, is_host))| {
            let keyed = |(key, value): (&str, &str)| (format!("{letter}{key}"), Value::from(value));
            let map = |texts: Vec<(&str, &str)>| -> Value { texts.into_iter().map(keyed).collect() };
            let aliases: Vec<Value> = labels.iter().map(|(ip, host)| {
                json!({"ip": format!("{letter}{ip}"), "hostnames": [host]})
            }).collect();
            let mut names = BTreeSet::new();
            let is_new = |entry: &Value| names.insert(entry["name"].to_string());
            let (init, app): (Vec<Value>, Vec<Value>) =
                containers.into_iter().filter(is_new).partition(|one| one.get("args").is_some());
            let mut pod = json!({"metadata": {"labels": map(labels), "annotations": map(annotations)},
                "spec": {"initContainers": init, "containers": app, "hostAliases": unique(aliases, "ip")}});
            let volume = |(name, mut volume): (&str, Value)| {
                volume["name"] = json!(format!("{letter}{name}"));
                volume
            };
            pod["spec"]["volumes"] =
                unique(volumes.into_iter().map(volume).collect(), "name").into();
            for (key, id) in [("fsGroup", group), ("runAsUser", user)] {
                if let Some(id) = id {
                    pod["spec"]["securityContext"][key] = json!(id);
                }
            }
            if let Some(is_host) = is_host {
                pod["spec"]["hostNetwork"] = json!(is_host);
            }
            pod
        },
    )
}

fn unique(list: Vec<Value>, key: &str) -> Vec<Value> {
    let mut names = BTreeSet::new();
    list.into_iter().filter(|entry| names.insert(entry[key].to_string())).collect()
}

/// How a step or rule meets what is there, without a denial.
fn existing() -> impl Strategy<Value = Option<Existing>> {
    option::of(select(vec![Existing::Keep, Existing::Replace]))
}

fn step(overlay: &Value, existing: Option<Existing>, on_conflict: OnConflict) -> StepOverlay<'_> {
    StepOverlay { existing, on_conflict: Some(on_conflict), ..super::bare(overlay) }
}

pub(super) fn conflict() -> impl Strategy<Value = OnConflict> {
    let answers = [OnConflict::Keep, OnConflict::Replace, OnConflict::SkipStep];
    select(answers.to_vec())
}

/// Whether everything of one value is in the other: lists keep their order.
fn grew(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(key, value)| after.get(key).is_some_and(|after| grew(value, after)))
        }
        (Value::Array(before), Value::Array(after)) => {
            let mut after = after.iter();
            before.iter().all(|value| after.any(|after| grew(value, after)))
        }
        _ => before == after,
    }
}

/// The order of containers, volumes and aliases aside.
fn sorted(mut pod: Value) -> Value {
    for list in ["initContainers", "containers", "volumes", "hostAliases"] {
        if let Some(Value::Array(list)) = pod["spec"].get_mut(list) {
            list.sort_by_key(ToString::to_string);
        }
    }
    pod
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn laying_twice_is_laying_once(
        mut pod in part("p"),
        overlays in vec((prop_oneof![part("p"), part("t")], existing()), 1..4),
        answer in conflict(),
    ) {
        let steps: Vec<_> =
            overlays.iter().map(|(overlay, existing)| step(overlay, *existing, answer)).collect();
        let mut own = Own::default();
        // Two steps that name a container for both lists are denied.
        prop_assume!(super::steps(&mut pod, &mut own, &steps).is_ok());
        let once = pod.clone();
        // A volume that a step met, and that another one has, counts as the template's.
        if answer != OnConflict::SkipStep {
            prop_assert!(super::steps(&mut pod, &mut own, &steps).is_ok());
            prop_assert_eq!(&pod, &once);
        }
        prop_assert!(super::steps(&mut pod, &mut Own::default(), &steps).is_ok());
        prop_assert_eq!(&pod, &once);
        prop_assert_eq!(refused(&pod, &pod), Vec::<String>::new());
    }

    #[test]
    fn a_rule_twice_is_a_rule_once(
        container in piece(),
        overlay in piece(),
        existing in existing(),
        exception in select(vec![Existing::Keep, Existing::Replace]),
        env_first in any::<bool>(),
    ) {
        let existing_env = BTreeMap::from([("A".to_owned(), exception)]);
        let rule = RuleOverlay { overlay: &overlay, existing, existing_env: &existing_env, env_first, others: Others::default() };
        let mut once = container.clone();
        super::rule(&mut once, &rule).expect("nothing is denied");
        let mut twice = once.clone();
        super::rule(&mut twice, &rule).expect("nothing is denied");
        prop_assert_eq!(&twice, &once);
        let (before, after) = (json!({"spec": {"containers": [container]}}), json!({"spec": {"containers": [once]}}));
        prop_assert_eq!(applied(&before, &patch(&before, &after)), after);
    }

    #[test]
    fn the_order_of_disjoint_overlays_does_not_matter(
        pod in part("p"), one in part("t"), other in part("u"),
    ) {
        let lay = |steps: &[StepOverlay]| {
            let mut pod = pod.clone();
            super::steps(&mut pod, &mut Own::default(), steps).map(|_| sorted(pod))
        };
        // Fields of `spec` have no names of their own.
        let (mut one, mut other) = (one, other);
        for part in [&mut one, &mut other] {
            let spec = part["spec"].as_object_mut().expect("a spec");
            spec.retain(|key, _| key != "securityContext" && key != "hostNetwork");
        }
        let (one, other) = (super::bare(&one), super::bare(&other));
        prop_assert_eq!(lay(&[one.clone(), other.clone()]), lay(&[other, one]));
    }

    #[test]
    fn a_pod_without_what_the_overlay_names_only_grows(pod in part("p"), mut overlay in part("t")) {
        let spec = overlay["spec"].as_object_mut().expect("a spec");
        spec.retain(|key, _| key != "securityContext" && key != "hostNetwork");
        let after = super::laid(&pod, &super::bare(&overlay));
        prop_assert!(grew(&pod, &after));
        let patch = patch(&pod, &after);
        prop_assert_eq!(applied(&pod, &patch), after);
        prop_assert!(patch.iter().all(|operation| operation["op"] == "add"));
        let again = super::laid(&applied(&pod, &patch), &super::bare(&overlay));
        prop_assert_eq!(applied(&pod, &patch), again);
    }
}
