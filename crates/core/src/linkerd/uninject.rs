//! Removes an injection from a manifest (`pkg/inject/uninject.go`), for the command line.

#![expect(clippy::disallowed_types, reason = "manifests are trees of any shape")]

use serde_json::{Map, Value};

use super::{annotations::Annotation, pod::Object, snapshot::Snapshot};
use crate::{json, object::Kind};

/// The containers that injection adds.
const CONTAINERS: [&str; 4] =
    ["linkerd-proxy", "linkerd-init", "linkerd-network-validator", "linkerd-debug"];
/// The volumes that injection adds.
const VOLUMES: [&str; 4] = [
    "linkerd-proxy-init-xtables-lock",
    "linkerd-identity-end-entity",
    "linkerd-identity-token",
    "linkerd-podinfo",
];
/// The beginning of the labels and annotations that injection adds; not of `config.linkerd.io/`.
const PREFIX: &str = "linkerd.io";
/// The label of Linkerd's own components. Their labels and annotations come from the installation.
pub const CONTROL_PLANE_LABEL: &str = "linkerd.io/control-plane-component";
/// The beginning of the annotations with settings.
const SETTINGS_PREFIX: &str = "config.";

/// What was removed from an object, and what was not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Whether there was a sidecar.
    pub sidecar: bool,
    /// Whether labels or annotations were removed.
    pub metadata: bool,
    /// The removed value of `linkerd.io/inject`.
    pub inject: Option<String>,
    /// The removed value of `config.linkerd.io/opaque-ports`.
    pub opaque_ports: Option<String>,
    /// Settings in annotations of the pod, which stay: they may be the author's or a namespace's.
    pub kept: Vec<String>,
}

impl Removed {
    /// Whether the object had nothing of an injection.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        !self.sidecar && !self.metadata && self.opaque_ports.is_none()
    }
}

/// Whether a pod, or the pod template of a workload, has Linkerd's sidecar.
#[must_use]
pub fn has_sidecar(object: &Value, kind: Kind) -> bool {
    let lists = ["initContainers", "containers"];
    lists.iter().any(|list| {
        let pointer = format!("{}/spec/{list}", kind.path_prefix());
        let items = object.pointer(&pointer).and_then(Value::as_array);
        items.into_iter().flatten().any(|item| is_named(item, &CONTAINERS[..2]))
    })
}

/// Whether an object or its pod template is a component of Linkerd's control plane.
#[must_use]
pub fn is_control_plane(object: &Value, kind: Kind) -> bool {
    let has_label = |prefix: &str| {
        let labels = object.pointer(&format!("{prefix}/metadata/labels"));
        labels.is_some_and(|labels| labels.get(CONTROL_PLANE_LABEL).is_some())
    };
    has_label("") || has_label(kind.path_prefix())
}

/// Removes sidecars, their volumes, and Linkerd's labels and annotations from an object. The
/// annotation `linkerd.io/inject: disabled` and settings stay, as in Linkerd; the opaque ports go if
/// they are those of the configuration for the ports of the object, as injection writes them. A list
/// or mapping that becomes empty goes too.
pub fn uninject(snapshot: &Snapshot, object: &mut Value, kind: Kind) -> Removed {
    let mut removed = Removed::default();
    if kind == Kind::Other {
        return removed;
    }
    let prefix = kind.path_prefix();
    if !matches!(kind, Kind::Service | Kind::Namespace) {
        removed.sidecar = remove_sidecar(object, kind);
    }
    if removed.sidecar || matches!(kind, Kind::Pod | Kind::Service) {
        removed.opaque_ports = remove_opaque_ports(snapshot, object, kind);
    }
    let lists: &[&str] = match kind {
        // Injection gives it no labels.
        Kind::Namespace => &["annotations"],
        _ => &["labels", "annotations"],
    };
    uninject_metadata(object, lists, &mut removed);
    if !prefix.is_empty()
        && let Some(template) = object.pointer_mut(prefix)
    {
        uninject_metadata(template, lists, &mut removed);
        if !removed.is_nothing() {
            remove_empty(template, "metadata");
        }
    }
    if !removed.is_nothing() {
        remove_empty(object, "metadata");
    }
    removed
}

/// Removes the containers and volumes of an injection; whether there were any.
pub(super) fn remove_sidecar(object: &mut Value, kind: Kind) -> bool {
    let mut removed = false;
    let Some(spec) = object.pointer_mut(&format!("{}/spec", kind.path_prefix())) else {
        return removed;
    };
    for (list, names) in
        [("initContainers", &CONTAINERS), ("containers", &CONTAINERS), ("volumes", &VOLUMES)]
    {
        removed |= remove_named(spec, list, names);
    }
    removed
}

/// Removes the opaque ports if injection would write the same ones; returns them.
pub(super) fn remove_opaque_ports(
    snapshot: &Snapshot,
    object: &mut Value,
    kind: Kind,
) -> Option<String> {
    let text = object.to_string();
    let view: Object<'_> = json::read(&text).ok()?;
    let ports = match kind {
        Kind::Service => snapshot.default_opaque_ports.of_service(&view.spec.other.ports),
        kind => {
            let (_, spec) = view.pod(kind)?;
            snapshot.default_opaque_ports.of_pod(snapshot.port_rules, spec)
        }
    };
    let metadata = object.pointer_mut(&format!("{}/metadata", kind.path_prefix()))?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let key = Annotation::OpaquePorts.key();
    if ports.is_empty() || annotations.get(key)?.as_str()? != ports {
        return None;
    }
    // The other keys keep the order in which a person wrote them.
    annotations.shift_remove(key);
    remove_empty(metadata, "annotations");
    Some(ports)
}

fn uninject_metadata(object: &mut Value, lists: &[&str], removed: &mut Removed) {
    let Some(metadata) = object.get_mut("metadata") else { return };
    let map = |key| metadata.get(key).and_then(Value::as_object);
    if map("labels").is_some_and(|labels| labels.contains_key(CONTROL_PLANE_LABEL)) {
        return;
    }
    let inject = map("annotations").and_then(|map| map.get(Annotation::Inject.key()));
    let inject = inject.and_then(Value::as_str).filter(|value| *value != "disabled");
    removed.inject = inject.map(str::to_owned).or(removed.inject.take());
    for &list in lists {
        let Some(map) = metadata.get_mut(list).and_then(Value::as_object_mut) else { continue };
        let before = map.len();
        map.retain(|key, value| {
            let opts_out = key == Annotation::Inject.key() && value == "disabled";
            opts_out || !key.starts_with(PREFIX)
        });
        if map.len() < before {
            removed.metadata = true;
            removed.kept.extend(settings(map));
            remove_empty(metadata, list);
        }
    }
}

fn settings(map: &Map<String, Value>) -> impl Iterator<Item = String> {
    let is_setting = |key: &&String| {
        key.strip_prefix(SETTINGS_PREFIX).is_some_and(|rest| {
            ["", "alpha.", "beta."]
                .iter()
                .any(|level| rest.strip_prefix(level).is_some_and(|rest| rest.starts_with(PREFIX)))
        })
    };
    map.keys().filter(is_setting).cloned()
}

fn remove_named(spec: &mut Value, list: &str, names: &[&str]) -> bool {
    let Some(items) = spec.get_mut(list).and_then(Value::as_array_mut) else { return false };
    let before = items.len();
    items.retain(|item| !is_named(item, names));
    let removed = items.len() < before;
    if removed {
        remove_empty(spec, list);
    }
    removed
}

fn is_named(item: &Value, names: &[&str]) -> bool {
    item.get("name").and_then(Value::as_str).is_some_and(|name| names.contains(&name))
}

fn remove_empty(parent: &mut Value, key: &str) {
    let Some(parent) = parent.as_object_mut() else { return };
    let is_empty = match parent.get(key) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    };
    if is_empty {
        parent.shift_remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::linkerd::{
        snapshot::Config, trust_roots::EXAMPLE_TRUST_ROOTS, values::DEFAULT_VALUES,
    };

    fn uninject(object: &mut Value, kind: Kind) -> Removed {
        let config = Config {
            values: DEFAULT_VALUES,
            trust_roots: EXAMPLE_TRUST_ROOTS,
            control_plane_namespace: "linkerd",
            fallback_release: None,
        };
        super::uninject(&Snapshot::new(config, 1).expect("values"), object, kind)
    }

    #[test]
    fn what_injection_adds_is_removed_and_the_rest_stays() {
        let mut object = json!({
            "metadata": {"name": "web", "labels": {"linkerd.io/workload-ns": "a"}},
            "spec": {"template": {
                "metadata": {"annotations": {
                    "linkerd.io/inject": "enabled",
                    "linkerd.io/created-by": "x",
                    "config.linkerd.io/proxy-cpu-request": "1",
                    "example.com/a": "b",
                }},
                "spec": {
                    "initContainers": [{"name": "linkerd-init"}],
                    "containers": [{"name": "linkerd-proxy"}, {"name": "web"}],
                    "volumes": [{"name": "mine"}, {"name": "linkerd-identity-token"}],
                },
            }},
        });
        let kind = Kind::Workload("deployment");
        assert!(has_sidecar(&object, kind));
        let removed = uninject(&mut object, kind);
        assert_eq!(removed.inject.as_deref(), Some("enabled"));
        assert_eq!(removed.kept, ["config.linkerd.io/proxy-cpu-request"]);
        assert!(removed.sidecar && removed.metadata);
        let expected = json!({
            "metadata": {"name": "web"},
            "spec": {"template": {
                "metadata": {"annotations": {
                    "config.linkerd.io/proxy-cpu-request": "1",
                    "example.com/a": "b",
                }},
                "spec": {"containers": [{"name": "web"}], "volumes": [{"name": "mine"}]},
            }},
        });
        assert_eq!(object, expected);
        assert!(uninject(&mut object, kind).is_nothing());
    }

    #[test]
    fn an_opt_out_and_the_labels_of_the_control_plane_stay() {
        let pod = |labels: Value| json!({"metadata": {"annotations": {"linkerd.io/inject": "disabled"}, "labels": labels}});
        for labels in [
            json!({}),
            json!({"linkerd.io/control-plane-component": "identity", "linkerd.io/x": "y"}),
        ] {
            let mut object = pod(labels.clone());
            let is_component = !labels.as_object().is_some_and(Map::is_empty);
            assert_eq!(is_control_plane(&object, Kind::Pod), is_component);
            assert!(uninject(&mut object, Kind::Pod).is_nothing());
            assert_eq!(object, pod(labels));
        }
    }

    #[test]
    fn opaque_ports_go_if_injection_would_write_them() {
        let service = |ports: &str| {
            json!({"metadata": {"annotations": {"config.linkerd.io/opaque-ports": ports}},
                "spec": {"ports": [{"port": 3306}, {"port": 80}]}})
        };
        let mut object = service("3306");
        let removed = uninject(&mut object, Kind::Service);
        assert_eq!(removed.opaque_ports.as_deref(), Some("3306"));
        assert!(object.get("metadata").is_none());
        let mut object = service("80");
        assert!(uninject(&mut object, Kind::Service).is_nothing());
        assert_eq!(object, service("80"));
    }
}
