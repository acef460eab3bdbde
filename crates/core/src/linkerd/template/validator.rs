//! The container linkerd-network-validator, in place of linkerd-init with CNI
//! (`docs/spec/linkerd/template.md` §4).

use super::{Out, Source, proxy};
use crate::linkerd::{release::Delta, values::NetworkValidator};

pub(super) fn write(out: &mut Out, source: Source<'_>) {
    let Some(validator) = &source.settings.values.network_validator else {
        return;
    };
    let (image, policy) = source.proxy_image();
    out.object(|out| {
        out.key("name").string("linkerd-network-validator");
        out.key("image").string(&image);
        out.key("imagePullPolicy").string_or_null(&policy);
        out.key("resources");
        proxy::write_resources(out, source.init_resources());
        write_security_context(out, source, validator);
        out.key("command").strings(["/usr/lib/linkerd/linkerd2-network-validator"]);
        out.key("args").list(|out| {
            for (flag, value) in [
                ("--log-format", validator.log_format.as_str()),
                ("--log-level", &validator.log_level),
                ("--connect-addr", connect_addr(source, validator)),
                ("--listen-addr", listen_addr(source, validator)),
                ("--timeout", &validator.timeout),
            ] {
                out.string(flag);
                out.string_or_null(value);
            }
        });
    });
}

fn connect_addr<'s>(source: Source<'s>, validator: &'s NetworkValidator) -> &'s str {
    if !validator.connect_addr.is_empty() || !source.release.has(Delta::ValidatorConnectAddr) {
        return &validator.connect_addr;
    }
    if source.settings.values.disable_ipv6 { "1.1.1.1:20001" } else { "[fd00::1]:20001" }
}

fn listen_addr<'s>(source: Source<'s>, validator: &'s NetworkValidator) -> &'s str {
    if !validator.listen_addr.is_empty() || !source.release.has(Delta::AddressesFollowIpv6) {
        return &validator.listen_addr;
    }
    if source.settings.values.disable_ipv6 { "0.0.0.0:4140" } else { "[::]:4140" }
}

fn write_security_context(out: &mut Out, source: Source<'_>, validator: &NetworkValidator) {
    let always = source.release.has(Delta::SecurityContexts);
    if !always && !validator.enable_security_context {
        return;
    }
    out.key("securityContext");
    if let Some(custom) = validator.security_context.as_ref().filter(|_| always) {
        proxy::write_map(out, custom);
        return;
    }
    out.object(|out| {
        out.key("allowPrivilegeEscalation").boolean(false);
        out.key("capabilities").raw(br#"{"drop":["ALL"]}"#);
        out.key("readOnlyRootFilesystem").boolean(true);
        if source.release.has(Delta::Gid) {
            out.key("runAsGroup").integer(65_534);
        }
        out.key("runAsNonRoot").boolean(true);
        out.key("runAsUser").integer(65_534);
        out.key("seccompProfile").raw(br#"{"type":"RuntimeDefault"}"#);
    });
}
