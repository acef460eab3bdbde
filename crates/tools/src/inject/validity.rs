//! What an API server would refuse of a pod that has its sidecar now, as far as the pod itself shows
//! it: what the author wrote and what the injection added may contradict each other.
//!
//! Not a validation of pods: a field that injection does not touch, or whose rule needs a cluster, is
//! not looked at.

use std::collections::HashSet;

use injectd_gocompat::quantity;
use serde_json::Value;

use crate::manifests::{Action, Edited, Entry, text};

/// The lists of containers, which share their names.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Who may act, of which a probe and a hook have one each.
const ACTIONS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
/// What has an action in a container.
const ACTORS: [&str; 5] = [
    "/livenessProbe",
    "/readinessProbe",
    "/startupProbe",
    "/lifecycle/postStart",
    "/lifecycle/preStop",
];

/// The most problems that are named of one pod.
const MAX_PROBLEMS: usize = 10;

impl Edited {
    /// What injection of an object with pods ended in: one that is rejected stays as it is.
    pub(super) fn of_pods(
        injected: Result<Self, String>,
        object: &Value,
        kind: &str,
        prefix: &str,
    ) -> Self {
        let mut edited = injected.unwrap_or_else(|problem| Self {
            object: None,
            entry: Entry::of(object, kind, Action::Rejected).because(problem),
        });
        edited.entry.has_pods = true;
        edited.warn_of_invalid_pods(prefix);
        edited
    }

    /// Adds a warning for each reason for which an API server would refuse the injected pods.
    pub(super) fn warn_of_invalid_pods(&mut self, prefix: &str) {
        if self.entry.action != Action::Injected {
            return;
        }
        let spec =
            self.object.as_ref().and_then(|object| object.pointer(&format!("{prefix}/spec")));
        let problems = spec.map(problems).unwrap_or_default().into_iter().take(MAX_PROBLEMS);
        let problems = problems.map(|problem| format!("the pod is not valid: {problem}"));
        self.entry.warnings.extend(problems);
    }
}

/// Why an API server would refuse the spec of a pod.
fn problems(spec: &Value) -> Vec<String> {
    let containers: Vec<_> = CONTAINERS.iter().flat_map(|list| items(spec.get(list))).collect();
    let mut problems = twice(containers.iter().copied(), "/name", "containers have the name");
    problems.extend(twice(items(spec.get("volumes")), "/name", "volumes have the name"));
    problems.extend(items(spec.get("volumes")).iter().filter_map(of_volume));
    for container in containers {
        let name = text(container, "/name");
        let mounts = items(container.get("volumeMounts"));
        let mut found = twice(mounts, "/mountPath", "volumes are mounted at");
        found.extend(ACTORS.iter().filter_map(|actor| of_actions(container, actor)));
        found.extend(items(container.get("env")).iter().filter_map(of_variable));
        found.extend(
            ["cpu", "memory"].iter().filter_map(|resource| of_resource(container, resource)),
        );
        problems.extend(found.into_iter().map(|problem| format!("container {name:?}: {problem}")));
    }
    problems
}

/// A problem for each text at a field that two of the items have.
fn twice<'v>(items: impl IntoIterator<Item = &'v Value>, field: &str, what: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let mut named = HashSet::new();
    let texts = items.into_iter().map(|item| text(item, field)).filter(|text| !text.is_empty());
    let again = texts.filter(|text| !known.insert(*text) && named.insert(*text));
    again.map(|text| format!("two {what} {text:?}")).collect()
}

/// A volume has one source, whose key is its type.
fn of_volume(volume: &Value) -> Option<String> {
    let sources: Vec<_> = set_keys(volume).filter(|key| *key != "name").collect();
    let (first, second) = (sources.first()?, sources.get(1)?);
    let name = text(volume, "/name");
    Some(format!("volume {name:?} has both {first:?} and {second:?}"))
}

fn of_actions(container: &Value, actor: &str) -> Option<String> {
    let actions = set_keys(container.pointer(actor)?).filter(|key| ACTIONS.contains(key));
    let actions: Vec<_> = actions.collect();
    let (first, second) = (actions.first()?, actions.get(1)?);
    let actor = actor.trim_start_matches('/').replace('/', ".");
    Some(format!("{actor} has both {first} and {second}"))
}

fn of_variable(variable: &Value) -> Option<String> {
    let has_both =
        !text(variable, "/value").is_empty() && set_keys(variable).any(|key| key == "valueFrom");
    let name = text(variable, "/name");
    has_both.then(|| format!("variable {name:?} has both value and valueFrom"))
}

fn of_resource(container: &Value, resource: &str) -> Option<String> {
    let amount = |list: &str| {
        let shown = container.pointer(&format!("/resources/{list}/{resource}"))?;
        let shown = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
        let amount = quantity::parse(shown.trim())?.approximate();
        Some((shown, amount))
    };
    let (request, requested) = amount("requests")?;
    let (limit, limited) = amount("limits")?;
    (requested > limited)
        .then(|| format!("requests {resource} {request}, above its limit of {limit}"))
}

/// The keys of a mapping whose values are not null.
fn set_keys(map: &Value) -> impl Iterator<Item = &str> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter(|(_, value)| !value.is_null()).map(|(key, _)| key.as_str())
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_api_server_refuses_is_named() {
        let spec = json!({
            "initContainers": [{"name": "p"}],
            "containers": [
                {"name": "p", "livenessProbe": {"exec": {}, "httpGet": {}, "grpc": null},
                    "lifecycle": {"preStop": {"exec": {}, "sleep": {}}}},
                {"name": "q", "env": [{"name": "A", "value": "1", "valueFrom": {}}],
                    "volumeMounts": [{"name": "a", "mountPath": "/x"}, {"name": "b", "mountPath": "/x"}],
                    "resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}},
                {"name": "q"}, {"name": "q"},
            ],
            "volumes": [{"name": "a", "emptyDir": {}, "csi": {}}, {"name": "b"}, {"name": "b"}],
        });
        assert_eq!(
            problems(&spec),
            [
                "two containers have the name \"p\"",
                "two containers have the name \"q\"",
                "two volumes have the name \"b\"",
                "volume \"a\" has both \"emptyDir\" and \"csi\"",
                "container \"p\": livenessProbe has both exec and httpGet",
                "container \"p\": lifecycle.preStop has both exec and sleep",
                "container \"q\": two volumes are mounted at \"/x\"",
                "container \"q\": variable \"A\" has both value and valueFrom",
                "container \"q\": requests cpu 2, above its limit of 1500m",
            ]
        );
    }

    #[test]
    fn a_pod_without_contradictions_has_no_problems() {
        let spec = json!({
            "initContainers": [{"name": "a"}],
            "containers": [
                {"name": "b", "livenessProbe": {"exec": null, "httpGet": {}, "periodSeconds": 1},
                    "env": [{"name": "A", "value": ""}, {"name": "A", "valueFrom": {}}],
                    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": 1, "memory": "1Gi"}}},
                {}, {}, 7,
            ],
            "volumes": [{"name": "a", "emptyDir": {}, "csi": null}, {"emptyDir": {}}],
        });
        assert_eq!(problems(&spec), [""; 0]);
        assert_eq!(problems(&json!({"containers": 7, "volumes": null})), [""; 0]);
    }
}
