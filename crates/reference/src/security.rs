//! T§2.5, T§3: security contexts and capabilities.

use serde_json::{Map, Value, json};

use super::Context;

/// T§2.5: the proxy's security context.
pub(super) fn proxy(context: &Context<'_>) -> Value {
    let values = &context.values;
    if let Some(custom) = values.tree("proxy.securityContext").and_then(Value::as_object)
        && !custom.is_empty()
    {
        return custom.clone().into();
    }
    let mut fields = Map::new();
    fields.insert("allowPrivilegeEscalation".into(), false.into());
    if let Some((add, drop)) = proxy_capabilities(context) {
        let mut lists = Map::new();
        for (name, list) in [("add", add), ("drop", drop)] {
            if !list.is_empty() {
                lists.insert(name.into(), list.into());
            }
        }
        let lists = if lists.is_empty() { Value::Null } else { lists.into() };
        fields.insert("capabilities".into(), lists);
    }
    fields.insert("readOnlyRootFilesystem".into(), true.into());
    fields.insert("runAsNonRoot".into(), true.into());
    fields.insert("runAsUser".into(), values.number("proxy.uid").into());
    if has_gid(context) {
        fields.insert("runAsGroup".into(), values.number("proxy.gid").into());
    }
    let profile = json!({"type": "RuntimeDefault"});
    fields.insert("seccompProfile".into(), profile);
    fields.into()
}

/// T§10.3: whether a gid is written: since 24.5.4, unless it is negative. A gid that a float rounds
/// up to 2^63 counts as negative.
pub(super) fn has_gid(context: &Context<'_>) -> bool {
    let gid = context.values.number("proxy.gid").as_f64().unwrap_or(0.0);
    let two_to_63 = 9_223_372_036_854_775_808.0;
    context.release.since((24, 5, 4)) && (0.0..two_to_63).contains(&gid)
}

/// The lists `add` and `drop` of the pod's first container, else of the values.
fn proxy_capabilities(context: &Context<'_>) -> Option<(Vec<String>, Vec<String>)> {
    let spec = context.workload.pod.as_ref().map(|(_, spec)| spec);
    let first = spec.and_then(|spec| spec.containers.first());
    if let Some(capabilities) = first.and_then(|container| container.capabilities.clone()) {
        return Some(capabilities);
    }
    let values = &context.values;
    values.has("proxy.capabilities").then(|| {
        let add = values.list("proxy.capabilities.add");
        (add, values.list("proxy.capabilities.drop"))
    })
}

/// T§3: linkerd-init's security context.
pub(super) fn init(context: &Context<'_>) -> Value {
    let values = &context.values;
    let closes = values.set_decimal("proxyInit.closeWaitTimeoutSecs").is_some();
    let privileged = values.flag("proxyInit.privileged") || closes;
    let root = values.flag("proxyInit.runAsRoot");
    let (add, drop) = match proxy_capabilities(context) {
        Some((add, drop)) => {
            let kept = |name: &String| name != "NET_RAW" && name != "NET_ADMIN";
            (add, drop.into_iter().filter(kept).collect())
        }
        None => {
            (values.list("proxyInit.capabilities.add"), values.list("proxyInit.capabilities.drop"))
        }
    };
    let mut added = vec!["NET_ADMIN".to_owned(), "NET_RAW".to_owned()];
    added.extend(add);
    let mut capabilities = json!({"add": added});
    if !drop.is_empty() {
        capabilities["drop"] = drop.into();
    }
    let id = |path: &str| match values.set_decimal(path) {
        _ if root => json!(0),
        None => json!(65534),
        Some(_) => values.number(path).into(),
    };
    let mut fields = json!({
        "allowPrivilegeEscalation": privileged,
        "privileged": privileged,
        "capabilities": capabilities,
        "runAsNonRoot": !root,
        "runAsUser": id("proxyInit.runAsUser"),
        "readOnlyRootFilesystem": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    if context.release.since((24, 5, 4)) {
        fields["runAsGroup"] = id("proxyInit.runAsGroup");
    }
    fields
}

/// T§4: the network validator's security context, if it has one.
pub(super) fn validator(context: &Context<'_>) -> Option<Value> {
    let values = &context.values;
    let release = context.release;
    let custom = values.tree("networkValidator.securityContext");
    let custom = custom.and_then(Value::as_object);
    if let Some(custom) = custom.filter(|custom| !custom.is_empty()) {
        return Some(custom.clone().into());
    }
    if !release.since((25, 8, 4)) && !values.flag("networkValidator.enableSecurityContext") {
        return None;
    }
    let mut fields = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "runAsUser": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    if release.since((24, 5, 4)) {
        fields["runAsGroup"] = json!(65534);
    }
    Some(fields)
}
