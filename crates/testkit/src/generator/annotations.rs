//! Annotations of pods, workloads and namespaces: all of L§2.1, and some that Linkerd does not
//! read.

use serde_json::{Map, Value};

use super::random::Random;
use super::shapes::Shape;
use super::texts;

/// All annotations that some release reads.
pub const ANNOTATIONS: &[(&str, Shape)] = &[
    ("config.linkerd.io/proxy-image", Shape::Name),
    ("config.linkerd.io/proxy-version", Shape::Version),
    ("config.linkerd.io/image-pull-policy", Shape::PullPolicy),
    ("config.linkerd.io/init-image", Shape::Name),
    ("config.linkerd.io/init-image-version", Shape::Version),
    ("config.linkerd.io/control-port", Shape::Port),
    ("config.linkerd.io/inbound-port", Shape::Port),
    ("config.linkerd.io/admin-port", Shape::Port),
    ("config.linkerd.io/outbound-port", Shape::Port),
    ("config.linkerd.io/pod-inbound-ports", Shape::Ports),
    ("config.linkerd.io/proxy-admin-shutdown", Shape::Switch),
    ("config.linkerd.io/proxy-log-level", Shape::LogLevel),
    ("config.linkerd.io/proxy-log-format", Shape::LogFormat),
    ("config.linkerd.io/proxy-log-http-headers", Shape::Headers),
    ("config.linkerd.io/proxy-require-identity-inbound-ports", Shape::Ports),
    ("config.linkerd.io/proxy-metrics-hostname-labels", Shape::Boolean),
    ("config.linkerd.io/proxy-outbound-connect-timeout", Shape::Duration),
    ("config.linkerd.io/proxy-inbound-connect-timeout", Shape::Duration),
    ("config.linkerd.io/proxy-outbound-discovery-cache-unused-timeout", Shape::Duration),
    ("config.linkerd.io/proxy-inbound-discovery-cache-unused-timeout", Shape::Duration),
    ("config.linkerd.io/proxy-disable-outbound-protocol-detect-timeout", Shape::Boolean),
    ("config.linkerd.io/proxy-disable-inbound-protocol-detect-timeout", Shape::Boolean),
    ("config.linkerd.io/shutdown-grace-period", Shape::Duration),
    ("config.linkerd.io/enable-gateway", Shape::Boolean),
    ("config.alpha.linkerd.io/proxy-wait-before-exit-seconds", Shape::Unsigned),
    ("config.linkerd.io/proxy-enable-native-sidecar", Shape::Boolean),
    ("config.beta.linkerd.io/proxy-enable-native-sidecar", Shape::Boolean),
    ("config.alpha.linkerd.io/proxy-enable-native-sidecar", Shape::Boolean),
    ("config.linkerd.io/proxy-cpu-request", Shape::Quantity),
    ("config.linkerd.io/proxy-cpu-limit", Shape::Quantity),
    ("config.linkerd.io/proxy-cpu-ratio-limit", Shape::Ratio),
    ("config.linkerd.io/proxy-memory-request", Shape::Quantity),
    ("config.linkerd.io/proxy-memory-limit", Shape::Quantity),
    ("config.linkerd.io/proxy-ephemeral-storage-request", Shape::Quantity),
    ("config.linkerd.io/proxy-ephemeral-storage-limit", Shape::Quantity),
    ("config.linkerd.io/proxy-uid", Shape::Integer),
    ("config.linkerd.io/proxy-gid", Shape::Integer),
    ("config.linkerd.io/enable-external-profiles", Shape::Boolean),
    ("config.linkerd.io/skip-inbound-ports", Shape::Ports),
    ("config.linkerd.io/skip-outbound-ports", Shape::Ports),
    ("config.linkerd.io/opaque-ports", Shape::OpaquePorts),
    ("config.linkerd.io/debug-image", Shape::Name),
    ("config.linkerd.io/debug-image-version", Shape::Version),
    ("config.linkerd.io/debug-image-pull-policy", Shape::PullPolicy),
    ("config.linkerd.io/proxy-await", Shape::Switch),
    ("config.linkerd.io/default-inbound-policy", Shape::Policy),
    ("config.linkerd.io/skip-subnets", Shape::Subnets),
    ("config.linkerd.io/access-log", Shape::AccessLog),
    ("config.linkerd.io/enable-debug-sidecar", Shape::Boolean),
    ("config.linkerd.io/close-wait-timeout", Shape::Duration),
    ("config.linkerd.io/proxy-additional-env", Shape::EnvJson),
    ("resource.opentelemetry.io/service.name", Shape::Name),
    ("resource.opentelemetry.io/k8s.pod.ip", Shape::Name),
    ("resource.opentelemetry.io/", Shape::Name),
    ("resource.opentelemetry.io/a/b", Shape::LogLevel),
];

/// Annotations that affect many other settings, with the minimum percentage of cases that have
/// them.
const OFTEN: &[(&str, Shape, usize)] = &[
    ("config.linkerd.io/enable-debug-sidecar", Shape::Boolean, 8),
    ("config.linkerd.io/debug-image", Shape::Name, 8),
    ("config.linkerd.io/opaque-ports", Shape::OpaquePorts, 12),
    ("config.linkerd.io/proxy-additional-env", Shape::EnvJson, 8),
];

/// Annotations that Linkerd does not read; some differ from a real key by one letter.
const OTHERS: &[&str] = &[
    "linkerd.io/created-by",
    "linkerd.io/proxy-version",
    "linkerd.io/trust-root-sha256",
    "config.linkerd.io/invalid-key",
    "config.linkerd.io/Proxy-Image",
    "config.alpha.linkerd.io/proxy-image",
    "viz.linkerd.io/tap-enabled",
    "kubectl.kubernetes.io/restartedAt",
    "prometheus.io/scrape",
    "plain",
    "",
    "a/b/c",
    "managedFields",
];

/// `linkerd.io/inject`.
pub const INJECT: &str = "linkerd.io/inject";

/// The object that has the annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A namespace.
    Namespace,
    /// A pod or a pod template.
    Pod,
    /// A workload, in addition to its template.
    Workload,
}

/// Some annotations of a layer.
pub fn map(random: &mut Random, layer: Layer) -> Map<String, Value> {
    let mut map = Map::new();
    let (chance, enabled) = match layer {
        Layer::Namespace => (85, 80),
        Layer::Pod => (40, 70),
        Layer::Workload => (15, 0),
    };
    if random.percent(chance) {
        let enabled = random.percent(enabled);
        let text = if enabled { "enabled".to_owned() } else { Shape::Inject.text(random) };
        map.insert(INJECT.into(), text.into());
    }
    let most = random.pick(&[0, 1, 2, 4, 4, 12]);
    for _ in 0..random.below(most + 1) {
        let (key, shape) = random.pick(ANNOTATIONS);
        map.insert(key.to_owned(), shape.text(random).into());
    }
    for (key, shape, chance) in OFTEN {
        if layer != Layer::Workload && random.percent(*chance) {
            map.insert((*key).to_owned(), shape.text(random).into());
        }
    }
    if random.percent(30) {
        let key = random.pick(OTHERS);
        map.insert(key.to_owned(), texts::ugly(random).into());
    }
    if layer != Layer::Namespace && random.percent(2) {
        let key = random.pick(ANNOTATIONS).0;
        let value = if random.percent(80) { Value::Null } else { 7.into() };
        map.insert(key.to_owned(), value);
    }
    map
}
