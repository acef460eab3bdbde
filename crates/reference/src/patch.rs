//! T§1: the operations, in their order.

use serde_json::{Map, Value, json};

use super::object::Meta;
use super::{Context, annotations, debug, init, overrides, proxy, tracing, validator, volumes};

/// The patch of an injected pod or pod template; the error denies the review.
pub(super) fn inject(context: &mut Context<'_>) -> Result<Vec<Value>, String> {
    let added = annotations::added(context);
    overrides::apply(context, &added)?;
    refusals(context)?;
    let mut patch = Patch { prefix: prefix(&context.workload.kind), operations: Vec::new() };
    let Some((meta, spec)) = &context.workload.pod else {
        return Err("there is no pod to inject".into());
    };
    metadata(context, meta, added, &mut patch);
    if spec.no_volumes {
        patch.add("/spec/volumes", json!([]));
    }
    if spec.init_containers.is_empty() {
        patch.add("/spec/initContainers", json!([]));
    }
    containers_and_volumes(context, &mut patch)?;
    Ok(patch.operations)
}

/// Operations 1 to 5.
fn metadata(context: &Context<'_>, meta: &Meta, added: Map<String, Value>, patch: &mut Patch) {
    if !patch.prefix.is_empty() && meta.zero {
        patch.add("/metadata", json!({}));
    }
    if meta.no_annotations {
        patch.add("/metadata/annotations", json!({}));
    }
    for (key, value) in annotations::written(context, added) {
        patch.add(&format!("/metadata/annotations/{}", escape(&key)), without_no_value(&value));
    }
    if meta.no_labels {
        patch.add("/metadata/labels", json!({}));
    }
    for (key, value) in annotations::labels(context) {
        patch.add(&format!("/metadata/labels/{}", escape(&key)), without_no_value(&value));
    }
}

/// Operations 8 to 14.
fn containers_and_volumes(context: &Context<'_>, patch: &mut Patch) -> Result<(), String> {
    let values = &context.values;
    let native = is_native(context);
    let first = if native { "0" } else { "-" };
    let first = format!("/spec/initContainers/{first}");
    if values.flag("cniEnabled") {
        patch.add(&first, validator::container(context)?);
    } else {
        patch.add("/spec/volumes/-", volumes::xtables());
        patch.add(&first, init::container(context)?);
    }
    if overrides::debug_sidecar(context) {
        patch.add("/spec/containers/-", debug::container(context));
    }
    patch.add("/spec/volumes/-", volumes::identity());
    if tracing::has_volume(context) {
        patch.add("/spec/volumes/-", volumes::podinfo());
    }
    if values.flag("identity.serviceAccountTokenProjection") {
        patch.add("/spec/volumes/-", volumes::token());
    }
    let place = if native {
        "/spec/initContainers/1"
    } else if values.flag("proxy.await") {
        "/spec/containers/0"
    } else {
        "/spec/containers/-"
    };
    patch.add(place, proxy::container(context)?);
    Ok(())
}

struct Patch {
    prefix: &'static str,
    operations: Vec<Value>,
}

impl Patch {
    fn add(&mut self, path: &str, value: impl Into<Value>) {
        let path = format!("{}{path}", self.prefix);
        let operation = json!({"op": "add", "path": path, "value": value.into()});
        self.operations.push(operation);
    }
}

/// The path of the pod in an object of this kind.
fn prefix(kind: &str) -> &'static str {
    match kind {
        "pod" => "",
        "cronjob" => "/spec/jobTemplate/spec/template",
        _ => "/spec/template",
    }
}

fn escape(key: &str) -> String {
    key.replace('/', "~1")
}

/// Whether the proxy is a native sidecar; not supported before 23.11.4.
pub(super) fn is_native(context: &Context<'_>) -> bool {
    context.values.flag("proxy.nativeSidecar")
}

/// T§10.6, L§2.13: the checks that deny a pod, except those of single containers.
fn refusals(context: &Context<'_>) -> Result<(), String> {
    let values = &context.values;
    check_networks(&values.text("clusterNetworks"))?;
    for section in ["proxy.ports", "identity"] {
        if !values.has(section) {
            return Err(format!("the values have no {section}"));
        }
    }
    let headers = values.text("proxy.logHTTPHeaders");
    let release = context.release;
    let empty_is_fine = !release.since((24, 6, 2)) || release.since((24, 6, 4));
    let fine = match headers.as_str() {
        "" => empty_is_fine,
        other => ["insecure", "off"].contains(&other),
    };
    if !fine {
        return Err(format!("logHTTPHeaders must not be {headers:?}"));
    }
    let waits = values.set_decimal("proxy.waitBeforeExitSeconds").is_some();
    if is_native(context) && waits && !context.release.since((26, 5, 2)) {
        return Err("a native sidecar cannot wait before exit".into());
    }
    if context.trust_roots.is_empty() {
        return Err("the trust roots are empty".into());
    }
    Ok(())
}

/// L§2.7-12: comma-separated networks, commas at the ends aside.
fn check_networks(networks: &str) -> Result<(), String> {
    if networks.is_empty() {
        return Ok(());
    }
    let wrong = networks.trim_matches(',').split(',').find(|network| !is_network(network));
    match wrong {
        None => Ok(()),
        Some(network) => Err(format!("{network:?} is not a network")),
    }
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let Ok(address) = address.parse::<std::net::IpAddr>() else {
        return false;
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|length| length <= most)
}

/// T§10.4: removes `<no value>`, which templates print for missing values, from annotations and
/// labels.
fn without_no_value(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| text.replace("<no value>", "").into())
}
