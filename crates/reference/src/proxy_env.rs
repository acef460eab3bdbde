//! T§2.2: the proxy's environment, row by row.

use serde_json::{Value, json};

use super::proxy::plain;
use super::{Context, env_list, params, tracing};

/// The list of variables.
struct Env {
    items: Vec<Value>,
}

impl Env {
    fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.items.push(json!({"name": name, "value": value.into()}));
    }

    /// Adds a variable of the proxy; `name` lacks the common prefix.
    fn proxy(&mut self, name: &str, value: impl Into<Value>) {
        self.add(&format!("LINKERD2_PROXY_{name}"), value);
    }

    fn set(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.proxy(name, value);
        }
    }

    fn field(&mut self, name: &str, path: &str) {
        let source = json!({"fieldRef": {"fieldPath": path}});
        self.items.push(json!({"name": name, "valueFrom": source}));
    }
}

/// All rows; the error denies the review.
pub(super) fn list(context: &Context<'_>) -> Result<Vec<Value>, String> {
    let mut env = Env { items: Vec::new() };
    pod_fields(context, &mut env);
    cores(context, &mut env);
    log_and_policy(context, &mut env);
    timeouts(context, &mut env);
    addresses(context, &mut env);
    inbound_and_keepalive(context, &mut env);
    for (name, value) in tracing::env(context)? {
        env.add(name, value);
    }
    for (name, value) in params::env(context) {
        env.add(&name, value);
    }
    identity(context, &mut env);
    for list in ["proxy.additionalEnv", "proxy.experimentalEnv"] {
        let items = context.values.tree(list).and_then(Value::as_array);
        let items = items.into_iter().flatten();
        env.items.extend(items.map(|item| env_list::as_known_by(context.release, item)));
    }
    Ok(env.items)
}

/// Rows 1 to 6.
fn pod_fields(context: &Context<'_>, env: &mut Env) {
    let release = context.release;
    env.field("_pod_name", "metadata.name");
    env.field("_pod_ns", "metadata.namespace");
    if release.since((25, 1, 1)) {
        env.field("_pod_uid", "metadata.uid");
    }
    if release.since((25, 5, 5)) {
        env.field("_pod_ip", "status.podIP");
    }
    env.field("_pod_nodeName", "spec.nodeName");
    if release.since((25, 1, 1)) {
        env.add("_pod_containerName", "linkerd-proxy");
    }
}

/// Rows 7 to 10, T§2.3.
fn cores(context: &Context<'_>, env: &mut Env) {
    let values = &context.values;
    let cores = values.set_decimal("proxy.cores");
    if !context.release.since((25, 3, 3)) {
        env.set("CORES", cores);
        return;
    }
    if cores.is_some() {
        env.set("CORES", cores.clone());
        env.set("CORES_MIN", cores);
        return;
    }
    let minimum = values.set_decimal("proxy.runtime.workers.minimum");
    let maximum = values.set_decimal("proxy.runtime.workers.maximum");
    let ratio = values.set_decimal("proxy.runtime.workers.maximumCPURatio");
    if minimum.is_none() && maximum.is_none() && ratio.is_none() {
        return;
    }
    let minimum = minimum.unwrap_or_else(|| "1".into());
    env.proxy("CORES", minimum.clone());
    env.proxy("CORES_MIN", minimum);
    env.set("CORES_MAX", maximum);
    env.set("CORES_MAX_RATIO", ratio);
}

/// Rows 11 to 21.
fn log_and_policy(context: &Context<'_>, env: &mut Env) {
    let values = &context.values;
    let release = context.release;
    let require = "proxy.requireIdentityOnInboundPorts";
    env.set("INBOUND_PORTS_REQUIRE_IDENTITY", values.set_text(require));
    if release.since((24, 6, 2)) {
        let shutdown = values.flag("proxy.enableShutdownEndpoint");
        env.proxy("SHUTDOWN_ENDPOINT_ENABLED", shutdown.to_string());
    }
    let level = values.text("proxy.logLevel");
    env.proxy("LOG", format!("{level}{}", log_suffix(context)));
    env.proxy("LOG_FORMAT", values.text("proxy.logFormat"));
    let (own, domain) = (context.control_plane_namespace, values.text("clusterDomain"));
    let networks = values.text("clusterNetworks");
    let address = format!("linkerd-dst-headless.{own}.svc.{domain}.:8086");
    env.proxy("DESTINATION_SVC_ADDR", address);
    env.proxy("DESTINATION_PROFILE_NETWORKS", networks.clone());
    let address = format!("linkerd-policy.{own}.svc.{domain}.:8090");
    env.proxy("POLICY_SVC_ADDR", address);
    let workload = if release.since((24, 1, 1)) {
        "{\"ns\":\"$(_pod_ns)\", \"pod\":\"$(_pod_name)\"}\n"
    } else {
        "$(_pod_ns):$(_pod_name)"
    };
    env.proxy("POLICY_WORKLOAD", workload);
    let policy = values.text("proxy.defaultInboundPolicy");
    env.proxy("INBOUND_DEFAULT_POLICY", plain(policy));
    env.proxy("POLICY_CLUSTER_NETWORKS", networks);
}

/// T§2.2.1, LOG suffix.
fn log_suffix(context: &Context<'_>) -> &'static str {
    let release = context.release;
    if context.values.text("proxy.logHTTPHeaders") == "insecure" || !release.since((24, 6, 2)) {
        ""
    } else if release.since((24, 8, 1)) {
        ",[{headers}]=off,[{request}]=off"
    } else {
        ",linkerd_proxy_http::client[{headers}]=off"
    }
}

/// Rows 22 to 30.
fn timeouts(context: &Context<'_>, env: &mut Env) {
    let values = &context.values;
    if context.release.since((23, 12, 4)) {
        for (name, path) in [
            ("CONTROL_STREAM_INITIAL_TIMEOUT", "initialTimeout"),
            ("CONTROL_STREAM_IDLE_TIMEOUT", "idleTimeout"),
            ("CONTROL_STREAM_LIFETIME", "lifetime"),
        ] {
            env.proxy(name, values.text(&format!("proxy.control.streams.{path}")));
        }
    }
    for (name, path) in [
        ("INBOUND_CONNECT_TIMEOUT", "inboundConnectTimeout"),
        ("OUTBOUND_CONNECT_TIMEOUT", "outboundConnectTimeout"),
        ("OUTBOUND_DISCOVERY_IDLE_TIMEOUT", "outboundDiscoveryCacheUnusedTimeout"),
        ("INBOUND_DISCOVERY_IDLE_TIMEOUT", "inboundDiscoveryCacheUnusedTimeout"),
    ] {
        env.set(name, values.set_text(&format!("proxy.{path}")));
    }
    if context.release.since_or_stable((23, 11, 1)) {
        for (name, path) in [
            ("OUTBOUND_DETECT_TIMEOUT", "proxy.disableOutboundProtocolDetectTimeout"),
            ("INBOUND_DETECT_TIMEOUT", "proxy.disableInboundProtocolDetectTimeout"),
        ] {
            if values.flag(path) {
                env.proxy(name, "365d");
            }
        }
    }
}

/// Rows 31 to 37.
fn addresses(context: &Context<'_>, env: &mut Env) {
    let values = &context.values;
    let release = context.release;
    let no_ipv6 = values.flag("disableIPv6");
    let any = match () {
        () if !release.since((24, 5, 1)) => "0.0.0.0",
        () if release.since((24, 8, 2)) && no_ipv6 => "0.0.0.0",
        () => "[::]",
    };
    let port = |name: &str| values.decimal(&format!("proxy.ports.{name}"));
    env.proxy("CONTROL_LISTEN_ADDR", format!("{any}:{}", port("control")));
    env.proxy("ADMIN_LISTEN_ADDR", format!("{any}:{}", port("admin")));
    let outbound = port("outbound");
    let local = format!("127.0.0.1:{outbound}");
    env.proxy("OUTBOUND_LISTEN_ADDR", local.clone());
    if release.since((24, 5, 1)) {
        let both = !no_ipv6 || release.edge == (24, 5, 1);
        let addresses = if both { format!("{local},[::1]:{outbound}") } else { local };
        env.proxy("OUTBOUND_LISTEN_ADDRS", addresses);
    }
    env.proxy("INBOUND_LISTEN_ADDR", format!("{any}:{}", port("inbound")));
    env.field("LINKERD2_PROXY_INBOUND_IPS", "status.podIPs");
    env.proxy("INBOUND_PORTS", values.text("proxy.podInboundPorts"));
}

/// Rows 38 to 45.
fn inbound_and_keepalive(context: &Context<'_>, env: &mut Env) {
    let values = &context.values;
    let release = context.release;
    let services = format!("svc.{}.", values.text("clusterDomain"));
    if values.flag("proxy.isGateway") {
        env.proxy("INBOUND_GATEWAY_SUFFIXES", services.clone());
    }
    if values.flag("proxy.isIngress") {
        env.proxy("INGRESS_MODE", "true");
    }
    let external = values.flag("proxy.enableExternalProfiles");
    let suffixes = if external { ".".into() } else { services };
    env.proxy("DESTINATION_PROFILE_SUFFIXES", suffixes);
    env.proxy("INBOUND_ACCEPT_KEEPALIVE", "10000ms");
    env.proxy("OUTBOUND_CONNECT_KEEPALIVE", "10000ms");
    if release.since((24, 10, 1)) {
        env.proxy("INBOUND_ACCEPT_USER_TIMEOUT", "30s");
        env.proxy("OUTBOUND_CONNECT_USER_TIMEOUT", "30s");
    }
    if release.since((25, 3, 4)) {
        let labels = values.flag("proxy.metrics.hostnameLabels");
        env.proxy("OUTBOUND_METRICS_HOSTNAME_LABELS", labels.to_string());
    }
}

/// Rows 48 to 62.
fn identity(context: &Context<'_>, env: &mut Env) {
    let values = &context.values;
    let opaque = values.set_text("proxy.opaquePorts");
    env.set("INBOUND_PORTS_DISABLE_PROTOCOL_DETECTION", opaque);
    let pod = if context.release.since_or_stable((23, 10, 4)) {
        ", \"pod\":\"$(_pod_name)\""
    } else {
        ""
    };
    let place = "\"ns\":\"$(_pod_ns)\", \"nodeName\":\"$(_pod_nodeName)\"";
    env.proxy("DESTINATION_CONTEXT", format!("{{{place}{pod}}}\n"));
    env.field("_pod_sa", "spec.serviceAccountName");
    let own = context.control_plane_namespace;
    let trust = tracing::trust_domain(context);
    env.add("_l5d_ns", plain(own.to_owned()));
    env.add("_l5d_trustdomain", plain(trust.clone()));
    env.proxy("IDENTITY_DIR", "/var/run/linkerd/identity/end-entity");
    env.proxy("IDENTITY_TRUST_ANCHORS", trust_anchors(context));
    let projected = values.flag("identity.serviceAccountTokenProjection");
    let token = if projected {
        "/var/run/secrets/tokens/linkerd-identity-token"
    } else {
        "/var/run/secrets/kubernetes.io/serviceaccount/token"
    };
    env.proxy("IDENTITY_TOKEN_FILE", token);
    let domain = values.text("clusterDomain");
    let address = format!("linkerd-identity-headless.{own}.svc.{domain}.:8080");
    env.proxy("IDENTITY_SVC_ADDR", address);
    let identity = format!("serviceaccount.identity.{own}.{trust}");
    let name = format!("$(_pod_sa).$(_pod_ns).{identity}");
    env.proxy("IDENTITY_LOCAL_NAME", name);
    env.proxy("IDENTITY_SVC_NAME", format!("linkerd-identity.{own}.{identity}"));
    let destination = format!("linkerd-destination.{own}.{identity}");
    env.proxy("DESTINATION_SVC_NAME", destination.clone());
    env.proxy("POLICY_SVC_NAME", destination);
    env.set("ACCESS_LOG", values.set_text("proxy.accessLog"));
    let grace = values.set_text("proxy.shutdownGracePeriod");
    env.set("SHUTDOWN_GRACE_PERIOD", grace);
}

/// T§2.2.3.
fn trust_anchors(context: &Context<'_>) -> String {
    let text = String::from_utf8_lossy(context.trust_roots);
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    format!("{}\n", text.replace("\r\n", "\n"))
}
