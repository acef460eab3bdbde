//! T§7: tracing.

use serde_json::Value;

use super::Context;
use super::proxy::plain;

/// Whether tracing is enabled; the key had another name before 25.10.1.
pub(super) fn is_on(context: &Context<'_>) -> bool {
    let switch = if context.release.since((25, 10, 1)) {
        "proxy.tracing.enabled"
    } else {
        "proxy.tracing.enable"
    };
    context.values.flag(switch)
}

/// T§7, last paragraph: whether the patch has the volume with the pod's labels.
pub(super) fn has_volume(context: &Context<'_>) -> bool {
    let release = context.release;
    let in_between = release.since((25, 10, 1)) && !release.since((25, 11, 1));
    is_on(context) && !in_between
}

/// The seven variables; the error denies the review.
pub(super) fn env(context: &Context<'_>) -> Result<Vec<(&'static str, Value)>, String> {
    if !is_on(context) {
        return Ok(Vec::new());
    }
    let values = &context.values;
    let release = context.release;
    let mut env: Vec<(&str, Value)> = Vec::new();
    let attributes = "/var/run/linkerd/podinfo/labels";
    env.push(("LINKERD2_PROXY_TRACE_ATTRIBUTES_PATH", attributes.into()));
    if release.since((25, 10, 2)) {
        let annotations = "/var/run/linkerd/podinfo/annotations";
        env.push(("LINKERD2_PROXY_TRACE_ANNOTATIONS_PATH", annotations.into()));
    }
    let protocol = values.set_text("proxy.tracing.protocol");
    let protocol = protocol.unwrap_or_else(|| "opentelemetry".into());
    env.push(("LINKERD2_PROXY_TRACE_PROTOCOL", plain(protocol)));
    let service = values.text("proxy.tracing.traceServiceName");
    env.push(("LINKERD2_PROXY_TRACE_SERVICE_NAME", plain(service)));
    let endpoint = values
        .set_text("proxy.tracing.collector.endpoint")
        .ok_or("tracing needs a collector's endpoint")?;
    env.push(("LINKERD2_PROXY_TRACE_COLLECTOR_SVC_ADDR", endpoint.into()));
    if let Some(name) = collector_name(context)? {
        env.push(("LINKERD2_PROXY_TRACE_COLLECTOR_SVC_NAME", name.into()));
    }
    let attributes = extra_attributes(context);
    env.push(("LINKERD2_PROXY_TRACE_EXTRA_ATTRIBUTES", attributes.into()));
    Ok(env)
}

fn collector_name(context: &Context<'_>) -> Result<Option<String>, String> {
    let values = &context.values;
    let mesh = "proxy.tracing.collector.meshIdentity";
    let account = values.set_text(&format!("{mesh}.serviceAccountName"));
    let own = context.control_plane_namespace;
    let cluster = values.text("clusterDomain");
    if !context.release.since((25, 10, 1)) {
        return Ok(
            account.map(|account| format!("{account}.serviceaccount.identity.{own}.{cluster}"))
        );
    }
    let namespace = values.set_text(&format!("{mesh}.namespace"));
    let (Some(account), Some(namespace)) = (account, namespace) else {
        return Err("tracing needs a collector's service account and namespace".into());
    };
    let domain = if context.release.since((26, 7, 1)) { trust_domain(context) } else { cluster };
    let name = format!("{account}.{namespace}.serviceaccount.identity.{own}.{domain}");
    Ok(Some(name))
}

/// T§0, TD.
pub(super) fn trust_domain(context: &Context<'_>) -> String {
    let domain = context.values.set_text("identityTrustDomain");
    domain.unwrap_or_else(|| context.values.text("clusterDomain"))
}

fn extra_attributes(context: &Context<'_>) -> String {
    if !context.release.since((25, 10, 2)) {
        return "k8s.pod.ip=$(_pod_ip)\nk8s.pod.uid=$(_pod_uid)\n\
                k8s.container.name=$(_pod_containerName)\n"
            .to_owned();
    }
    let labels = context.values.tree("proxy.tracing.labels");
    let labels = labels.and_then(Value::as_object);
    let mut lines: Vec<_> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .collect();
    lines.sort_by_key(|(key, _)| key.as_bytes());
    let lines = lines.iter().map(|(key, value)| format!("{key}={value}\n"));
    lines.collect()
}
