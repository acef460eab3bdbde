//! T§2: the container linkerd-proxy.

use serde_json::{Map, Value, json};

use super::{Context, mounts, patch, proxy_env, security};

/// T§2.1, field by field.
pub(super) fn container(context: &Context<'_>) -> Result<Value, String> {
    let values = &context.values;
    let native = patch::is_native(context);
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    field("env", proxy_env::list(context)?.into());
    field("image", image(context));
    field("imagePullPolicy", pull_policy(context));
    field("livenessProbe", probe(context, "/live", "livenessProbe", 10));
    field("name", "linkerd-proxy".into());
    field("ports", ports(context));
    field("readinessProbe", probe(context, "/ready", "readinessProbe", 2));
    if native && values.flag("proxy.await") {
        field("startupProbe", startup_probe(context));
    }
    if values.tree("proxy.resources").is_some() {
        field("resources", resources(context, "proxy.resources"));
    }
    field("securityContext", security::proxy(context));
    field("terminationMessagePolicy", "FallbackToLogsOnError".into());
    if !native && let Some(lifecycle) = lifecycle(context) {
        field("lifecycle", lifecycle);
    }
    field("volumeMounts", mounts::proxy(context).into());
    if native {
        field("restartPolicy", "Always".into());
    }
    Ok(fields.into())
}

/// T§0, IMG.
pub(super) fn image(context: &Context<'_>) -> Value {
    let values = &context.values;
    let version = values.set_text("proxy.image.version");
    let version = version.unwrap_or_else(|| values.text("linkerdVersion"));
    format!("{}:{version}", values.text("proxy.image.name")).into()
}

/// T§0, PULL.
pub(super) fn pull_policy(context: &Context<'_>) -> Value {
    let policy = context.values.set_text("proxy.image.pullPolicy");
    let policy = policy.or_else(|| context.values.set_text("imagePullPolicy"));
    plain_policy(policy.unwrap_or_default())
}

/// A pull policy without quotes: blanks are nothing, as in YAML.
pub(super) fn plain_policy(policy: String) -> Value {
    if policy.trim_matches(' ').is_empty() { Value::Null } else { policy.into() }
}

/// T§10.2: a text that upstream writes without quotes: empty becomes null, other texts stay.
pub(super) fn plain(text: String) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn probe(context: &Context<'_>, path: &str, section: &str, old_delay: u64) -> Value {
    let values = &context.values;
    let get = json!({"path": path, "port": values.number("proxy.ports.admin")});
    if !context.release.since((24, 2, 2)) {
        return json!({"httpGet": get, "initialDelaySeconds": old_delay});
    }
    json!({
        "httpGet": get,
        "initialDelaySeconds": values.number(&format!("proxy.{section}.initialDelaySeconds")),
        "timeoutSeconds": values.number(&format!("proxy.{section}.timeoutSeconds")),
    })
}

fn startup_probe(context: &Context<'_>) -> Value {
    let values = &context.values;
    json!({
        "httpGet": {"path": "/ready", "port": values.number("proxy.ports.admin")},
        "initialDelaySeconds": values.number("proxy.startupProbe.initialDelaySeconds"),
        "periodSeconds": values.number("proxy.startupProbe.periodSeconds"),
        "failureThreshold": values.number("proxy.startupProbe.failureThreshold"),
    })
}

fn ports(context: &Context<'_>) -> Value {
    let values = &context.values;
    json!([
        {"containerPort": values.number("proxy.ports.inbound"), "name": "linkerd-proxy"},
        {"containerPort": values.number("proxy.ports.admin"), "name": "linkerd-admin"},
    ])
}

/// T§2.4.
pub(super) fn resources(context: &Context<'_>, section: &str) -> Value {
    let mut resources = Map::new();
    for (part, bound) in [("limits", "limit"), ("requests", "request")] {
        let mut amounts = Map::new();
        for resource in ["cpu", "memory", "ephemeral-storage"] {
            let text = context.values.set_text(&format!("{section}.{resource}.{bound}"));
            if let Some(text) = text {
                amounts.insert(resource.into(), text.into());
            }
        }
        if !amounts.is_empty() {
            resources.insert(part.into(), amounts.into());
        }
    }
    if resources.is_empty() { Value::Null } else { resources.into() }
}

/// T§2.6.
fn lifecycle(context: &Context<'_>) -> Option<Value> {
    let values = &context.values;
    let mut lifecycle = Map::new();
    if values.flag("proxy.await") {
        let port = format!("--port={}", values.decimal("proxy.ports.admin"));
        let command = json!(["/usr/lib/linkerd/linkerd-await", "--timeout=2m", port]);
        lifecycle.insert("postStart".into(), json!({"exec": {"command": command}}));
    }
    if let Some(seconds) = values.set_decimal("proxy.waitBeforeExitSeconds") {
        let command = json!(["/bin/sleep", seconds]);
        lifecycle.insert("preStop".into(), json!({"exec": {"command": command}}));
    }
    (!lifecycle.is_empty()).then(|| lifecycle.into())
}
