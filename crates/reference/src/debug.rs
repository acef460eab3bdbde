//! T§5: the container linkerd-debug.

use serde_json::{Value, json};

use super::Context;
use super::proxy::plain_policy;

/// The container.
pub(super) fn container(context: &Context<'_>) -> Value {
    let values = &context.values;
    let version = values.set_text("debugContainer.image.version");
    let version = version.unwrap_or_else(|| values.text("linkerdVersion"));
    let image = format!("{}:{version}", values.text("debugContainer.image.name"));
    let policy = values.set_text("debugContainer.image.pullPolicy");
    let policy = policy.unwrap_or_else(|| values.text("imagePullPolicy"));
    let mut container = json!({
        "name": "linkerd-debug",
        "image": image,
        "imagePullPolicy": plain_policy(policy),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    if context.release.since((23, 11, 2)) {
        for probe in ["livenessProbe", "readinessProbe"] {
            container[probe] = json!({"exec": {"command": ["true"]}});
        }
    }
    container
}
