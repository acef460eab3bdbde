//! Rules for the values of a `ProxyConfig`.
//!
//! Go: `ValidateMeshConfigProxyConfig` of `pkg/config/validation`.

mod address;

#[cfg(test)]
mod tests;

use std::fmt;

use injectd_gotemplate::duration_text;

use self::address::check as check_address;
use super::message::{Message, Value};
use crate::release::{Delta, Release};

/// The longest drain duration before [`Delta::DrainWithoutLimit`]: an hour (`drainTimeMax`).
const MAX_DRAIN_NANOS: i64 = 3_600_000_000_000;

/// All rules that a `ProxyConfig` breaks. It prints as Go's `hashicorp/multierror` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The texts, which begin like Istio's; at least one.
    pub problems: Vec<String>,
}

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(f, "1 error occurred:")?,
            count => write!(f, "{count} errors occurred:")?,
        }
        for problem in &self.problems {
            write!(f, "\n\t* {problem}")?;
        }
        write!(f, "\n\n")
    }
}

/// Checks a `ProxyConfig` that has been laid over the built-in default.
///
/// # Errors
///
/// If it breaks rules.
pub fn proxy_config(config: &Message, release: Release) -> Result<(), Invalid> {
    let mut problems = Vec::new();
    names(config, &mut problems);
    drain(config, release, &mut problems);
    discovery(config, &mut problems);
    if let Some(tracing) = config.message("tracing") {
        self::tracing(tracing, &mut problems);
    }
    services(config, &mut problems);
    ports(config, &mut problems);
    if let Some(provider) = config.message("private_key_provider") {
        private_key_provider(provider, &mut problems);
    }
    if let Some(settings) = config.message("connection_settings")
        && release.has(Delta::ConnectionSettings)
    {
        connection_settings(settings, &mut problems);
    }
    if problems.is_empty() { Ok(()) } else { Err(Invalid { problems }) }
}

fn names(config: &Message, problems: &mut Vec<String>) {
    let mut require = |fits: bool, problem: &str| {
        if !fits {
            problems.push(problem.to_owned());
        }
    };
    require(!config.text("config_path").is_empty(), "config path must be set");
    require(!config.text("binary_path").is_empty(), "binary path must be set");
    match config.value("service_cluster") {
        Some(_) => {
            let cluster = config.text("service_cluster");
            require(!cluster.is_empty(), "service cluster must be specified");
        }
        None => require(
            config.value("tracing_service_name").is_some(),
            "oneof service cluster or tracing service name must be specified",
        ),
    }
}

/// Go: `ValidateDrainDuration`.
fn drain(config: &Message, release: Release, problems: &mut Vec<String>) {
    let nanos = duration(config, "drain_duration").unwrap_or(0);
    if nanos < 1_000_000 {
        problems.push("invalid drain duration: duration must be greater than 1ms".to_owned());
        return;
    }
    if nanos % 1_000_000 != 0 {
        let problem = "invalid drain duration: only durations to ms precision are supported";
        problems.push(problem.to_owned());
        return;
    }
    if nanos % 1_000_000_000 != 0 {
        problems.push("drain time only supports durations to seconds precision".to_owned());
    }
    if nanos > MAX_DRAIN_NANOS && !release.has(Delta::DrainWithoutLimit) {
        problems.push(format!("drain time {} must be <1h0m0s", duration_text(nanos)));
    }
}

fn discovery(config: &Message, problems: &mut Vec<String>) {
    match config.text("discovery_address") {
        "" => {
            let problem = "discovery address must be set to the proxy discovery service";
            problems.push(problem.to_owned());
        }
        address => problems.extend(prefixed("invalid discovery address:", check_address(address))),
    }
}

fn tracing(tracing: &Message, problems: &mut Vec<String>) {
    if let Some(tracer) = tracing.message("lightstep") {
        lightstep(tracer, problems);
    }
    for (name, prefix) in
        [("zipkin", "invalid zipkin config:"), ("datadog", "invalid datadog config:")]
    {
        if let Some(tracer) = tracing.message(name) {
            let address = tracer.text("address").replacen("$(HOST_IP)", "127.0.0.1", 1);
            problems.extend(prefixed(prefix, check_address(&address)));
        }
    }
    if let Some(settings) = tracing.message("tls_settings") {
        tls(settings, problems);
    }
}

fn lightstep(tracer: &Message, problems: &mut Vec<String>) {
    let mut add = |problem: String| problems.push(format!("invalid lightstep config: {problem}"));
    let address = tracer.text("address");
    if address.is_empty() {
        add("address is required".to_owned());
    }
    if let Some(problem) = prefixed("invalid lightstep address:", check_address(address)) {
        add(problem);
    }
    if tracer.text("access_token").is_empty() {
        add("access token is required".to_owned());
    }
}

fn tls(settings: &Message, problems: &mut Vec<String>) {
    let set = |name: &str| settings.value(name).is_some();
    let (simple, mutual) = (settings.integer("mode") == 1, settings.integer("mode") == 2);
    let mut add = |broken: bool, problem: &str| {
        if broken {
            problems.push(format!("invalid tracing TLS config: {problem}"));
        }
    };
    if settings.boolean("insecure_skip_verify") == Some(true) {
        let authority = set("ca_certificates") || set("subject_alt_names");
        add(
            simple && (authority || set("credential_name")),
            "cannot specify CaCertificates or CredentialName or SubjectAltNames when \
             InsecureSkipVerify is set true",
        );
        add(
            mutual && authority,
            "cannot specify CaCertificates or SubjectAltNames when InsecureSkipVerify is set true",
        );
    }
    if (simple || mutual) && set("credential_name") {
        let files = ["client_certificate", "ca_certificates", "private_key", "ca_crl"];
        add(
            files.into_iter().any(set),
            "cannot specify client certificates or CA certificate or CA CRL If credentialName is \
             set",
        );
        return;
    }
    add(mutual && !set("client_certificate"), "client certificate required for mutual tls");
    add(mutual && !set("private_key"), "private key required for mutual tls");
}

fn services(config: &Message, problems: &mut Vec<String>) {
    let service = |name: &str| config.message(name).map_or("", |service| service.text("address"));
    for (kind, address) in [
        ("statsd udp", config.text("statsd_udp_address")),
        ("envoy metrics service", config.text("envoy_metrics_service_address")),
        ("envoy metrics service", service("envoy_metrics_service")),
        ("envoy access log service", service("envoy_access_log_service")),
    ] {
        if !address.is_empty() {
            let prefix = format!("invalid {kind} address {address:?}:");
            problems.extend(prefixed(&prefix, check_address(address)));
        }
    }
}

fn ports(config: &Message, problems: &mut Vec<String>) {
    let port = |name: &str| address::check_port(config.integer(name));
    problems.extend(prefixed("invalid proxy admin port:", port("proxy_admin_port")));
    let policy = config.integer("control_plane_auth_policy");
    if !(0..=1).contains(&policy) {
        let name = if policy == 1000 { "INHERIT".to_owned() } else { policy.to_string() };
        let problem = format!("unrecognized control plane auth policy {name:?}");
        problems.push(format!("invalid authentication policy: {problem}"));
    }
    problems.extend(prefixed("invalid status port:", port("status_port")));
}

fn private_key_provider(provider: &Message, problems: &mut Vec<String>) {
    let mut add = |problem: &str| {
        problems.push(format!("invalid private key provider configuration: {problem}"));
    };
    let Some(device) = provider.message("cryptomb").or_else(|| provider.message("qat")) else {
        add("private key provider configuration is required");
        add("unknown private key provider");
        return;
    };
    match duration(device, "poll_delay") {
        None => add("pollDelay is required"),
        Some(0) => add("pollDelay must be non zero"),
        Some(_) => {}
    }
}

/// The least value of the integers in `connectionSettings`.
const LEAST: [(&str, i64); 7] = [
    ("listener_per_connection_buffer_limit_bytes", 0),
    ("cluster_per_connection_buffer_limit_bytes", 0),
    ("http_max_concurrent_streams", 1),
    ("http2_initial_stream_window_size", 65535),
    ("http2_initial_connection_window_size", 65535),
    ("listener_connection_limit", 1),
    ("global_downstream_connection_limit", 1),
];

fn connection_settings(settings: &Message, problems: &mut Vec<String>) {
    for (field, value) in settings.fields() {
        let least = LEAST.iter().find(|(name, _)| *name == field.name).map(|(_, least)| *least);
        let problem = match (value, least) {
            (Some(Value::Integer(number)), Some(least)) if *number < least => {
                format!("must be at least {least}")
            }
            (Some(Value::Duration(..0)), _) => "must not be negative".to_owned(),
            _ => continue,
        };
        problems.push(format!("invalid connection settings: {} {problem}", field.name));
    }
}

fn duration(message: &Message, name: &str) -> Option<i64> {
    match message.value(name) {
        Some(Value::Duration(nanos)) => Some(*nanos),
        _ => None,
    }
}

fn prefixed(prefix: &str, result: Result<(), String>) -> Option<String> {
    result.err().map(|problem| format!("{prefix} {problem}"))
}
