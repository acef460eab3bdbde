//! `clientConfig`: where the API server sends reviews.

use serde_json::Value;

use super::Findings;

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
    let bundle = &config["caBundle"];
    let is_base64 = |text: &str| {
        let body = text.trim_end_matches('=');
        text.len().is_multiple_of(4)
            && text.len() - body.len() <= 2
            && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
    };
    if !bundle.is_null() && !bundle.as_str().is_some_and(is_base64) {
        let advice = "Use base64 of PEM certificates, in one line.";
        at.error("clientConfig.caBundle", "it is not base64", advice);
    }
}

fn check_url(url: &str, at: &mut Findings<'_>) {
    let field = "clientConfig.url";
    let advice = "Use https://HOST[:PORT]/PATH.";
    let Some(rest) = url.strip_prefix("https://") else {
        let problem = format!("{url:?} does not begin with https://");
        return at.error(field, problem, advice);
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    let (host, port) = match host.rsplit_once(':') {
        // The colons of an IPv6 address are in brackets.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (host, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if user.is_some() {
        at.error(field, "user info is not allowed", advice);
    }
    if host.is_empty() {
        at.error(field, "the host is missing", advice);
    }
    if port.is_some_and(|port| !is_port(port)) {
        at.error(field, format!("{:?} is not a port", port.unwrap_or_default()), advice);
    }
    for (character, what) in [('?', "a query"), ('#', "a fragment")] {
        if path.contains(character) {
            at.error(field, format!("{what} is not allowed"), advice);
        }
    }
}

fn check_service(service: &Value, at: &mut Findings<'_>) {
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
    let Some(path) = service["path"].as_str() else { return };
    let is_segment = |segment: &str| {
        !segment.is_empty()
            && segment
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&byte))
    };
    let trimmed = path.strip_prefix('/').map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    let is_path = trimmed.is_some_and(|rest| rest.is_empty() || rest.split('/').all(is_segment));
    if !is_path {
        let advice = "Use a path that begins with / and has no empty segment.";
        at.error(field("path"), format!("{path:?} is not a path"), advice);
    }
}
