//! Validates a pod's annotations (`pkg/kube/inject/validate.go`).
//!
//! Texts are those of Istio and Go. Not for annotations that Istio does not validate, such as
//! `traffic.sidecar.istio.io/includeOutboundPorts`.

use std::fmt;

use injectd_gocompat::{number::parse_bool, quantity, text::quote};
use serde_json::{Map, Value};

use crate::{
    fields::text_of,
    release::{Delta, Release},
};

mod network;

#[cfg(test)]
mod tests;

/// The annotation with a `ProxyConfig` in YAML, which overrides that of the mesh.
pub const PROXY_CONFIG_ANNOTATION: &str = "proxy.istio.io/config";

const WRONG_QUANTITY: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// All failures of a pod, sorted. Istio lists them in random order.
///
/// The text is that of `hashicorp/go-multierror`; it ends in an empty line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidAnnotations {
    failures: Vec<String>,
}

impl fmt::Display for InvalidAnnotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failures.len() {
            1 => f.write_str("1 error occurred:")?,
            count => write!(f, "{count} errors occurred:")?,
        }
        for failure in &self.failures {
            write!(f, "\n\t* {failure}")?;
        }
        f.write_str("\n\n")
    }
}

impl std::error::Error for InvalidAnnotations {}

/// Validates a pod's annotations by the rules of a release. `proxy_config` validates the value of
/// [`PROXY_CONFIG_ANNOTATION`] and returns the text of its failure.
///
/// Values that are not strings are ignored; `null` is empty.
///
/// # Errors
/// All annotations that are invalid.
pub fn validate(
    annotations: Option<&Map<String, Value>>,
    release: Release,
    proxy_config: impl Fn(&str) -> Result<(), String>,
) -> Result<(), InvalidAnnotations> {
    let mut failures = Vec::new();
    for (key, value) in annotations.into_iter().flatten() {
        let Some(value) = text_of(value) else { continue };
        let result = match &**key {
            PROXY_CONFIG_ANNOTATION => proxy_config(value),
            key => rule(key, release).map_or(Ok(()), |rule| rule(value)),
        };
        failures.extend(result.err().map(|text| failure(key, value, &text)));
    }
    // Go walks a map in a random order. Sorted, the same pod gets the same text each time.
    failures.sort_unstable();
    if failures.is_empty() { Ok(()) } else { Err(InvalidAnnotations { failures }) }
}

fn failure(key: &str, value: &str, text: &str) -> String {
    format!("invalid value '{value}' for annotation '{key}': {text}")
}

/// Whether a release validates an annotation.
pub(crate) fn validates(key: &str, release: Release) -> bool {
    rule(key, release).is_some()
}

/// What the newest release refuses, of the annotations that this release does not validate.
pub(crate) fn later_failures(
    annotations: Option<&Map<String, Value>>,
    release: Release,
) -> impl Iterator<Item = String> {
    annotations.into_iter().flatten().filter_map(move |(key, value)| {
        let value = text_of(value)?;
        let rule = rule(key, Release::NEWEST).filter(|_| !validates(key, release))?;
        rule(value).err().map(|text| failure(key, value, &text))
    })
}

type Rule = fn(&str) -> Result<(), String>;

/// The rule of an annotation; `None` if the release does not validate it.
fn rule(key: &str, release: Release) -> Option<Rule> {
    let rule: Rule = match key {
        "sidecar.istio.io/interceptionMode" => interception_mode,
        "status.sidecar.istio.io/port" => network::status_port,
        "readiness.status.sidecar.istio.io/initialDelaySeconds"
        | "readiness.status.sidecar.istio.io/periodSeconds"
        | "readiness.status.sidecar.istio.io/failureThreshold" => |text| unsigned(text, 32),
        "traffic.sidecar.istio.io/includeOutboundIPRanges" => network::include_ip_ranges,
        "traffic.sidecar.istio.io/excludeOutboundIPRanges" => network::exclude_ip_ranges,
        "traffic.sidecar.istio.io/includeInboundPorts" => network::include_inbound_ports,
        "traffic.sidecar.istio.io/excludeInboundPorts" => network::exclude_inbound_ports,
        "traffic.sidecar.istio.io/excludeOutboundPorts" => network::exclude_outbound_ports,
        "traffic.sidecar.istio.io/excludeInterfaces"
        | "traffic.sidecar.istio.io/kubevirtInterfaces"
        | "istio.io/reroute-virtual-interfaces"
            if release.has(Delta::CheckedInterfaces) =>
        {
            network::interfaces
        }
        "prometheus.istio.io/merge-metrics" => boolean,
        "sidecar.istio.io/enableCoreDump" if !release.has(Delta::AnyCoreDump) => boolean,
        "sidecar.istio.io/proxyCPU"
        | "sidecar.istio.io/proxyMemory"
        | "sidecar.istio.io/proxyCPULimit"
        | "sidecar.istio.io/proxyMemoryLimit"
            if release.has(Delta::CheckedResources) =>
        {
            resource
        }
        _ => return None,
    };
    Some(rule)
}

fn interception_mode(mode: &str) -> Result<(), String> {
    match mode {
        "REDIRECT" | "TPROXY" | "NONE" => Ok(()),
        _ => Err(format!("interceptionMode invalid, use REDIRECT,TPROXY,NONE: {mode}")),
    }
}

fn boolean(text: &str) -> Result<(), String> {
    match parse_bool(text) {
        Some(_) => Ok(()),
        None => Err(format!("strconv.ParseBool: parsing {}: invalid syntax", quote(text))),
    }
}

fn resource(text: &str) -> Result<(), String> {
    if text.chars().any(char::is_control) {
        return Err("quantity contains control characters".to_owned());
    }
    quantity::parse(text).map(|_| ()).ok_or_else(|| WRONG_QUANTITY.to_owned())
}

/// Go's `strconv.ParseUint(text, 10, bits)`. Of a text that is too large and also holds other
/// characters, the first problem is reported.
fn unsigned(text: &str, bits: u32) -> Result<(), String> {
    let problem = |problem| format!("strconv.ParseUint: parsing {}: {problem}", quote(text));
    if text.is_empty() {
        return Err(problem("invalid syntax"));
    }
    let mut value = 0_u64;
    for byte in text.bytes() {
        if !byte.is_ascii_digit() {
            return Err(problem("invalid syntax"));
        }
        // At most `bits` plus four more bits are in use.
        value = value * 10 + u64::from(byte - b'0');
        if value >> bits != 0 {
            return Err(problem("value out of range"));
        }
    }
    Ok(())
}
