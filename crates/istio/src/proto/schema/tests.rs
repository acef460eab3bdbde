use super::*;

#[test]
fn names_follow_the_rules_of_protobuf_and_go() {
    for (name, json, go) in [
        ("mesh_id", "meshId", "MeshId"),
        ("mesh_mTLS", "meshMTLS", "MeshMTLS"),
        ("ca_certificates_pem", "caCertificatesPem", "CaCertificatesPem"),
        (
            "http2_initial_stream_window_size",
            "http2InitialStreamWindowSize",
            "Http2InitialStreamWindowSize",
        ),
        ("enable_64bit_trace_id", "enable64bitTraceId", "Enable_64BitTraceId"),
        ("consecutive_5xx_errors", "consecutive5xxErrors", "Consecutive_5XxErrors"),
        ("k8s_sa_jwt_path", "k8sSaJwtPath", "K8SSaJwtPath"),
        ("matchLabels", "matchLabels", "MatchLabels"),
    ] {
        assert_eq!((names::json(name), names::go(name)), (json.to_owned(), go.to_owned()));
    }
}

#[test]
fn types_have_the_names_of_go() {
    let fields = &PROXY_CONFIG.get().fields;
    assert_eq!(PROXY_CONFIG.get().go_name(), "v1alpha1.ProxyConfig");
    let of = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.kind);
    let Some(Kind::Enum(mode)) = of("interception_mode") else { panic!("must be an enum") };
    assert_eq!(mode.get().go_name(), "v1alpha1.ProxyConfig_InboundInterceptionMode");
    let Some(Kind::Message(image)) = of("image") else { panic!("must be a message") };
    assert_eq!(image.get().go_name(), "v1beta1.ProxyImage");
}

#[test]
fn fields_of_proxy_config_are_in_the_order_of_the_json() {
    let names: Vec<_> = PROXY_CONFIG.get().fields.iter().map(|field| field.json.as_str()).collect();
    assert_eq!(names.len(), 40);
    assert_eq!(
        names[..5],
        ["configPath", "binaryPath", "serviceCluster", "tracingServiceName", "drainDuration"]
    );
    assert_eq!(
        names[36..],
        ["fileFlushInterval", "fileFlushMinSizeKb", "statsCompression", "connectionSettings"]
    );
}

#[test]
fn fields_came_with_their_release() {
    let since = |message: &str, field: &str| {
        let fields = &of(message).get().fields;
        fields.iter().find(|known| known.name == field).map(|field| field.since.minor())
    };
    for (message, field, minor) in [
        ("ProxyConfig", "config_path", 19),
        ("PrivateKeyProvider.QAT", "fallback", 21),
        ("istio.networking.v1alpha3.ClientTLSSettings", "ca_crl", 22),
        ("MeshConfig", "inbound_traffic_policy", 22),
        ("ProxyConfig.ProxyHeaders", "set_current_client_cert_details", 24),
        ("Tracing", "enable_istio_tags", 25),
        ("istio.networking.v1alpha3.ReadinessProbe", "grpc", 25),
        ("ProxyConfig.ProxyHeaders", "preserve_http1_header_case", 25),
        ("ProxyConfig.ProxyHeaders", "x_forwarded_port", 28),
        ("ProxyConfig", "stats_compression", 29),
        (
            "MeshConfig.ExtensionProvider.OpenTelemetryTracingProvider",
            "service_attribute_enrichment",
            30,
        ),
        ("ProxyConfig", "connection_settings", 31),
    ] {
        assert_eq!(since(message, field), Some(minor), "{message}.{field}");
    }
}
