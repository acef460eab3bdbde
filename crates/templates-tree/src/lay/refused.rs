//! What an API server would refuse in a pod: names, paths and ports that occur twice, and references to
//! volumes that are not there.
//!
//! Kubernetes: `ValidatePodSpec` (`pkg/apis/core/validation`). It accepts a number of a port with a
//! protocol twice in a container with a warning; here it is refused.

use std::{collections::BTreeSet, fmt, sync::LazyLock};

use injectd_merge::schema::{Struct, StructRef};
use injectd_templates::{named::member, union::rivals};
use serde_json::Value;

use super::lists::name;
use crate::owner::controller;

/// What an API server would refuse in `after` and not in `before`, as texts that name container and
/// field.
///
/// A volume that a pod of a `StatefulSet` mounts without having it counts as there: the controller adds the
/// volumes of its claims.
#[must_use]
pub fn refused(before: &Value, after: &Value) -> Vec<String> {
    let elsewhere = mounted_only(before);
    let mut found = problems(after, &elsewhere);
    if !found.is_empty() {
        let known: BTreeSet<_> = problems(before, &elsewhere).into_iter().collect();
        found.retain(|problem| !known.contains(problem));
    }
    found.iter().map(ToString::to_string).collect()
}

/// What an API server would refuse in a pod before it is changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refused {
    texts: BTreeSet<String>,
    /// Volumes that are there without being in the pod.
    elsewhere: BTreeSet<String>,
}

impl Refused {
    pub(crate) fn of(pod: &Value) -> Self {
        let elsewhere = mounted_only(pod);
        let texts = problems(pod, &elsewhere).iter().map(ToString::to_string).collect();
        Self { texts, elsewhere: elsewhere.into_iter().map(str::to_owned).collect() }
    }

    /// What it is for a pod after it was changed, if it is known without another look.
    ///
    /// # Errors
    /// The first that would be refused, and would not have been before.
    pub(crate) fn between(before: &Value, after: &Value) -> Result<Option<Self>, String> {
        let elsewhere = mounted_only(before);
        let problems = problems(after, &elsewhere);
        if problems.is_empty() {
            return Ok(elsewhere.is_empty().then(Self::default));
        }
        let known = self::problems(before, &elsewhere);
        let known: BTreeSet<_> = known.iter().map(ToString::to_string).collect();
        let mut texts = problems.iter().map(ToString::to_string);
        texts.find(|text| !known.contains(text)).map_or(Ok(None), Err)
    }

    /// The same for the pod after it was changed, if it is known without another look.
    ///
    /// # Errors
    /// The first that would be refused, and would not have been before.
    pub(crate) fn after(self, pod: &Value) -> Result<Option<Self>, String> {
        let elsewhere = self.elsewhere.iter().map(String::as_str).collect();
        let problems = problems(pod, &elsewhere);
        if problems.is_empty() && self.elsewhere.is_empty() && self.texts.is_empty() {
            return Ok(Some(self));
        }
        let mut texts = problems.iter().map(ToString::to_string);
        texts.find(|text| !self.texts.contains(text)).map_or(Ok(None), Err)
    }
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
/// Things that are compared one by one.
const FEW: usize = 16;

/// A container: its list and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'p> {
    list: &'static str,
    name: &'p str,
}

/// A port, for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Port<'p> {
    number: u64,
    protocol: &'p str,
}

/// What an API server would refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Problem<'p> {
    Containers(Place<'p>),
    Volumes(&'p str),
    Sources(&'p str),
    Variable { of: Place<'p>, name: &'p str },
    Paths { of: Place<'p>, list: &'static str, path: &'p str },
    NoVolume { of: Place<'p>, list: &'static str, path: &'p str, volume: &'p str },
    PortNames { of: Place<'p>, name: &'p str },
    Ports { of: Place<'p>, port: Port<'p> },
    HostPorts { of: Place<'p>, port: Port<'p> },
    Handlers { of: Place<'p>, field: &'static str },
    NoContainers,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spec.{}[{:?}]", self.list, self.name)
    }
}

/// As a text in quotes.
impl fmt::Display for Port<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", format!("{}/{}", self.number, self.protocol))
    }
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Containers(of) => write!(f, "{of}: the pod has two containers of this name"),
            Self::Volumes(name) => {
                write!(f, "spec.volumes[{name:?}]: the pod has two volumes of this name")
            }
            Self::Sources(name) => {
                write!(f, "spec.volumes[{name:?}]: the volume has more than one source")
            }
            Self::Variable { of, name } => {
                write!(f, "{of}.env[{name:?}]: the variable has `value` beside `valueFrom`")
            }
            Self::Paths { of, list, path } => {
                write!(f, "{of}.{list}[{path:?}]: the container has two mounts at this path")
            }
            Self::NoVolume { of, list, path, volume } => {
                write!(f, "{of}.{list}[{path:?}]: the pod has no volume {volume:?}")
            }
            Self::PortNames { of, name } => {
                write!(f, "{of}.ports[{name:?}]: the container has two ports of this name")
            }
            Self::Ports { of, port } => {
                write!(f, "{of}.ports[{port}]: the container has this port and protocol twice")
            }
            Self::HostPorts { of, port } => {
                write!(f, "{of}.ports[{port}]: the host port is taken already")
            }
            Self::Handlers { of, field } => {
                write!(f, "{of}.{field}: it has more than one handler, such as exec and httpGet")
            }
            Self::NoContainers => write!(f, "spec.containers: no container is left"),
        }
    }
}

/// Reports things that occur twice.
struct Once<'p, T> {
    few: Vec<T>,
    more: BTreeSet<T>,
    problems: Vec<Problem<'p>>,
}

impl<T> Default for Once<'_, T> {
    fn default() -> Self {
        Self { few: Vec::new(), more: BTreeSet::new(), problems: Vec::new() }
    }
}

impl<'p, T: Ord> Once<'p, T> {
    fn see(&mut self, thing: T, problem: Problem<'p>) {
        let is_known = self.few.contains(&thing);
        if !is_known && self.few.len() < FEW {
            self.few.push(thing);
            return;
        }
        // Three of a kind are one problem.
        if (is_known || !self.more.insert(thing)) && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

fn problems<'p>(pod: &'p Value, elsewhere: &BTreeSet<&'p str>) -> Vec<Problem<'p>> {
    let Some(spec) = pod.get("spec") else { return Vec::new() };
    let mut problems = volumes(spec);
    let mut volumes: BTreeSet<&str> = list(spec, "volumes").filter_map(name).collect();
    volumes.extend(elsewhere);
    let mut names = Once::default();
    for key in LISTS {
        for container in list(spec, key) {
            let of = Place { list: key, name: name(container).unwrap_or_default() };
            names.see(of.name, Problem::Containers(of));
            variables(container, of, &mut problems);
            mounts(container, of, &volumes, &mut problems);
            ports(container, of, &mut problems);
            handlers(container, of, &mut problems);
        }
    }
    if list(spec, "containers").next().is_none() {
        problems.push(Problem::NoContainers);
    }
    problems.extend(names.problems);
    host_ports(spec, &mut problems);
    problems
}

fn list<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    member(object, key).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    member(object, key).and_then(Value::as_str).unwrap_or_default()
}

fn volumes(spec: &Value) -> Vec<Problem<'_>> {
    let mut names = Once::default();
    let mut problems = Vec::new();
    for volume in list(spec, "volumes") {
        let name = name(volume).unwrap_or_default();
        names.see(name, Problem::Volumes(name));
        let is_source = |key: &&String| *key != "name";
        let sources = volume.as_object().map_or(0, |map| map.keys().filter(is_source).count());
        if sources > 1 {
            problems.push(Problem::Sources(name));
        }
    }
    problems.extend(names.problems);
    problems
}

fn variables<'p>(container: &'p Value, of: Place<'p>, problems: &mut Vec<Problem<'p>>) {
    let both = |variable: &&Value| {
        member(variable, "valueFrom").is_some_and(|source| !source.is_null())
            && !text(variable, "value").is_empty()
    };
    let problem = |variable| Problem::Variable { of, name: name(variable).unwrap_or_default() };
    problems.extend(list(container, "env").filter(both).map(problem));
}

fn mounts<'p>(
    container: &'p Value,
    of: Place<'p>,
    volumes: &BTreeSet<&str>,
    problems: &mut Vec<Problem<'p>>,
) {
    let mut paths = Once::default();
    for (list, path_key) in [("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")] {
        for mount in self::list(container, list) {
            let path = text(mount, path_key);
            paths.see(path, Problem::Paths { of, list, path });
            let volume = text(mount, "name");
            if !volumes.contains(volume) {
                problems.push(Problem::NoVolume { of, list, path, volume });
            }
        }
    }
    problems.extend(paths.problems);
}

/// Fields of a container, and of its `lifecycle`, that have a handler, with their types.
const PROBES: ([&str; 3], &str) = (["livenessProbe", "readinessProbe", "startupProbe"], "Probe");
const HOOKS: ([&str; 2], &str) = (["postStart", "preStop"], "LifecycleHandler");
static TYPES: LazyLock<[&Struct; 2]> = LazyLock::new(|| {
    [PROBES.1, HOOKS.1].map(|name| StructRef::named(name).expect("the type must be known").get())
});

fn handlers<'p>(container: &'p Value, of: Place<'p>, problems: &mut Vec<Problem<'p>>) {
    let [probe, hook] = *TYPES;
    let of_container = PROBES.0.map(|field| (Some(container), field, probe));
    let lifecycle = member(container, "lifecycle");
    let all = of_container.into_iter().chain(HOOKS.0.map(|field| (lifecycle, field, hook)));
    for (object, field, types) in all {
        let handler = object.and_then(|object| member(object, field)?.as_object());
        let Some(handler) = handler else { continue };
        if handler.keys().any(|key| rivals(types, key, handler).next().is_some()) {
            problems.push(Problem::Handlers { of, field });
        }
    }
}

fn protocol(port: &Value) -> &str {
    match text(port, "protocol") {
        "" => "TCP",
        protocol => protocol,
    }
}

fn number(port: &Value, key: &str) -> Option<u64> {
    member(port, key).and_then(Value::as_u64).filter(|number| *number > 0)
}

fn ports<'p>(container: &'p Value, of: Place<'p>, problems: &mut Vec<Problem<'p>>) {
    let (mut names, mut numbers) = (Once::default(), Once::default());
    for port in list(container, "ports") {
        if let Some(name) = name(port).filter(|name| !name.is_empty()) {
            names.see(name, Problem::PortNames { of, name });
        }
        if let Some(number) = number(port, "containerPort") {
            let port = Port { number, protocol: protocol(port) };
            numbers.see(port, Problem::Ports { of, port });
        }
    }
    problems.append(&mut names.problems);
    problems.append(&mut numbers.problems);
}

/// Host ports are those of all containers together. With `hostNetwork`, a port is its own host port.
/// Kubernetes looks at each init container for itself, as they run one after the other.
fn host_ports<'p>(spec: &'p Value, problems: &mut Vec<Problem<'p>>) {
    let is_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    let mut of_all = Once::default();
    for list in LISTS {
        for container in self::list(spec, list) {
            let mut of_one = Once::default();
            let ports = if list == "containers" { &mut of_all } else { &mut of_one };
            let of = Place { list, name: name(container).unwrap_or_default() };
            for port in self::list(container, "ports") {
                // In the network of the host, the API server sets hostPort to containerPort.
                let of_host = is_host.then(|| number(port, "containerPort")).flatten();
                let Some(number) = number(port, "hostPort").or(of_host) else { continue };
                let shown = Port { number, protocol: protocol(port) };
                let taken = (shown, text(port, "hostIP"));
                ports.see(taken, Problem::HostPorts { of, port: shown });
            }
            problems.append(&mut of_one.problems);
        }
    }
    problems.append(&mut of_all.problems);
}
