//! The container linkerd-init (`docs/spec/linkerd/template.md` §3).

use super::{Out, Slot, Source, proxy, pull_policy};
use crate::linkerd::{
    release::Delta,
    values::{Image, Ports, ProxyInit},
};

pub(super) fn write(out: &mut Out, source: Source<'_>, ports: Ports) {
    let init = &source.settings.values.proxy_init;
    let uses_proxy_image = source.release.has(Delta::InitUsesProxyImage);
    let (image, policy) = match &init.image {
        Some(image) if !uses_proxy_image => own_image(source, image),
        _ => source.proxy_image(),
    };
    out.object(|out| {
        out.key("name").string("linkerd-init");
        out.key("image").string(&image);
        out.key("imagePullPolicy").string_or_null(&policy);
        if uses_proxy_image {
            out.key("command").strings(["/usr/lib/linkerd/linkerd2-proxy-init"]);
        }
        out.key("args").strings(args(source, ports).iter().map(String::as_str));
        out.key("resources");
        proxy::write_resources(out, source.init_resources());
        out.key("securityContext");
        write_security_context(out, source, init);
        out.key("terminationMessagePolicy").string("FallbackToLogsOnError");
        out.key("volumeMounts").list(|out| {
            if let Some(mount) = &init.xt_mount_path {
                out.object(|out| {
                    out.key("mountPath").string_or_null(&mount.mount_path);
                    out.key("name").string_or_null(&mount.name);
                });
            }
            out.slot(Slot::ServiceAccountMount);
        });
    });
}

/// The init container's own image, before 25.11.3. Its version has no default.
fn own_image(source: Source<'_>, image: &Image) -> (String, String) {
    (
        format!("{}:{}", image.name, image.version),
        pull_policy(&source.settings.values, image).to_owned(),
    )
}

fn args(source: Source<'_>, ports: Ports) -> Vec<String> {
    let (values, release) = (&source.settings.values, source.release);
    let (proxy, init) = (&values.proxy, &values.proxy_init);
    let mut args: Vec<String> = Vec::new();
    let mut push = |items: &[&str]| args.extend(items.iter().map(|&item| item.to_owned()));
    if init.iptables_mode == "nft" {
        push(&["--firewall-bin-path", "iptables-nft"]);
        push(&["--firewall-save-bin-path", "iptables-nft-save"]);
    }
    if values.disable_ipv6 && release.has(Delta::InitIpv6) {
        push(&["--ipv6=false"]);
    }
    push(&["--incoming-proxy-port", &ports.inbound.to_string()]);
    push(&["--outgoing-proxy-port", &ports.outbound.to_string()]);
    push(&["--proxy-uid", &proxy.uid.to_string()]);
    if proxy::has_gid(source) {
        push(&["--proxy-gid", &proxy.gid.to_string()]);
    }
    let mut inbound = format!("{},{}", ports.control, ports.admin);
    if !init.ignore_inbound_ports.is_empty() {
        inbound = format!("{inbound},{}", init.ignore_inbound_ports);
    }
    push(&["--inbound-ports-to-ignore", &inbound]);
    let close_wait = match init.close_wait_timeout_secs {
        0 => String::new(),
        seconds => seconds.to_string(),
    };
    for (flag, value) in [
        ("--outbound-ports-to-ignore", &init.ignore_outbound_ports),
        ("--timeout-close-wait-secs", &close_wait),
        ("--log-format", &init.log_format),
        ("--log-level", &init.log_level),
        ("--subnets-to-ignore", &init.skip_subnets),
    ] {
        if !value.is_empty() {
            push(&[flag, value]);
        }
    }
    args
}

fn write_security_context(out: &mut Out, source: Source<'_>, init: &ProxyInit) {
    // The timeout is a sysctl of the connection tracking, which only a privileged container may
    // write.
    let privileged = init.privileged || init.close_wait_timeout_secs != 0;
    let id = |number| match (init.run_as_root, number) {
        (true, _) => 0,
        // The user nobody: with `runAsNonRoot` a kubelet refuses to start a container as user 0.
        (false, 0) => 65_534,
        (false, number) => number,
    };
    out.object(|out| {
        out.key("allowPrivilegeEscalation").boolean(privileged);
        out.key("capabilities").slot(Slot::InitCapabilities);
        out.key("privileged").boolean(privileged);
        out.key("readOnlyRootFilesystem").boolean(true);
        if source.release.has(Delta::Gid) {
            out.key("runAsGroup").integer(id(init.run_as_group));
        }
        out.key("runAsNonRoot").boolean(!init.run_as_root);
        out.key("runAsUser").integer(id(init.run_as_user));
        out.key("seccompProfile").raw(br#"{"type":"RuntimeDefault"}"#);
    });
}
