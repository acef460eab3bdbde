//! `host:port`, as Istio and Go's `net` package read it.

use std::{
    net::{IpAddr, Ipv6Addr},
    num::{IntErrorKind, ParseIntError},
};

/// Checks an address: a port of 1 to 65535, and a DNS name or an IP address.
///
/// Go: `ValidateProxyAddress`.
pub(super) fn check(address: &str) -> Result<(), String> {
    let (host, port) = split(address)
        .map_err(|reason| format!("unable to split {address:?}: address {address}: {reason}"))?;
    let number = port.parse().map_err(|error: ParseIntError| {
        let reason = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("port ({port}) is not a number: strconv.Atoi: parsing {port:?}: {reason}")
    })?;
    check_port(number)?;
    if is_dns_name(host) || is_ip(host) {
        return Ok(());
    }
    Err(format!("{host:?} is not a valid hostname or an IP address"))
}

/// Checks the range of a port.
pub(super) fn check_port(port: i64) -> Result<(), String> {
    if (1..=65535).contains(&port) {
        return Ok(());
    }
    Err(format!("port number {port} must be in the range 1..65535"))
}

/// Go: `net.SplitHostPort`.
fn split(address: &str) -> Result<(&str, &str), &'static str> {
    const MISSING_PORT: &str = "missing port in address";
    const TOO_MANY_COLONS: &str = "too many colons in address";
    let (before, port) = address.rsplit_once(':').ok_or(MISSING_PORT)?;
    let host = match address.strip_prefix('[') {
        None if before.contains(':') => return Err(TOO_MANY_COLONS),
        None => before,
        Some(inside) => {
            let (host, after) = inside.split_once(']').ok_or("missing ']' in address")?;
            match after.strip_prefix(':') {
                Some(rest) if rest == port => host,
                Some(_) => return Err(TOO_MANY_COLONS),
                None => return Err(MISSING_PORT),
            }
        }
    };
    let behind = address.strip_prefix('[').unwrap_or(address);
    if behind.contains('[') {
        return Err("unexpected '[' in address");
    }
    if behind.matches(']').count() > usize::from(address.starts_with('[')) {
        return Err("unexpected ']' in address");
    }
    Ok((host, port))
}

/// Labels of letters, digits and inner hyphens; the last is not a number, and may be empty.
///
/// Go: `ValidateFQDN`.
fn is_dns_name(name: &str) -> bool {
    let labels: Vec<_> = name.split('.').collect();
    let Some((last, others)) = labels.split_last() else { return false };
    let is_number = last.parse::<i64>().is_ok();
    (1..=255).contains(&name.len())
        && !is_number
        && others.iter().all(|label| is_label(label))
        && (last.is_empty() || is_label(last))
}

fn is_label(label: &str) -> bool {
    let hyphen = |at: Option<u8>| at.is_none_or(|byte| byte == b'-');
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric())
        && !hyphen(label.bytes().next())
        && !hyphen(label.bytes().last())
}

/// Go: `netip.ParseAddr`, which accepts a zone behind an address of version 6.
fn is_ip(host: &str) -> bool {
    match host.split_once('%') {
        Some((address, zone)) => !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<IpAddr>().is_ok(),
    }
}
