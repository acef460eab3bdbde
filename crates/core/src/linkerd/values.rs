//! The values of a Linkerd installation, from the `ConfigMap` `linkerd-config`, as types.
//!
//! Contains only the keys that the renderer reads (`docs/spec/linkerd/template.md` §9). Optional
//! sections have defaults; other missing keys have the zero value.
//!
//! Each row of `values!` is a field, its type, and its path in the YAML. More words may follow:
//! - `as i32`: the number must fit in 32 bits.
//! - `since Change`, `until Change`: releases before that [`Delta`], or from it on, ignore the key.
//! - `or default`: the value of a missing section. A section is required if it is neither followed
//!   by `or` nor an `Option`.
//! - `by function`, in place of the path: the function that reads the field.
//!
//! Overrides of pods are in [`super::settings`].

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    env_var::EnvVar,
    release::{Delta, Release, ReleaseChoice},
};
use crate::yaml;

pub(crate) mod read;
pub(crate) mod show;
pub(crate) mod tree;

mod parameters;

use read::{Field, values};
use show::{Show, Shown};
use tree::Section;

type Result<T> = std::result::Result<T, ValuesError>;

/// Why the values are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// Not YAML.
    #[error("not valid YAML: {0}")]
    Syntax(String),
    /// The whole `ConfigMap`, and not a key of it.
    #[error(
        "expected the key values of the ConfigMap linkerd-config, found a whole ConfigMap; write \
         only the text of the key into the file"
    )]
    ConfigMap,
    /// A required key is missing.
    #[error("{0}: missing; use the complete values of a Linkerd installation")]
    Missing(String),
    /// A value has the wrong type.
    #[error("{key}: expected {expected}, found {found}")]
    Type {
        /// Path of the key, joined with dots.
        key: String,
        /// The expected type.
        expected: &'static str,
        /// The value that was found.
        found: String,
    },
}

/// The built-in values: those of an installation of the newest release.
pub const DEFAULT_VALUES: &str = include_str!("values/default.yaml");

values! {
    /// The values of a Linkerd installation. Field names are those of the YAML.
    pub struct Values {
        linkerd_version: String = "linkerdVersion",
        cluster_domain: String = "clusterDomain",
        cluster_networks: String = "clusterNetworks",
        identity_trust_domain: String = "identityTrustDomain",
        image_pull_policy: String = "imagePullPolicy",
        cni_enabled: bool = "cniEnabled",
        disable_ipv6: bool = "disableIPv6" since InitIpv6,
        proxy: Proxy = "proxy",
        proxy_init: ProxyInit = "proxyInit",
        network_validator: Option<NetworkValidator> = "networkValidator",
        debug_image: Image = "debugContainer.image"
            or Image { name: "cr.l5d.io/linkerd/debug".to_owned(), ..Image::default() },
        /// `identity.serviceAccountTokenProjection`; `None` when the section is missing.
        token_projection: Option<bool> = by read::token_projection,
    }

    /// `proxy`.
    pub struct Proxy {
        image: Image = "image",
        enable_external_profiles: bool = "enableExternalProfiles",
        outbound_connect_timeout: String = "outboundConnectTimeout",
        inbound_connect_timeout: String = "inboundConnectTimeout",
        outbound_discovery_cache_unused_timeout: String = "outboundDiscoveryCacheUnusedTimeout",
        inbound_discovery_cache_unused_timeout: String = "inboundDiscoveryCacheUnusedTimeout",
        disable_outbound_protocol_detect_timeout: bool = "disableOutboundProtocolDetectTimeout"
            since DetectTimeout,
        disable_inbound_protocol_detect_timeout: bool = "disableInboundProtocolDetectTimeout"
            since DetectTimeout,
        enable_shutdown_endpoint: bool = "enableShutdownEndpoint" since ShutdownEndpoint,
        log_level: String = "logLevel",
        log_format: String = "logFormat",
        log_http_headers: String = "logHTTPHeaders" since LogWithoutHeaders,
        ports: Option<Ports> = "ports",
        cores: i64 = "cores",
        workers: Workers = "runtime.workers" since Workers or Workers::default(),
        resources: Resources = "resources"
            or Resources { is_missing: true, ..Resources::default() },
        uid: i64 = "uid",
        gid: i64 = "gid" since Gid,
        security_context: Option<Map<String, Value>> = "securityContext" since SecurityContexts,
        capabilities: Option<CapabilityLists> = "capabilities",
        sa_mount_path: Option<Mount> = "saMountPath",
        wait_before_exit_seconds: u64 = "waitBeforeExitSeconds",
        r#await: bool = "await",
        is_gateway: bool = "isGateway",
        is_ingress: bool = "isIngress",
        require_identity_on_inbound_ports: String = "requireIdentityOnInboundPorts",
        /// Set by an annotation only; may be empty.
        pod_inbound_ports: Option<String> = by read::unset,
        opaque_ports: String = "opaquePorts",
        shutdown_grace_period: String = "shutdownGracePeriod",
        access_log: String = "accessLog",
        default_inbound_policy: String = "defaultInboundPolicy",
        native_sidecar: bool = "nativeSidecar" since NativeSidecar,
        liveness_probe: Probe = "livenessProbe" since ProbesFromValues
            or Probe { initial_delay_seconds: 10, timeout_seconds: 1 },
        readiness_probe: Probe = "readinessProbe" since ProbesFromValues
            or Probe { initial_delay_seconds: 2, timeout_seconds: 1 },
        startup_probe: StartupProbe = "startupProbe" since NativeSidecar
            or StartupProbe { initial_delay_seconds: 0, period_seconds: 1, failure_threshold: 120 },
        control_streams: ControlStreams = "control.streams" since ControlStreams
            or ControlStreams::default(),
        hostname_labels: bool = "metrics.hostnameLabels" since HostnameLabels,
        tracing: Tracing = "tracing" since Tracing or Tracing::default(),
        /// Variables for `proxy.inbound` and `proxy.outbound`: name and value.
        parameters: Vec<(String, Option<String>)> = by parameters::read since Parameters,
        additional_env: Vec<EnvVar> = "additionalEnv" since AdditionalEnv,
        experimental_env: Vec<EnvVar> = "experimentalEnv" since ExperimentalEnv,
    }

    /// `proxyInit`.
    pub struct ProxyInit {
        image: Option<Image> = "image" until InitUsesProxyImage,
        iptables_mode: String = "iptablesMode",
        ignore_inbound_ports: String = "ignoreInboundPorts",
        ignore_outbound_ports: String = "ignoreOutboundPorts",
        skip_subnets: String = "skipSubnets",
        log_level: String = "logLevel",
        log_format: String = "logFormat",
        close_wait_timeout_secs: i64 = "closeWaitTimeoutSecs",
        privileged: bool = "privileged",
        run_as_root: bool = "runAsRoot",
        run_as_user: i64 = "runAsUser",
        run_as_group: i64 = "runAsGroup" since Gid,
        xt_mount_path: Option<Mount> = "xtMountPath",
        capabilities: CapabilityLists = "capabilities" or CapabilityLists::default(),
        resources: Resources = "resources" until SharedResources
            or Resources::of_old_init_container(),
    }

    /// `networkValidator`.
    pub struct NetworkValidator {
        log_level: String = "logLevel",
        log_format: String = "logFormat",
        connect_addr: String = "connectAddr",
        listen_addr: String = "listenAddr",
        timeout: String = "timeout",
        enable_security_context: bool = "enableSecurityContext" until SecurityContexts,
        security_context: Option<Map<String, Value>> = "securityContext" since SecurityContexts,
    }

    /// An image and its pull policy; version and policy may be empty.
    #[derive(Default, Eq)]
    pub struct Image {
        name: String = "name",
        version: String = "version",
        pull_policy: String = "pullPolicy",
    }

    /// `proxy.ports`.
    #[derive(Copy, Eq)]
    pub struct Ports {
        admin: i64 = "admin" as i32,
        control: i64 = "control" as i32,
        inbound: i64 = "inbound" as i32,
        outbound: i64 = "outbound" as i32,
    }

    /// `proxy.runtime.workers`; 0 is unset.
    #[derive(Copy, Default)]
    pub struct Workers {
        minimum: i64 = "minimum",
        maximum: i64 = "maximum",
        maximum_cpu_ratio: f64 = "maximumCPURatio",
    }

    /// A `resources` section: quantities as they were written.
    #[derive(Default, Eq)]
    pub struct Resources {
        /// Whether the section is missing from the values and no override sets any of it.
        is_missing: bool = by read::unset,
        cpu: Constraints = "cpu" or Constraints::default(),
        memory: Constraints = "memory" or Constraints::default(),
        ephemeral_storage: Constraints = "ephemeral-storage" or Constraints::default(),
    }

    /// A limit and a request; empty is unset.
    #[derive(Default, Eq)]
    pub struct Constraints {
        limit: String = "limit",
        request: String = "request",
    }

    /// Linux capabilities.
    #[derive(Default, Eq)]
    pub struct CapabilityLists {
        add: Vec<String> = "add",
        drop: Vec<String> = "drop",
    }

    /// A mount of a volume.
    #[derive(Eq)]
    pub struct Mount {
        name: String = "name",
        mount_path: String = "mountPath",
        read_only: bool = "readOnly",
    }

    /// Seconds of a liveness or readiness probe.
    #[derive(Copy, Eq)]
    pub struct Probe {
        initial_delay_seconds: u64 = "initialDelaySeconds",
        timeout_seconds: u64 = "timeoutSeconds",
    }

    /// Seconds of the startup probe.
    #[derive(Copy, Eq)]
    pub struct StartupProbe {
        initial_delay_seconds: u64 = "initialDelaySeconds",
        period_seconds: u64 = "periodSeconds",
        failure_threshold: u64 = "failureThreshold",
    }

    /// `proxy.control.streams`.
    #[derive(Default, Eq)]
    pub struct ControlStreams {
        initial_timeout: String = "initialTimeout",
        idle_timeout: String = "idleTimeout",
        lifetime: String = "lifetime",
    }

    /// `proxy.tracing`.
    #[derive(Default, Eq)]
    pub struct Tracing {
        /// `enabled`, in older releases `enable`.
        enabled: bool = by read::tracing_enabled,
        protocol: String = "protocol",
        trace_service_name: String = "traceServiceName",
        /// Sorted by key.
        labels: Vec<(String, String)> = "labels" since TracingLabels,
        collector_endpoint: String = "collector.endpoint",
        collector_service_account: String = "collector.meshIdentity.serviceAccountName",
        collector_namespace: String = "collector.meshIdentity.namespace" since TracingEnabled,
    }
}

/// Parses the YAML text of the key `values`.
///
/// # Errors
/// The text is not valid YAML, or it is that of the whole `ConfigMap`.
pub fn parse_tree(text: &str) -> Result<Value> {
    let tree = yaml::parse(text).map_err(ValuesError::Syntax)?;
    // No value of Linkerd's charts has this key.
    if tree.get("kind").is_some_and(|kind| kind == "ConfigMap") {
        return Err(ValuesError::ConfigMap);
    }
    Ok(tree)
}

/// The release to use for the values, as [`ReleaseChoice::new`] chooses it from their version,
/// `fallback` and the marker keys.
#[must_use]
pub fn release_of(tree: &Value, fallback: Option<Release>) -> ReleaseChoice {
    let version = match tree.get("linkerdVersion") {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(version)) => Cow::Borrowed(version.as_str()),
        Some(other) => Cow::Owned(other.to_string()),
    };
    ReleaseChoice::new(&version, fallback, || {
        Release::of_markers(|key| {
            key.iter().try_fold(tree, |section, key| section.get(key)).is_some()
        })
    })
}

// === impl Values ===

impl Values {
    /// Reads a tree with the keys and types of a release.
    ///
    /// # Errors
    /// The first required key that is missing, or the first value of the wrong type.
    pub fn from_tree(tree: &Value, release: Release) -> Result<Self> {
        let root = Section::root(tree, release)?;
        if !root.has("identityTrustDomain") {
            return Err(ValuesError::Missing("identityTrustDomain".to_owned()));
        }
        Self::of(&root)
    }

    /// The trust domain; the default is the cluster's domain.
    #[must_use]
    pub fn trust_domain(&self) -> &str {
        if_set(&self.identity_trust_domain, &self.cluster_domain)
    }
}

/// `text`, or `other` if `text` is empty.
#[must_use]
pub fn if_set<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

// === impl Image ===

impl Image {
    /// `name:version`; `version` is the default version.
    #[must_use]
    pub fn reference(&self, version: &str) -> String {
        format!("{}:{}", self.name, if_set(&self.version, version))
    }
}

// === impl Resources ===

impl Resources {
    /// The default of `proxyInit.resources` in charts before 24.6.4.
    fn of_old_init_container() -> Self {
        let both = |text: &str| Constraints { limit: text.to_owned(), request: text.to_owned() };
        Self { cpu: both("100m"), memory: both("20Mi"), ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
