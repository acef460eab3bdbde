//! T§8: annotations and labels of the patch, and L§2.1: inherited annotations.

use std::fmt::Write;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::object::Workload;
use super::release::{Edge, Release};
use super::{Context, owner, ports};

const ALWAYS: Edge = (0, 0, 0);
const NEVER: Edge = (u32::MAX, 0, 0);
/// The only one of these changes that is back-ported to stable-2.14.
const DETECT_TIMEOUT: Edge = (23, 11, 1);

/// L§2.1, column ns: the keys that pods inherit from the namespace, with the releases.
const INHERITED: &[(&str, Edge, Edge)] = &[
    ("linkerd.io/inject", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-image", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-version", ALWAYS, NEVER),
    ("config.linkerd.io/image-pull-policy", ALWAYS, NEVER),
    ("config.linkerd.io/init-image", ALWAYS, (25, 11, 3)),
    ("config.linkerd.io/init-image-version", ALWAYS, (25, 11, 3)),
    ("config.linkerd.io/control-port", ALWAYS, NEVER),
    ("config.linkerd.io/inbound-port", ALWAYS, NEVER),
    ("config.linkerd.io/admin-port", ALWAYS, NEVER),
    ("config.linkerd.io/outbound-port", ALWAYS, NEVER),
    ("config.linkerd.io/pod-inbound-ports", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-admin-shutdown", (24, 6, 2), NEVER),
    ("config.linkerd.io/proxy-log-level", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-log-format", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-log-http-headers", (24, 6, 2), NEVER),
    ("config.linkerd.io/proxy-require-identity-inbound-ports", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-metrics-hostname-labels", (25, 3, 4), NEVER),
    ("config.linkerd.io/proxy-outbound-connect-timeout", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-inbound-connect-timeout", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-outbound-discovery-cache-unused-timeout", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-inbound-discovery-cache-unused-timeout", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-disable-outbound-protocol-detect-timeout", DETECT_TIMEOUT, NEVER),
    ("config.linkerd.io/proxy-disable-inbound-protocol-detect-timeout", DETECT_TIMEOUT, NEVER),
    ("config.linkerd.io/shutdown-grace-period", ALWAYS, NEVER),
    ("config.alpha.linkerd.io/proxy-wait-before-exit-seconds", ALWAYS, NEVER),
    ("config.alpha.linkerd.io/proxy-enable-native-sidecar", (23, 11, 4), NEVER),
    ("config.beta.linkerd.io/proxy-enable-native-sidecar", (25, 10, 2), (26, 5, 2)),
    ("config.linkerd.io/proxy-enable-native-sidecar", (26, 5, 2), NEVER),
    ("config.linkerd.io/proxy-cpu-request", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-cpu-limit", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-memory-request", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-memory-limit", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-ephemeral-storage-request", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-ephemeral-storage-limit", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-uid", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-gid", (24, 5, 4), NEVER),
    ("config.linkerd.io/enable-external-profiles", ALWAYS, NEVER),
    ("config.linkerd.io/skip-inbound-ports", ALWAYS, NEVER),
    ("config.linkerd.io/skip-outbound-ports", ALWAYS, NEVER),
    ("config.linkerd.io/opaque-ports", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-await", ALWAYS, NEVER),
    ("config.linkerd.io/default-inbound-policy", ALWAYS, NEVER),
    ("config.linkerd.io/skip-subnets", ALWAYS, NEVER),
    ("config.linkerd.io/access-log", ALWAYS, NEVER),
    ("config.linkerd.io/enable-debug-sidecar", ALWAYS, NEVER),
    ("config.linkerd.io/proxy-additional-env", (26, 4, 3), NEVER),
];

/// The keys that pods inherit from the namespace in this release.
pub fn inherited(release: Release) -> impl Iterator<Item = &'static str> {
    let since = move |edge: Edge| match edge {
        DETECT_TIMEOUT => release.since_or_stable(edge),
        _ => release.since(edge),
    };
    let known = INHERITED.iter().filter(move |(_, from, until)| since(*from) && !since(*until));
    known.map(|(key, _, _)| *key)
}

/// Whether the pod (template) or the workload has the key.
pub fn carries(workload: &Workload, key: &str) -> bool {
    let pod = workload.pod.as_ref();
    pod.is_some_and(|(meta, _)| meta.annotations.contains_key(key))
        || workload.meta.annotations.contains_key(key)
}

/// Whether another value prevents the inheritance of the namespace's. The inject annotation of a
/// template does not prevent it (L§2.1).
fn keeps(workload: &Workload, key: &str) -> bool {
    match key {
        "linkerd.io/inject" if workload.kind != "pod" => {
            workload.meta.annotations.contains_key(key)
        }
        _ => carries(workload, key),
    }
}

/// T§8.1 without the two keys that overrides do not read: the annotations to add to the pod.
pub fn added(context: &Context<'_>) -> Map<String, Value> {
    let mut added = Map::new();
    let version = context.values.text("linkerdVersion");
    let by = format!("linkerd/proxy-injector {version}");
    added.insert("linkerd.io/created-by".into(), by.into());
    for key in inherited(context.release) {
        if let Some(value) = context.namespace_annotations.get(key)
            && !keeps(&context.workload, key)
        {
            added.insert(key.into(), value.clone());
        }
    }
    let opaque = "config.linkerd.io/opaque-ports";
    if !carries(&context.workload, opaque)
        && !added.contains_key(opaque)
        && let Some(ports) = ports::default_opaque_ports(context)
    {
        added.insert(opaque.into(), ports.into());
    }
    added
}

/// T§8.1: all annotations of the patch, in byte order.
pub fn written(context: &Context<'_>, mut added: Map<String, Value>) -> Vec<(String, Value)> {
    let values = &context.values;
    let version = values.set_text("proxy.image.version");
    let version = version.unwrap_or_else(|| values.text("linkerdVersion"));
    added.insert("linkerd.io/proxy-version".into(), version.into());
    let mut digest = String::new();
    for byte in Sha256::digest(context.trust_roots) {
        write!(digest, "{byte:02x}").expect("writing to a string must succeed");
    }
    added.insert("linkerd.io/trust-root-sha256".into(), digest.into());
    sorted(added)
}

/// T§8.2: all labels of the patch, in byte order.
pub fn labels(context: &Context<'_>) -> Vec<(String, Value)> {
    let mut labels = Map::new();
    let namespace = context.control_plane_namespace;
    labels.insert("linkerd.io/control-plane-ns".into(), namespace.into());
    let workload = &context.workload;
    labels.insert("linkerd.io/workload-ns".into(), workload.meta.namespace.clone().into());
    let own = (workload.kind.clone(), workload.meta.name.clone());
    let (kind, name) = context.owner.clone().unwrap_or(own);
    let key = match kind.as_str() {
        "cronjob" if workload.kind == "cronjob" => Some("linkerd.io/proxy-cronjob".to_owned()),
        _ => owner::label(&kind),
    };
    if let Some(key) = key {
        labels.insert(key, name.into());
    }
    sorted(labels)
}

fn sorted(map: Map<String, Value>) -> Vec<(String, Value)> {
    let mut entries: Vec<_> = map.into_iter().collect();
    entries.sort_by(|(one, _), (other, _)| one.as_bytes().cmp(other.as_bytes()));
    entries
}
