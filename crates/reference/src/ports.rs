//! L§2.5: opaque ports and the list of a pod's ports.

use injectd_gocompat::number;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Context;
use super::annotations::carries;
use super::json::IntOrName;
use super::object::{Container, PodSpec};
use super::release::Release;

/// Where a service account's token is mounted.
pub(super) const SERVICE_ACCOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

const OPAQUE_PORTS: &str = "config.linkerd.io/opaque-ports";

/// The containers whose ports are used. Since 25.12.2, init containers are included, and come
/// first.
fn counted(release: Release, spec: &PodSpec) -> Vec<&Container> {
    let init = spec.init_containers.iter();
    let init = init.filter(|_| release.since((25, 12, 2)));
    init.chain(&spec.containers).collect()
}

/// The default list reduced to the pod's ports: matched as text, in the order of the ports.
pub(super) fn default_opaque_ports(context: &Context<'_>) -> Option<String> {
    let (_, spec) = context.workload.pod.as_ref()?;
    let defaults = context.values.text("proxy.opaquePorts");
    let defaults: Vec<_> = defaults.split(',').collect();
    let ports: Vec<_> = counted(context.release, spec)
        .into_iter()
        .flat_map(|container| &container.ports)
        .map(|(_, port)| port.to_string())
        .filter(|port| defaults.contains(&port.as_str()))
        .collect();
    (!ports.is_empty()).then(|| ports.join(","))
}

/// The default list reduced to a Service's ports, by their target.
fn default_service_ports(context: &Context<'_>) -> Option<String> {
    let defaults = context.values.text("proxy.opaquePorts");
    let defaults: Vec<_> = defaults.split(',').collect();
    let ports: Vec<_> = context
        .workload
        .service_ports
        .iter()
        .filter(|(port, target)| {
            let matched = match target {
                None | Some(IntOrName::Int(0)) => port.to_string(),
                Some(IntOrName::Int(target)) => target.to_string(),
                Some(IntOrName::Name) => "0".to_owned(),
            };
            defaults.contains(&matched.as_str())
        })
        .map(|(port, _)| port.to_string())
        .collect();
    (!ports.is_empty()).then(|| ports.join(","))
}

/// T§1: the annotation-only patch, for objects that are not injected.
pub(super) fn opaque_ports_patch(context: &Context<'_>) -> Option<Vec<Value>> {
    let workload = &context.workload;
    if carries(workload, OPAQUE_PORTS) {
        return None;
    }
    let inherited = context.namespace_annotations.get(OPAQUE_PORTS).cloned();
    let ports = match inherited {
        Some(ports) => Some(ports),
        None if workload.kind == "pod" => default_opaque_ports(context).map(Value::from),
        None if workload.kind == "service" => default_service_ports(context).map(Value::from),
        None => None,
    }?;
    let mut patch = Vec::new();
    if workload.meta.no_annotations {
        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    let annotation = "/metadata/annotations/config.linkerd.io~1opaque-ports";
    patch.push(json!({"op": "add", "path": annotation, "value": ports}));
    Some(patch)
}

/// Resolves the opaque-ports override: replaces names, checks ranges, and drops invalid items.
pub(super) fn resolve_opaque_ports(context: &Context<'_>, text: &str) -> String {
    let Some((_, spec)) = &context.workload.pod else {
        return String::new();
    };
    let named = counted(context.release, spec);
    let text = text.strip_suffix(',').unwrap_or(text);
    let items: Vec<_> = text
        .split(',')
        .filter_map(|item| {
            let item = item.trim();
            let named = named_port(context.release, &named, item);
            named.map(|port| port.to_string()).or_else(|| port_range(item))
        })
        .collect();
    items.join(",")
}

/// A port by its name. The last port of a name wins since 24.4.2; before, the first one wins and
/// ports without a name have the empty name (L§7-7).
fn named_port(release: Release, containers: &[&Container], name: &str) -> Option<i32> {
    let ports = containers.iter().flat_map(|container| &container.ports);
    let mut matching = ports.filter(|(port_name, _)| port_name == name);
    let port = if release.since((24, 4, 2)) {
        matching.next_back().filter(|_| !name.is_empty())
    } else {
        matching.next()
    };
    port.map(|(_, port)| *port)
}

/// `a` or `a-b`, each from 0 to 65535, in the short form.
fn port_range(item: &str) -> Option<String> {
    let bound = |text: &str| {
        let port = number::parse_int(text, 64)?;
        (0..=65535).contains(&port).then_some(port)
    };
    let bounds: Vec<_> = item.split('-').collect();
    match bounds.as_slice() {
        [port] => Some(bound(port)?.to_string()),
        [lower, upper] => {
            let (lower, upper) = (bound(lower)?, bound(upper)?);
            match upper.cmp(&lower) {
                Ordering::Less => None,
                Ordering::Equal => Some(lower.to_string()),
                Ordering::Greater => Some(format!("{lower}-{upper}")),
            }
        }
        _ => None,
    }
}

/// `LINKERD2_PROXY_INBOUND_PORTS`: container ports and numeric probe ports, sorted as text.
pub(super) fn inbound_ports(context: &Context<'_>) -> String {
    let Some((_, spec)) = &context.workload.pod else {
        return String::new();
    };
    let mut ports = BTreeSet::new();
    for container in counted(context.release, spec) {
        let declared = container.ports.iter().map(|(_, port)| port);
        ports.extend(declared.chain(&container.probe_ports).map(i32::to_string));
    }
    ports.into_iter().collect::<Vec<_>>().join(",")
}
