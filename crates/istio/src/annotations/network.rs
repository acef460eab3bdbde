//! Ports, ranges of IP addresses, and names of network interfaces.

use std::net::{Ipv4Addr, Ipv6Addr};

use injectd_gocompat::text::quote;

use super::unsigned;

/// The length of `IFNAMSIZ` without the final zero.
const MAX_INTERFACE_BYTES: usize = 15;

pub(super) fn status_port(text: &str) -> Result<(), String> {
    // Istio's text names another annotation.
    port(text).map_err(|problem| format!("excludeInboundPorts invalid: {problem}"))
}

pub(super) fn include_inbound_ports(text: &str) -> Result<(), String> {
    if text == "*" { Ok(()) } else { ports("includeInboundPorts", text) }
}

pub(super) fn exclude_inbound_ports(text: &str) -> Result<(), String> {
    ports("excludeInboundPorts", text)
}

pub(super) fn exclude_outbound_ports(text: &str) -> Result<(), String> {
    ports("excludeOutboundPorts", text)
}

fn ports(parameter: &str, text: &str) -> Result<(), String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    text.split(',').try_for_each(|element| {
        port(element).map_err(|problem| {
            format!("{parameter} invalid: failed parsing port '{element}': {problem}")
        })
    })
}

fn port(text: &str) -> Result<(), String> {
    unsigned(text.trim(), 16).map_err(|problem| format!("failed parsing port '{text}': {problem}"))
}

pub(super) fn include_ip_ranges(text: &str) -> Result<(), String> {
    if text == "*" { Ok(()) } else { ip_ranges("includeIPRanges", text) }
}

pub(super) fn exclude_ip_ranges(text: &str) -> Result<(), String> {
    ip_ranges("excludeIPRanges", text)
}

fn ip_ranges(parameter: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    text.split(',').try_for_each(|range| {
        ip_range(range).map_err(|problem| {
            let go = format!("netip.ParsePrefix({}): {problem}", quote(range));
            format!("{parameter} invalid: failed parsing cidr '{range}': {go}")
        })
    })
}

/// Go's `netip.ParsePrefix`; host bits may be set.
fn ip_range(text: &str) -> Result<(), String> {
    let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    let maximum = match address.parse::<Ipv4Addr>() {
        Ok(_) => 32,
        Err(_) => ipv6_bits(address)?,
    };
    let is_number = bits.bytes().all(|b| b.is_ascii_digit());
    let has_zero = bits.len() > 1 && bits.starts_with('0');
    let bits = if is_number && !has_zero && !bits.is_empty() {
        // A number that does not fit is out of range as well.
        bits.parse::<u32>().unwrap_or(u32::MAX)
    } else {
        return Err(format!("bad bits after slash: {}", quote(bits)));
    };
    if bits > maximum { Err("prefix length out of range".to_owned()) } else { Ok(()) }
}

fn ipv6_bits(address: &str) -> Result<u32, String> {
    let (plain, zone) = match address.split_once('%') {
        Some((plain, zone)) => (plain, Some(zone)),
        None => (address, None),
    };
    match (plain.parse::<Ipv6Addr>(), zone) {
        (Ok(_), None) => Ok(128),
        (Ok(_), Some(zone)) if !zone.is_empty() => {
            Err("IPv6 zones cannot be present in a prefix".to_owned())
        }
        _ => Err(format!("ParseAddr({}): unable to parse IP", quote(address))),
    }
}

/// Names of interfaces, as Linux limits their length.
pub(super) fn interfaces(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Ok(());
    }
    text.split(',').map(str::trim).try_for_each(|name| {
        let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        if name.len() > MAX_INTERFACE_BYTES {
            Err(format!(
                "interface name {} is longer than {MAX_INTERFACE_BYTES} characters",
                quote(name)
            ))
        } else if is_valid {
            Ok(())
        } else {
            Err(format!("interface name {} contains invalid characters", quote(name)))
        }
    })
}
