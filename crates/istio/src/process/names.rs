//! Names of containers, annotations and variables that the steps read and write.

/// The proxy's container.
pub(crate) const PROXY: &str = "istio-proxy";
/// The init container that captures traffic.
pub(crate) const INIT: &str = "istio-init";
/// The init container that checks that the CNI plugin captures traffic.
pub(crate) const VALIDATION: &str = "istio-validation";
/// The init container that turns core dumps on.
pub(crate) const CORE_DUMP: &str = "enable-core-dump";

/// What was injected, as JSON. The injector writes it.
pub(crate) const STATUS_ANNOTATION: &str = "sidecar.istio.io/status";
/// The user's versions of injected containers, as JSON. The injector writes it.
pub(crate) const OVERRIDES_ANNOTATION: &str = "proxy.istio.io/overrides";
/// How traffic is captured: `REDIRECT`, `TPROXY` or `NONE`. Users set it.
pub(crate) const INTERCEPTION_MODE_ANNOTATION: &str = "sidecar.istio.io/interceptionMode";
/// Whether the proxy is a native sidecar: `true` or `false`. Users set it.
pub(crate) const NATIVE_SIDECAR_ANNOTATION: &str = "sidecar.istio.io/nativeSidecar";
/// Whether probes are rewritten, a boolean. Users and templates set it.
pub(crate) const REWRITE_PROBES_ANNOTATION: &str = "sidecar.istio.io/rewriteAppHTTPProbers";
/// The port that rewritten probes call; the mesh's status port by default. Users set it.
pub(crate) const STATUS_PORT_ANNOTATION: &str = "status.sidecar.istio.io/port";
/// Whether metrics are merged, a boolean; the mesh's setting by default. Users set it.
pub(crate) const MERGE_METRICS_ANNOTATION: &str = "prometheus.istio.io/merge-metrics";
/// The port under which merged metrics are served with TLS. The injector sets it.
pub(crate) const SECURE_PORT_ANNOTATION: &str = "prometheus.istio.io/secure-port";

/// The network of the pod. The injector sets it if the network is known.
pub(crate) const NETWORK_LABEL: &str = "topology.istio.io/network";

/// The variable with the network.
pub(crate) const NETWORK_VARIABLE: &str = "ISTIO_META_NETWORK";
/// The variable with the original probes, as JSON.
pub(crate) const PROBERS_VARIABLE: &str = "ISTIO_KUBE_APP_PROBERS";
/// The variable with the original annotations of Prometheus, as JSON.
pub(crate) const PROMETHEUS_VARIABLE: &str = "ISTIO_PROMETHEUS_ANNOTATIONS";
/// The variable with the port of merged metrics with TLS.
pub(crate) const SECURE_PORT_VARIABLE: &str = "ENVOY_SECURE_MERGED_METRICS_PORT";
