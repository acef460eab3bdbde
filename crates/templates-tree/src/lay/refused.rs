//! What an API server would refuse in a pod: names, paths and ports that occur twice, and references to
//! volumes that are not there.
//!
//! Kubernetes: `ValidatePodSpec` (`pkg/apis/core/validation`). It accepts a number of a port with a
//! protocol twice in a container with a warning; here it is refused.

use std::collections::BTreeSet;

use serde_json::Value;

use super::section::name;
use crate::owner::controller;

/// What an API server would refuse in `after` and not in `before`, as texts that name container and
/// field.
///
/// A volume that a pod of a `StatefulSet` mounts without having it counts as there: the controller adds the
/// volumes of its claims.
#[must_use]
pub fn refused(before: &Value, after: &Value) -> Vec<String> {
    let elsewhere = mounted_only(before);
    let known: BTreeSet<String> = problems(before, &elsewhere).into_iter().collect();
    problems(after, &elsewhere).into_iter().filter(|problem| !known.contains(problem)).collect()
}

/// Volumes that containers of a pod of a `StatefulSet` mount, and that it does not have.
fn mounted_only(pod: &Value) -> BTreeSet<&str> {
    let is_stateful = controller(pod).is_some_and(|controller| controller["kind"] == "StatefulSet");
    let Some(spec) = pod.get("spec").filter(|_| is_stateful) else { return BTreeSet::new() };
    let has = |name: &str| list(spec, "volumes").any(|volume| self::name(volume) == Some(name));
    let containers = LISTS.iter().flat_map(|key| list(spec, key));
    let mounts = containers.flat_map(|container| {
        list(container, "volumeMounts").chain(list(container, "volumeDevices"))
    });
    mounts.filter_map(name).filter(|name| !has(name)).collect()
}

/// The lists of containers.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Reports things that occur twice.
#[derive(Default)]
struct Once {
    seen: BTreeSet<String>,
    problems: Vec<String>,
}

impl Once {
    fn see(&mut self, thing: String, problem: impl FnOnce() -> String) {
        if !self.seen.insert(thing) {
            let problem = problem();
            // Three of a kind are one problem.
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}

fn problems(pod: &Value, elsewhere: &BTreeSet<&str>) -> Vec<String> {
    let Some(spec) = pod.get("spec") else { return Vec::new() };
    let mut problems = volumes(spec);
    let mut volumes: BTreeSet<&str> = list(spec, "volumes").filter_map(name).collect();
    volumes.extend(elsewhere);
    let mut names = Once::default();
    for key in LISTS {
        for container in list(spec, key) {
            let name = name(container).unwrap_or_default();
            names.see(name.to_owned(), || {
                format!("spec.{key}[{name:?}]: the pod has two containers of this name")
            });
            let place = format!("spec.{key}[{name:?}]");
            problems.extend(variables(container, &place));
            problems.extend(mounts(container, &place, &volumes));
            problems.extend(ports(container, &place));
        }
    }
    problems.extend(names.problems);
    problems.extend(host_ports(spec));
    problems
}

fn list<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    object.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn volumes(spec: &Value) -> Vec<String> {
    let mut names = Once::default();
    let mut problems = Vec::new();
    for volume in list(spec, "volumes") {
        let name = name(volume).unwrap_or_default();
        names.see(name.to_owned(), || {
            format!("spec.volumes[{name:?}]: the pod has two volumes of this name")
        });
        let is_source = |key: &&String| *key != "name";
        let sources = volume.as_object().map_or(0, |map| map.keys().filter(is_source).count());
        if sources > 1 {
            problems.push(format!("spec.volumes[{name:?}]: the volume has more than one source"));
        }
    }
    problems.extend(names.problems);
    problems
}

fn variables(container: &Value, place: &str) -> Vec<String> {
    let both = |variable: &&Value| {
        !text(variable, "value").is_empty()
            && variable.get("valueFrom").is_some_and(|source| !source.is_null())
    };
    let problem = |variable: &Value| {
        let name = name(variable).unwrap_or_default();
        format!("{place}.env[{name:?}]: the variable has `value` beside `valueFrom`")
    };
    list(container, "env").filter(both).map(problem).collect()
}

fn mounts(container: &Value, place: &str, volumes: &BTreeSet<&str>) -> Vec<String> {
    let mut paths = Once::default();
    let mut problems = Vec::new();
    for (key, path_key) in [("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")] {
        for mount in list(container, key) {
            let path = text(mount, path_key);
            let place = format!("{place}.{key}[{path:?}]");
            paths.see(path.to_owned(), || {
                format!("{place}: the container has two mounts at this path")
            });
            let volume = text(mount, "name");
            if !volumes.contains(volume) {
                problems.push(format!("{place}: the pod has no volume {volume:?}"));
            }
        }
    }
    problems.extend(paths.problems);
    problems
}

fn protocol(port: &Value) -> &str {
    match text(port, "protocol") {
        "" => "TCP",
        protocol => protocol,
    }
}

fn number(port: &Value, key: &str) -> Option<u64> {
    port.get(key).and_then(Value::as_u64).filter(|number| *number > 0)
}

fn ports(container: &Value, place: &str) -> Vec<String> {
    let (mut names, mut numbers) = (Once::default(), Once::default());
    for port in list(container, "ports") {
        if let Some(name) = name(port).filter(|name| !name.is_empty()) {
            names.see(name.to_owned(), || {
                format!("{place}.ports[{name:?}]: the container has two ports of this name")
            });
        }
        if let Some(number) = number(port, "containerPort") {
            let port = format!("{number}/{}", protocol(port));
            numbers.see(port.clone(), || {
                format!("{place}.ports[{port:?}]: the container has this port and protocol twice")
            });
        }
    }
    [names.problems, numbers.problems].concat()
}

/// Host ports are those of all containers together. With `hostNetwork`, a port is its own host port.
/// Kubernetes looks at each init container for itself, as they run one after the other.
fn host_ports(spec: &Value) -> Vec<String> {
    let is_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    let mut problems = Vec::new();
    let mut of_all = Once::default();
    for key in LISTS {
        for container in list(spec, key) {
            let mut of_one = Once::default();
            let ports = if key == "containers" { &mut of_all } else { &mut of_one };
            let name = name(container).unwrap_or_default();
            for port in list(container, "ports") {
                let of_host = is_host.then(|| number(port, "containerPort")).flatten();
                let Some(number) = number(port, "hostPort").or(of_host) else { continue };
                let shown = format!("{number}/{}", protocol(port));
                ports.see(format!("{shown}/{}", text(port, "hostIP")), || {
                    format!("spec.{key}[{name:?}].ports[{shown:?}]: the host port is taken already")
                });
            }
            problems.append(&mut of_one.problems);
        }
    }
    problems.append(&mut of_all.problems);
    problems
}
