//! Checks for settings that deny every pod (`docs/spec/linkerd/template.md` §10.6).

use std::{borrow::Cow, net::IpAddr};

use super::Source;
use crate::linkerd::{
    release::Delta,
    settings::Denial,
    values::{Ports, Values},
};

/// Checks the settings. Returns the ports, which every template needs, or the first reason to deny.
pub(super) fn check(source: Source<'_>) -> Result<Ports, Denial> {
    if let Some(denial) = &source.settings.denial {
        return Err(denial.clone());
    }
    let values = &source.settings.values;
    check_networks(&values.cluster_networks)?;
    if values.cni_enabled {
        if values.network_validator.is_none() {
            return Err(missing("networkValidator"));
        }
    } else {
        check_init(source, values)?;
    }
    check_proxy(source, values)?;
    values.proxy.ports.ok_or_else(|| missing("proxy.ports"))
}

fn check_init(source: Source<'_>, values: &Values) -> Result<(), Denial> {
    let init = &values.proxy_init;
    if !matches!(init.iptables_mode.as_str(), "nft" | "legacy") {
        let mode = &init.iptables_mode;
        return Err(Cow::Owned(format!(
            "Unsupported value \"{mode}\" for proxyInit.iptablesMode\nValid values: [\"nft\", \"legacy\"]"
        )));
    }
    let needs_root = source.release.has(Delta::CloseWaitNeedsRoot);
    if needs_root && init.close_wait_timeout_secs != 0 && !init.run_as_root {
        let text = "proxyInit.runAsRoot must be set to use proxyInit.closeWaitTimeoutSecs";
        return Err(Cow::Borrowed(text));
    }
    if init.xt_mount_path.is_none() {
        return Err(missing("proxyInit.xtMountPath"));
    }
    if init.image.is_none() && !source.release.has(Delta::InitUsesProxyImage) {
        return Err(missing("proxyInit.image"));
    }
    Ok(())
}

fn check_proxy(source: Source<'_>, values: &Values) -> Result<(), Denial> {
    let (proxy, release) = (&values.proxy, source.release);
    if release.has(Delta::LogWithoutHeaders) {
        let accepted = match proxy.log_http_headers.as_str() {
            "insecure" | "off" => true,
            "" => release.has(Delta::EmptyLogHeaders),
            _ => false,
        };
        if !accepted {
            return Err(Cow::Borrowed("logHTTPHeaders must be one of: insecure | off"));
        }
    }
    let may_wait = !source.is_native() || release.has(Delta::NativeSidecarMayWait);
    if proxy.wait_before_exit_seconds != 0 && !may_wait {
        let text = "proxy.nativeSidecar and waitBeforeExitSeconds cannot be used simultaneously";
        return Err(Cow::Borrowed(text));
    }
    if source.trust_roots.is_missing() {
        return Err(Cow::Borrowed("Please provide the identity trust anchors"));
    }
    if values.token_projection.is_none() {
        return Err(missing("identity"));
    }
    if proxy.tracing.enabled { check_collector(source, values) } else { Ok(()) }
}

fn check_collector(source: Source<'_>, values: &Values) -> Result<(), Denial> {
    let tracing = &values.proxy.tracing;
    let unset = |key: &str| {
        Err(Cow::Owned(format!(
            "proxy.tracing.collector.{key} must be set if proxy tracing is enabled"
        )))
    };
    if tracing.collector_endpoint.is_empty() {
        return unset("endpoint");
    }
    if source.release.has(Delta::TracingEnabled) {
        if tracing.collector_service_account.is_empty() {
            return unset("meshIdentity.serviceAccountName");
        }
        if tracing.collector_namespace.is_empty() {
            return unset("meshIdentity.namespace");
        }
    }
    Ok(())
}

fn check_networks(networks: &str) -> Result<(), Denial> {
    if networks.is_empty() {
        return Ok(());
    }
    let mut listed = networks.trim_matches(',').split(',');
    listed.find(|network| !is_cidr(network)).map_or(Ok(()), |network| {
        let text = "cannot parse destination get networks: invalid CIDR address:";
        Err(Cow::Owned(format!("{text} {network}")))
    })
}

/// Whether Go's `net.ParseCIDR` accepts the text.
fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return false;
    };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    !length.is_empty()
        && length.bytes().all(|byte| byte.is_ascii_digit())
        && length.parse::<u64>().is_ok_and(|length| length <= longest)
}

fn missing(section: &str) -> Denial {
    Cow::Owned(format!("{section} is missing from the values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_cidrs_as_go_reads_them() {
        for (text, valid) in [
            ("10.0.0.0/8", true),
            ("fd00::/8", true),
            ("10.0.0.0/08", true),
            ("10.0.0.0", false),
            ("10.0.0.0/33", false),
            ("10.0.0.0/+8", false),
            ("010.0.0.0/8", false),
            (" 10.0.0.0/8", false),
            ("", false),
        ] {
            assert_eq!(is_cidr(text), valid, "{text}");
        }
        assert!(check_networks("").is_ok());
        assert!(check_networks(",10.0.0.0/8,").is_ok());
        assert!(check_networks(",").is_err());
        assert!(check_networks("10.0.0.0/8, fd00::/8").is_err());
    }
}
