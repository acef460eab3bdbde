//! `protoToJSON`: the text of `PROXY_CONFIG`, without what the sidecar knows by itself.

#[cfg(test)]
mod tests;

use super::{Message, defaults, schema::PROXY_CONFIG};
use crate::release::Release;

/// Fields of `ProxyConfig` that are left out where they equal the built-in default, which for those
/// of no default means where they are not set.
const ELIDED: [&str; 14] = [
    "config_path",
    "binary_path",
    "control_plane_auth_policy",
    "service_cluster",
    "drain_duration",
    "termination_drain_duration",
    "discovery_address",
    "envoy_metrics_service",
    "envoy_access_log_service",
    "tracing",
    "proxy_admin_port",
    "stat_name_length",
    "status_port",
    "concurrency",
];

/// The JSON of a message; of a `ProxyConfig`, without what equals the built-in default of the
/// release.
///
/// Go: `protoToJSON` and `cleanProxyConfig` of `pkg/kube/inject`.
#[must_use]
pub fn proto_to_json(message: &Message, release: Release) -> String {
    if message.of() != *PROXY_CONFIG {
        return message.to_json();
    }
    let built_in = defaults::proxy_config(release);
    let mut left = message.clone();
    for name in ELIDED {
        if left.value(name) == built_in.value(name) {
            left.set(name, None);
        }
    }
    left.to_json()
}
