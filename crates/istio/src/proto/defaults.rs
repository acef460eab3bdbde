//! The built-in defaults of Istio, by release.
//!
//! Go: `DefaultMeshConfig` and `DefaultProxyConfig` of `pkg/config/mesh`.

use std::sync::LazyLock;

use serde_json::json;

use super::{
    message::Message,
    schema::{MESH_CONFIG, PROXY_CONFIG},
};
use crate::release::{Delta, Release};

/// The default before [`Delta::NoDefaultTracer`], and that of later releases.
static PROXY_CONFIGS: LazyLock<[Message; 2]> = LazyLock::new(|| {
    let later = json!({
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
    });
    let later = lay(Message::new(*PROXY_CONFIG), Release::NEWEST, &later);
    let tracing = json!({"tracing": {"zipkin": {"address": "zipkin.istio-system:9411"}}});
    [lay(later.clone(), Release::OLDEST, &tracing), later]
});

/// The `ProxyConfig` that holds where neither mesh config, resource nor annotation says otherwise.
#[must_use]
pub fn proxy_config(release: Release) -> &'static Message {
    let [before, later] = &*PROXY_CONFIGS;
    if release.has(Delta::NoDefaultTracer) { later } else { before }
}

/// The mesh config that holds without a source.
#[must_use]
pub fn mesh_config(release: Release) -> Message {
    let mut message = lay(
        Message::new(*MESH_CONFIG),
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
    message.set("default_config", Some(super::Value::Message(proxy_config(release).clone())));
    message
}

fn lay(mut message: Message, release: Release, json: &serde_json::Value) -> Message {
    message.apply(json, release).expect("the defaults must have the types of their fields");
    message
}
