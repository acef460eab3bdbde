//! The values of a Linkerd installation, from the `ConfigMap` `linkerd-config`, as types.
//!
//! Contains only the keys that the renderer reads (`docs/linkerd/template.md` §9). Optional
//! sections have defaults; other missing keys have the zero value.
//!
//! Overrides of pods are in [`super::settings`].

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    env_var::EnvVar,
    release::{Release, ReleaseChoice},
};
use crate::yaml;

mod read;
pub(crate) mod tree;

type Result<T> = std::result::Result<T, ValuesError>;

/// Why the values are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// Not YAML.
    #[error("not valid YAML: {0}")]
    Syntax(String),
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

/// The values of a Linkerd installation. Field names are those of the YAML.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct Values {
    pub linkerd_version: String,
    pub cluster_domain: String,
    pub cluster_networks: String,
    pub identity_trust_domain: String,
    pub image_pull_policy: String,
    pub cni_enabled: bool,
    pub disable_ipv6: bool,
    pub proxy: Proxy,
    pub proxy_init: ProxyInit,
    pub network_validator: Option<NetworkValidator>,
    pub debug_image: Image,
    /// `identity.serviceAccountTokenProjection`; `None` when the section is missing.
    pub token_projection: Option<bool>,
}

/// `proxy`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the chart documents its values")]
#[expect(clippy::struct_excessive_bools, reason = "the chart's switches")]
pub struct Proxy {
    pub image: Image,
    pub enable_external_profiles: bool,
    pub outbound_connect_timeout: String,
    pub inbound_connect_timeout: String,
    pub outbound_discovery_cache_unused_timeout: String,
    pub inbound_discovery_cache_unused_timeout: String,
    pub disable_outbound_protocol_detect_timeout: bool,
    pub disable_inbound_protocol_detect_timeout: bool,
    pub enable_shutdown_endpoint: bool,
    pub log_level: String,
    pub log_format: String,
    pub log_http_headers: String,
    pub ports: Option<Ports>,
    pub cores: i64,
    pub workers: Workers,
    pub resources: Resources,
    pub uid: i64,
    pub gid: i64,
    pub security_context: Option<Map<String, Value>>,
    pub capabilities: Option<CapabilityLists>,
    pub sa_mount_path: Option<Mount>,
    pub wait_before_exit_seconds: u64,
    pub r#await: bool,
    pub is_gateway: bool,
    pub is_ingress: bool,
    pub require_identity_on_inbound_ports: String,
    /// Set by an annotation only; may be empty.
    pub pod_inbound_ports: Option<String>,
    pub opaque_ports: String,
    pub shutdown_grace_period: String,
    pub access_log: String,
    pub default_inbound_policy: String,
    pub native_sidecar: bool,
    pub liveness_probe: Probe,
    pub readiness_probe: Probe,
    pub startup_probe: StartupProbe,
    pub control_streams: ControlStreams,
    pub hostname_labels: bool,
    pub tracing: Tracing,
    /// Variables for `proxy.inbound` and `proxy.outbound`: name and value.
    pub parameters: Vec<(String, Option<String>)>,
    pub additional_env: Vec<EnvVar>,
    pub experimental_env: Vec<EnvVar>,
}

/// `proxyInit`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct ProxyInit {
    pub image: Option<Image>,
    pub iptables_mode: String,
    pub ignore_inbound_ports: String,
    pub ignore_outbound_ports: String,
    pub skip_subnets: String,
    pub log_level: String,
    pub log_format: String,
    pub close_wait_timeout_secs: i64,
    pub privileged: bool,
    pub run_as_root: bool,
    pub run_as_user: i64,
    pub run_as_group: i64,
    pub xt_mount_path: Option<Mount>,
    pub capabilities: CapabilityLists,
    pub resources: Resources,
}

/// `networkValidator`.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct NetworkValidator {
    pub log_level: String,
    pub log_format: String,
    pub connect_addr: String,
    pub listen_addr: String,
    pub timeout: String,
    pub enable_security_context: bool,
    pub security_context: Option<Map<String, Value>>,
}

/// An image and its pull policy; version and policy may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct Image {
    pub name: String,
    pub version: String,
    pub pull_policy: String,
}

/// `proxy.ports`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct Ports {
    pub admin: i64,
    pub control: i64,
    pub inbound: i64,
    pub outbound: i64,
}

/// `proxy.runtime.workers`; 0 is unset.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct Workers {
    pub minimum: i64,
    pub maximum: i64,
    pub maximum_cpu_ratio: f64,
}

/// A `resources` section: quantities as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// Whether the section is missing from the values and no override sets any of it.
    pub is_missing: bool,
    /// cpu
    pub cpu: Constraints,
    /// memory
    pub memory: Constraints,
    /// ephemeral-storage
    pub ephemeral_storage: Constraints,
}

/// A limit and a request; empty is unset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct Constraints {
    pub limit: String,
    pub request: String,
}

/// Linux capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct CapabilityLists {
    pub add: Vec<String>,
    pub drop: Vec<String>,
}

/// A mount of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct Mount {
    pub name: String,
    pub mount_path: String,
    pub read_only: bool,
}

/// Seconds of a liveness or readiness probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct Probe {
    pub initial_delay_seconds: u64,
    pub timeout_seconds: u64,
}

/// Seconds of the startup probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct StartupProbe {
    pub initial_delay_seconds: u64,
    pub period_seconds: u64,
    pub failure_threshold: u64,
}

/// `proxy.control.streams`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct ControlStreams {
    pub initial_timeout: String,
    pub idle_timeout: String,
    pub lifetime: String,
}

/// `proxy.tracing`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the chart documents its values")]
pub struct Tracing {
    pub enabled: bool,
    pub protocol: String,
    pub trace_service_name: String,
    /// Sorted by key.
    pub labels: Vec<(String, String)>,
    pub collector_endpoint: String,
    pub collector_service_account: String,
    pub collector_namespace: String,
}

/// Parses the YAML text of the key `values`.
///
/// # Errors
/// The text is not valid YAML.
pub fn parse_tree(text: &str) -> Result<Value> {
    yaml::parse(text).map_err(ValuesError::Syntax)
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

#[cfg(test)]
mod tests;
