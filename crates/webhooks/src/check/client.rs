//! `clientConfig`: where the API server sends reviews.

use injectd_k8s::names;
use serde_json::Value;

use super::{Findings, Severity, url};

pub(super) fn check(config: &Value, at: &mut Findings<'_>) {
    match (config["url"].as_str(), &config["service"]) {
        (None, Value::Null) => {
            let advice = "Set service, or url for a server outside of the cluster.";
            at.error("clientConfig", "neither url nor service is set", advice);
        }
        (Some(url), Value::Null) => check_url(url, at),
        (None, service) => check_service(service, at),
        (Some(_), _) => {
            at.error("clientConfig", "url and service are both set", "Remove one of them.");
        }
    }
    let is_base64 = |text: &str| {
        let text: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
        let body = text.trim_end_matches('=');
        text.len().is_multiple_of(4)
            && text.len() - body.len() <= 2
            && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
    };
    if config["caBundle"].as_str().is_some_and(|bundle| !is_base64(bundle)) {
        let advice = "Use base64 of PEM certificates, in one line.";
        at.error("clientConfig.caBundle", "it is not base64", advice);
    }
}

fn check_url(url: &str, at: &mut Findings<'_>) {
    let field = "clientConfig.url";
    let advice = "Use https://HOST[:PORT]/PATH.";
    let problems = url::problems(url);
    let port = url::port(url).filter(|_| problems.is_empty());
    if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        // The API server accepts it.
        let problem = format!("{} is not a port: each call fails", port.unwrap_or_default());
        at.add(Severity::Danger, field, problem, advice);
    }
    for problem in problems {
        at.error(field, problem, advice);
    }
}

fn check_service(service: &Value, at: &mut Findings<'_>) {
    if at.place.is_static() {
        let problem = "an API server loads no configuration with a Service from its files";
        at.error("clientConfig.service", problem, "Set url, or rename the configuration.");
    }
    let field = |name: &str| format!("clientConfig.service.{name}");
    for name in ["namespace", "name"] {
        if service[name].as_str().is_none_or(str::is_empty) {
            at.error(field(name), "it is required", "Name the Service and its namespace.");
        }
    }
    let port = &service["port"];
    if !port.is_null() && !port.as_i64().is_some_and(|port| (1..=65535).contains(&port)) {
        at.error(field("port"), format!("{port} is not a port"), "Use 1 to 65535 (default 443).");
    }
    let path = service["path"].as_str().unwrap_or_default();
    let steps = path.strip_prefix('/').map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    let is_path = |steps: &str| steps.is_empty() || steps.split('/').all(names::is_dns_subdomain);
    if !path.is_empty() && (path == "//" || !steps.is_some_and(is_path)) {
        let advice = "Begin it with /, and use lower case letters, digits, '-' and '.' between \
                      slashes, as the API server demands.";
        at.error(field("path"), format!("{path:?} is not a path"), advice);
    }
}
