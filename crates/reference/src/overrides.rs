//! L§2.1: changes of the values by annotations, one by one.

use serde_json::{Map, Value, json};

use super::env_list::{self, Scalars};
use super::{Context, ports};
use injectd_gocompat::{duration, number, quantity};

type Annotations = Map<String, Value>;

/// Applies the pod's annotations, and those to be `added`, which win. The error denies the review.
pub(super) fn apply(context: &mut Context<'_>, added: &Annotations) -> Result<(), String> {
    let mut annotations = Annotations::new();
    if let Some((meta, _)) = &context.workload.pod {
        annotations.extend(meta.annotations.clone());
    }
    annotations.extend(added.clone());
    images(context, &annotations);
    numbers(context, &annotations);
    texts(context, &annotations);
    flags(context, &annotations);
    durations(context, &annotations);
    native_sidecar(context, &annotations);
    resources(context, &annotations);
    cpu_ratio(context, &annotations)?;
    port_lists(context, &annotations);
    close_wait(context, &annotations);
    trace_labels(context, &annotations);
    additional_env(context, &annotations);
    let debug = annotations.get("config.linkerd.io/enable-debug-sidecar");
    let debug = debug.and_then(Value::as_str).and_then(number::parse_bool);
    context.values.set("debugSidecar", debug.unwrap_or(false).into());
    Ok(())
}

/// Whether the debug container is enabled; set by [`apply`].
pub(super) fn debug_sidecar(context: &Context<'_>) -> bool {
    context.values.flag("debugSidecar")
}

fn config<'a>(annotations: &'a Annotations, name: &str) -> Option<&'a str> {
    annotations.get(&format!("config.linkerd.io/{name}"))?.as_str()
}

fn images(context: &mut Context<'_>, annotations: &Annotations) {
    let (release, values) = (context.release, &mut context.values);
    if annotations.get("linkerd.io/inject").and_then(Value::as_str) == Some("ingress") {
        values.set("proxy.isIngress", true.into());
    }
    let mut places = vec![
        ("proxy-image", "proxy.image.name"),
        ("proxy-version", "proxy.image.version"),
        ("image-pull-policy", "proxy.image.pullPolicy"),
    ];
    if !release.since((25, 11, 3)) && values.has("proxyInit.image") {
        places.push(("image-pull-policy", "proxyInit.image.pullPolicy"));
        places.push(("init-image", "proxyInit.image.name"));
        places.push(("init-image-version", "proxyInit.image.version"));
    }
    if release.since((25, 3, 3)) {
        places.push(("debug-image", "debugContainer.image.name"));
        places.push(("debug-image-version", "debugContainer.image.version"));
        places.push(("debug-image-pull-policy", "debugContainer.image.pullPolicy"));
    }
    for (annotation, place) in places {
        if let Some(text) = config(annotations, annotation) {
            values.set(place, text.into());
        }
    }
}

fn numbers(context: &mut Context<'_>, annotations: &Annotations) {
    let release = context.release;
    let values = &mut context.values;
    for name in ["control", "inbound", "admin", "outbound"] {
        let port = config(annotations, &format!("{name}-port"));
        let port = port.and_then(|text| number::parse_int(text, 32));
        if let Some(port) = port.filter(|_| values.has("proxy.ports")) {
            values.set(&format!("proxy.ports.{name}"), port.into());
        }
    }
    let mut ids = vec![("proxy-uid", "proxy.uid")];
    if release.since((24, 5, 4)) {
        ids.push(("proxy-gid", "proxy.gid"));
    }
    for (annotation, place) in ids {
        let id = config(annotations, annotation).and_then(|text| number::parse_int(text, 64));
        if let Some(id) = id {
            values.set(place, id.into());
        }
    }
    let wait = annotations.get("config.alpha.linkerd.io/proxy-wait-before-exit-seconds");
    if let Some(seconds) = wait.and_then(Value::as_str).and_then(number::parse_uint) {
        values.set("proxy.waitBeforeExitSeconds", seconds.into());
    }
}

fn texts(context: &mut Context<'_>, annotations: &Annotations) {
    let release = context.release;
    let values = &mut context.values;
    let mut places = vec![
        ("proxy-log-level", "proxy.logLevel"),
        ("proxy-log-format", "proxy.logFormat"),
        ("proxy-require-identity-inbound-ports", "proxy.requireIdentityOnInboundPorts"),
        ("skip-inbound-ports", "proxyInit.ignoreInboundPorts"),
        ("skip-outbound-ports", "proxyInit.ignoreOutboundPorts"),
        ("skip-subnets", "proxyInit.skipSubnets"),
        ("access-log", "proxy.accessLog"),
    ];
    if release.since((24, 6, 2)) {
        places.push(("proxy-log-http-headers", "proxy.logHTTPHeaders"));
    }
    for (annotation, place) in places {
        if let Some(text) = config(annotations, annotation) {
            values.set(place, text.into());
        }
    }
    let mut policies = vec![
        "all-unauthenticated",
        "all-authenticated",
        "cluster-unauthenticated",
        "cluster-authenticated",
        "deny",
    ];
    if release.since((24, 7, 3)) {
        policies.push("audit");
    }
    let policy = config(annotations, "default-inbound-policy");
    if let Some(policy) = policy.filter(|policy| policies.contains(policy)) {
        values.set("proxy.defaultInboundPolicy", policy.into());
    }
}

fn flags(context: &mut Context<'_>, annotations: &Annotations) {
    let release = context.release;
    let values = &mut context.values;
    let mut booleans = vec![
        ("enable-gateway", "proxy.isGateway"),
        ("enable-external-profiles", "proxy.enableExternalProfiles"),
    ];
    if release.since((25, 3, 4)) {
        booleans.push(("proxy-metrics-hostname-labels", "proxy.metrics.hostnameLabels"));
    }
    if release.since_or_stable((23, 11, 1)) {
        booleans.push((
            "proxy-disable-outbound-protocol-detect-timeout",
            "proxy.disableOutboundProtocolDetectTimeout",
        ));
        booleans.push((
            "proxy-disable-inbound-protocol-detect-timeout",
            "proxy.disableInboundProtocolDetectTimeout",
        ));
    }
    for (annotation, place) in booleans {
        if let Some(flag) = config(annotations, annotation).and_then(number::parse_bool) {
            values.set(place, flag.into());
        }
    }
    let mut switches = vec![("proxy-await", "proxy.await")];
    if release.since((24, 6, 2)) {
        switches.push(("proxy-admin-shutdown", "proxy.enableShutdownEndpoint"));
    }
    for (annotation, place) in switches {
        match config(annotations, annotation) {
            Some("enabled") => values.set(place, true.into()),
            Some("disabled") => values.set(place, false.into()),
            _ => {}
        }
    }
}

fn durations(context: &mut Context<'_>, annotations: &Annotations) {
    let values = &mut context.values;
    for (annotation, place) in [
        ("proxy-outbound-connect-timeout", "proxy.outboundConnectTimeout"),
        ("proxy-inbound-connect-timeout", "proxy.inboundConnectTimeout"),
        ("shutdown-grace-period", "proxy.shutdownGracePeriod"),
    ] {
        if let Some(nanos) = config(annotations, annotation).and_then(duration::parse) {
            values.set(place, format!("{}ms", duration::whole_millis(nanos)).into());
        }
    }
    for (annotation, place) in [
        (
            "proxy-outbound-discovery-cache-unused-timeout",
            "proxy.outboundDiscoveryCacheUnusedTimeout",
        ),
        (
            "proxy-inbound-discovery-cache-unused-timeout",
            "proxy.inboundDiscoveryCacheUnusedTimeout",
        ),
    ] {
        if let Some(nanos) = config(annotations, annotation).and_then(duration::parse) {
            values.set(place, format!("{}s", duration::whole_seconds(nanos)).into());
        }
    }
}

/// The first key that is present decides, even if its value is invalid.
fn native_sidecar(context: &mut Context<'_>, annotations: &Annotations) {
    let release = context.release;
    let keys = [
        ("config.linkerd.io/proxy-enable-native-sidecar", (26, 5, 2)),
        ("config.beta.linkerd.io/proxy-enable-native-sidecar", (25, 10, 2)),
        ("config.alpha.linkerd.io/proxy-enable-native-sidecar", (23, 11, 4)),
    ];
    let mut known = keys.iter().filter(|(_, since)| release.since(*since));
    let text = known.find_map(|(key, _)| annotations.get(*key)?.as_str());
    if let Some(flag) = text.and_then(number::parse_bool) {
        context.values.set("proxy.nativeSidecar", flag.into());
    }
}

/// Sets resources as text. L§2.6: CPU also sets the workers; before 25.3.3, the limit sets the
/// cores.
fn resources(context: &mut Context<'_>, annotations: &Annotations) {
    let workers = context.release.since((25, 3, 3));
    let values = &mut context.values;
    for resource in ["cpu", "memory", "ephemeral-storage"] {
        for bound in ["request", "limit"] {
            let Some(text) = config(annotations, &format!("proxy-{resource}-{bound}")) else {
                continue;
            };
            let Some(quantity) = quantity::parse(text) else {
                continue;
            };
            values.set(&format!("proxy.resources.{resource}.{bound}"), text.into());
            let cores = quantity.whole_units().unwrap_or(0);
            match (resource, bound) {
                ("cpu", "request") if workers => {
                    values.set("proxy.runtime.workers.minimum", cores.into());
                }
                ("cpu", "limit") if workers => {
                    values.set("proxy.runtime.workers.maximum", cores.into());
                }
                ("cpu", "limit") => values.set("proxy.cores", cores.into()),
                _ => {}
            }
        }
    }
}

fn cpu_ratio(context: &mut Context<'_>, annotations: &Annotations) -> Result<(), String> {
    if !context.release.since((25, 3, 3)) {
        return Ok(());
    }
    let ratio = config(annotations, "proxy-cpu-ratio-limit").and_then(number::parse_float);
    match ratio {
        Some(ratio) if ratio.is_nan() => Err("the CPU ratio is not a number".into()),
        Some(ratio) if ratio > 0.0 && ratio < 1.0 => {
            let place = "proxy.runtime.workers.maximumCPURatio";
            context.values.set(place, json!(ratio));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn port_lists(context: &mut Context<'_>, annotations: &Annotations) {
    if let Some(text) = config(annotations, "opaque-ports") {
        let resolved = ports::resolve_opaque_ports(context, text);
        context.values.set("proxy.opaquePorts", resolved.into());
    }
    let computed = ports::inbound_ports(context);
    let ports = match config(annotations, "pod-inbound-ports") {
        Some(text) if !context.release.since((24, 4, 2)) => text.to_owned(),
        _ => computed,
    };
    context.values.set("proxy.podInboundPorts", ports.into());
}

fn close_wait(context: &mut Context<'_>, annotations: &Annotations) {
    let wait = config(annotations, "close-wait-timeout").and_then(duration::parse);
    if let Some(nanos) = wait {
        let seconds = duration::whole_seconds(nanos);
        let place = "proxyInit.closeWaitTimeoutSecs";
        context.values.set(place, seconds.into());
    }
}

/// The pod's instance or name label, then `resource.opentelemetry.io/*`, which wins.
fn trace_labels(context: &mut Context<'_>, annotations: &Annotations) {
    if !context.release.since((25, 10, 2)) {
        return;
    }
    let labels = context.values.tree("proxy.tracing.labels");
    let labels = labels.and_then(Value::as_object);
    let mut labels = labels.cloned().unwrap_or_default();
    if let Some((meta, _)) = &context.workload.pod {
        let instance = meta.labels.get("app.kubernetes.io/instance");
        let name = meta.labels.get("app.kubernetes.io/name");
        if let Some(name) = instance.or(name) {
            labels.insert("service.name".into(), name.clone());
        }
    }
    for (key, value) in annotations {
        if let Some(key) = key.strip_prefix("resource.opentelemetry.io/") {
            labels.insert(key.into(), value.clone());
        }
    }
    context.values.set("proxy.tracing.labels", labels.into());
}

/// L§2.8: the lists of the values, the namespace and the pod; an invalid list is ignored.
fn additional_env(context: &mut Context<'_>, annotations: &Annotations) {
    let key = "config.linkerd.io/proxy-additional-env";
    if !context.release.since((26, 4, 3)) {
        return;
    }
    let list = context.values.tree("proxy.additionalEnv");
    let mut list = list.and_then(Value::as_array).cloned().unwrap_or_default();
    for layer in [context.namespace_annotations.get(key), annotations.get(key)] {
        let layer = layer.and_then(Value::as_str);
        let layer = layer.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let layer = layer.and_then(|layer| env_list::decode(&layer, Scalars::StayWhatTheyAre));
        env_list::merge(&mut list, layer.unwrap_or_default());
    }
    context.values.set("proxy.additionalEnv", list.into());
}
