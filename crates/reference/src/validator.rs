//! T§4: the container linkerd-network-validator.

use serde_json::{Value, json};

use super::proxy::{image, plain, pull_policy};
use super::{Context, init, security};

/// The container; the error denies the review.
pub(super) fn container(context: &Context<'_>) -> Result<Value, String> {
    let values = &context.values;
    if !values.has("networkValidator") {
        return Err("the values have no networkValidator".into());
    }
    let mut container = json!({
        "name": "linkerd-network-validator",
        "image": image(context),
        "imagePullPolicy": pull_policy(context),
        "resources": init::init_resources(context),
        "command": ["/usr/lib/linkerd/linkerd2-network-validator"],
        "args": [
            "--log-format", plain(values.text("networkValidator.logFormat")),
            "--log-level", plain(values.text("networkValidator.logLevel")),
            "--connect-addr", connect_address(context),
            "--listen-addr", listen_address(context),
            "--timeout", plain(values.text("networkValidator.timeout")),
        ],
    });
    if let Some(context) = security::validator(context) {
        container["securityContext"] = context;
    }
    Ok(container)
}

fn connect_address(context: &Context<'_>) -> Value {
    let address = context.values.text("networkValidator.connectAddr");
    if !address.is_empty() || !context.release.since((24, 7, 4)) {
        return plain(address);
    }
    if context.values.flag("disableIPv6") {
        "1.1.1.1:20001".into()
    } else {
        "[fd00::1]:20001".into()
    }
}

fn listen_address(context: &Context<'_>) -> Value {
    let address = context.values.text("networkValidator.listenAddr");
    if !address.is_empty() || !context.release.since((24, 8, 2)) {
        return plain(address);
    }
    if context.values.flag("disableIPv6") { "0.0.0.0:4140".into() } else { "[::]:4140".into() }
}
