//! `HashiCorp`: the flags of the injector.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    super::{case::Case, example::Example},
    flag, text,
};

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let mut example = example.clone();
    let config = &case.config;
    let image = text(config, "ImageVault");
    let certificate = text(config, "VaultCACertBytes");
    let decoded = STANDARD.decode(certificate).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let id = |field: &str, default: &'static str| match text(config, field) {
        "" => default.to_owned(),
        id => id.to_owned(),
    };
    let connections = config["MaxConnectionsPerHost"].as_i64().unwrap_or_default();
    example.set(json!({
        "address": text(config, "VaultAddress"),
        "namespace": text(config, "VaultNamespace"),
        "authType": text(config, "VaultAuthType"),
        "authPath": text(config, "VaultAuthPath"),
        "image": if image.is_empty() { "hashicorp/vault:2.0.4" } else { image },
        "proxy": text(config, "ProxyAddress"),
        "revokes": flag(config, "RevokeOnShutdown"),
        "user": id("UserID", "100"),
        "group": id("GroupID", "1000"),
        "sameUser": flag(config, "SameID"),
        "setsSecurityContext": flag(config, "SetSecurityContext"),
        "defaultTemplate": text(config, "DefaultTemplate"),
        "exitOnRetryFailure": flag(config, "ExitOnRetryFailure"),
        "renderInterval": text(config, "StaticSecretRenderInterval"),
        "maxConnections": if connections == 0 { String::new() } else { connections.to_string() },
        "minBackoff": text(config, "AuthMinBackoff"),
        "maxBackoff": text(config, "AuthMaxBackoff"),
        "disableIdle": text(config, "DisableIdleConnections"),
        "disableKeepAlives": text(config, "DisableKeepAlives"),
        "caCert": decoded.as_deref().unwrap_or(certificate),
        "resources": {
            "agent-limits-cpu": text(config, "ResourceLimitCPU"),
            "agent-limits-mem": text(config, "ResourceLimitMem"),
            "agent-limits-ephemeral": text(config, "ResourceLimitEphemeral"),
            "agent-requests-cpu": text(config, "ResourceRequestCPU"),
            "agent-requests-mem": text(config, "ResourceRequestMem"),
            "agent-requests-ephemeral": text(config, "ResourceRequestEphemeral"),
        },
    }));
    vec![example.into_template()]
}
