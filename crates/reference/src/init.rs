//! T§3: the container linkerd-init.

use serde_json::{Value, json};

use super::proxy::{image, plain_policy, pull_policy, resources};
use super::{Context, mounts, security};

/// The container; the error denies the review.
pub(super) fn container(context: &Context<'_>) -> Result<Value, String> {
    let release = context.release;
    let own_image = !release.since((25, 11, 3));
    let mut container = json!({
        "name": "linkerd-init",
        "args": args(context)?,
        "image": if own_image { init_image(context)? } else { image(context) },
        "imagePullPolicy": if own_image { init_policy(context) } else { pull_policy(context) },
        "resources": init_resources(context),
        "securityContext": security::init(context),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts::init(context)?,
    });
    if !own_image {
        container["command"] = json!(["/usr/lib/linkerd/linkerd2-proxy-init"]);
    }
    Ok(container)
}

/// T§2.4: the resources of an init container.
pub(super) fn init_resources(context: &Context<'_>) -> Value {
    if context.release.since((24, 6, 4)) {
        resources(context, "proxy.resources")
    } else {
        resources(context, "proxyInit.resources")
    }
}

fn init_image(context: &Context<'_>) -> Result<Value, String> {
    let values = &context.values;
    if !values.has("proxyInit.image") {
        return Err("the values have no proxyInit.image".into());
    }
    let (name, version) = ("proxyInit.image.name", "proxyInit.image.version");
    Ok(format!("{}:{}", values.text(name), values.text(version)).into())
}

fn init_policy(context: &Context<'_>) -> Value {
    let policy = context.values.set_text("proxyInit.image.pullPolicy");
    plain_policy(policy.unwrap_or_else(|| context.values.text("imagePullPolicy")))
}

/// The arguments, row by row.
fn args(context: &Context<'_>) -> Result<Vec<String>, String> {
    let values = &context.values;
    let release = context.release;
    let mut args: Vec<String> = Vec::new();
    let mut push = |items: &[&str]| args.extend(items.iter().map(|item| (*item).to_owned()));
    match values.text("proxyInit.iptablesMode").as_str() {
        "nft" => push(&[
            "--firewall-bin-path",
            "iptables-nft",
            "--firewall-save-bin-path",
            "iptables-nft-save",
        ]),
        "legacy" => {}
        mode => return Err(format!("iptablesMode must not be {mode:?}")),
    }
    if values.flag("disableIPv6") {
        push(&["--ipv6=false"]);
    }
    push(&["--incoming-proxy-port", &values.decimal("proxy.ports.inbound")]);
    push(&["--outgoing-proxy-port", &values.decimal("proxy.ports.outbound")]);
    push(&["--proxy-uid", &values.decimal("proxy.uid")]);
    if security::has_gid(context) {
        push(&["--proxy-gid", &values.decimal("proxy.gid")]);
    }
    let (control, admin) = ("proxy.ports.control", "proxy.ports.admin");
    let own = format!("{},{}", values.decimal(control), values.decimal(admin));
    let ignored = match values.set_text("proxyInit.ignoreInboundPorts") {
        Some(ports) => format!("{own},{ports}"),
        None => own,
    };
    push(&["--inbound-ports-to-ignore", &ignored]);
    if let Some(ports) = values.set_text("proxyInit.ignoreOutboundPorts") {
        push(&["--outbound-ports-to-ignore", &ports]);
    }
    if let Some(seconds) = values.set_decimal("proxyInit.closeWaitTimeoutSecs") {
        if release.since((25, 1, 1)) && !values.flag("proxyInit.runAsRoot") {
            return Err("closeWaitTimeoutSecs needs runAsRoot".into());
        }
        push(&["--timeout-close-wait-secs", &seconds]);
    }
    for (option, path) in [
        ("--log-format", "proxyInit.logFormat"),
        ("--log-level", "proxyInit.logLevel"),
        ("--subnets-to-ignore", "proxyInit.skipSubnets"),
    ] {
        if let Some(text) = values.set_text(path) {
            push(&[option, &text]);
        }
    }
    Ok(args)
}
