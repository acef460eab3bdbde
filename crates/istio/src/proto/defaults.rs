//! The built-in defaults of Istio, by release.
//!
//! Go: `DefaultMeshConfig` and `DefaultProxyConfig` of `pkg/config/mesh`.

#![expect(clippy::disallowed_types, reason = "written as JSON, read once per change")]

use serde_json::json;

use super::{
    message::Message,
    schema::{MESH_CONFIG, PROXY_CONFIG},
};
use crate::release::Release;

/// The first release without a default tracer.
const NO_DEFAULT_TRACER: Release = Release::new(22, 0);

/// The `ProxyConfig` that holds where neither mesh config, resource nor annotation says otherwise.
#[must_use]
pub fn proxy_config(release: Release) -> Message {
    let mut message = Message::new(*PROXY_CONFIG);
    lay(
        &mut message,
        release,
        &json!({
            "configPath": "./etc/istio/proxy",
            "binaryPath": "/usr/local/bin/envoy",
            "serviceCluster": "istio-proxy",
            "drainDuration": "45s",
            "terminationDrainDuration": "5s",
            "discoveryAddress": "istiod.istio-system.svc:15012",
            "proxyAdminPort": 15000,
            "controlPlaneAuthPolicy": "MUTUAL_TLS",
            "statNameLength": 189,
            "statusPort": 15020,
        }),
    );
    if release < NO_DEFAULT_TRACER {
        let tracing = json!({"tracing": {"zipkin": {"address": "zipkin.istio-system:9411"}}});
        lay(&mut message, release, &tracing);
    }
    message
}

/// The mesh config that holds without a source.
#[must_use]
pub fn mesh_config(release: Release) -> Message {
    let mut message = Message::new(*MESH_CONFIG);
    lay(
        &mut message,
        release,
        &json!({
            "proxyListenPort": 15001,
            "proxyInboundListenPort": 15006,
            "connectTimeout": "10s",
            "protocolDetectionTimeout": "0s",
            "ingressClass": "istio",
            "ingressService": "istio-ingressgateway",
            "ingressControllerMode": "STRICT",
            "enableTracing": true,
            "accessLogEncoding": "TEXT",
            "outboundTrafficPolicy": {"mode": "ALLOW_ANY"},
            // Unknown before 1.22, and then dropped.
            "inboundTrafficPolicy": {"mode": "PASSTHROUGH"},
            "enableAutoMtls": true,
            "trustDomain": "cluster.local",
            "defaultServiceExportTo": ["*"],
            "defaultVirtualServiceExportTo": ["*"],
            "defaultDestinationRuleExportTo": ["*"],
            "rootNamespace": "istio-system",
            "localityLbSetting": {"enabled": true},
            "dnsRefreshRate": "60s",
            "enablePrometheusMerge": true,
            "extensionProviders": [
                {"name": "prometheus", "prometheus": {}},
                {"name": "stackdriver", "stackdriver": {}},
                {"name": "envoy", "envoyFileAccessLog": {"path": "/dev/stdout"}},
            ],
            "defaultProviders": {},
        }),
    );
    message.set("default_config", Some(super::Value::Message(proxy_config(release))));
    message
}

fn lay(message: &mut Message, release: Release, json: &serde_json::Value) {
    message.apply(json, release).expect("the defaults must have the types of their fields");
}
