//! T§2.7: volume mounts, and the service account's mount of the pod.

use serde_json::{Value, json};

use super::ports::SERVICE_ACCOUNT_PATH;
use super::proxy::plain;
use super::{Context, tracing};

/// The proxy's mounts.
pub(super) fn proxy(context: &Context<'_>) -> Vec<Value> {
    let mut mounts = vec![json!({
        "mountPath": "/var/run/linkerd/identity/end-entity",
        "name": "linkerd-identity-end-entity",
    })];
    if tracing::has_volume(context) {
        mounts.push(json!({
            "mountPath": "/var/run/linkerd/podinfo",
            "name": "linkerd-podinfo",
        }));
    }
    if context.values.flag("identity.serviceAccountTokenProjection") {
        mounts.push(json!({
            "mountPath": "/var/run/secrets/tokens",
            "name": "linkerd-identity-token",
        }));
    }
    mounts.extend(service_account(context, "proxy.saMountPath"));
    mounts
}

/// T§3: linkerd-init's mounts.
pub(super) fn init(context: &Context<'_>) -> Result<Vec<Value>, String> {
    let values = &context.values;
    if !values.has("proxyInit.xtMountPath") {
        return Err("the values have no proxyInit.xtMountPath".into());
    }
    let mut mounts = vec![json!({
        "mountPath": plain(values.text("proxyInit.xtMountPath.mountPath")),
        "name": plain(values.text("proxyInit.xtMountPath.name")),
    })];
    mounts.extend(service_account(context, "proxy.saMountPath"));
    Ok(mounts)
}

/// The first mount of the first container at the service account's path, else the values' mount.
fn service_account(context: &Context<'_>, default: &str) -> Option<Value> {
    let spec = context.workload.pod.as_ref().map(|(_, spec)| spec);
    let first = spec.and_then(|spec| spec.containers.first());
    let mut mounts = first.into_iter().flat_map(|container| &container.mounts);
    let found = mounts.find(|(_, path, _)| path == SERVICE_ACCOUNT_PATH);
    let (name, path, read_only) = match found {
        Some((name, path, read_only)) => (name.clone(), path.clone(), *read_only),
        None if context.values.has(default) => {
            let text = |name: &str| context.values.text(&format!("{default}.{name}"));
            let read_only = context.values.flag(&format!("{default}.readOnly"));
            (text("name"), text("mountPath"), read_only)
        }
        None => return None,
    };
    Some(json!({"mountPath": plain(path), "name": plain(name), "readOnly": read_only}))
}
