//! URLs of webhooks, as Go's `url.Parse` reads them and `ValidateWebhookURL` accepts them.

use injectd_gocompat::url::{is_escaped, is_hex, is_host};

/// Why the API server rejects a URL; empty if it accepts it.
pub(super) fn problems(url: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if url.bytes().any(|byte| byte.is_ascii_control()) {
        return vec!["it has a control character".to_owned()];
    }
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let is_https = url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    if !is_https {
        return vec![format!("{url:?} does not begin with https://")];
    }
    let (rest, query) = url[6..].split_once('?').unwrap_or((&url[6..], ""));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if user.is_some() {
        problems.push("user info is not allowed".to_owned());
    }
    match host {
        "" => problems.push("the host is missing".to_owned()),
        host if !is_host(host) => problems.push(format!("{host:?} is not HOST[:PORT]")),
        _ => {}
    }
    if !is_escaped(path, is_hex, |_| true) {
        problems.push(format!("{path:?} has a % that two hexadecimal digits do not follow"));
    }
    for (part, what) in [(query, "a query"), (fragment, "a fragment")] {
        if !part.is_empty() {
            problems.push(format!("{what} is not allowed"));
        }
    }
    problems
}

/// The port of a URL that the API server accepts.
pub(super) fn port(url: &str) -> Option<&str> {
    let authority = url.split("//").nth(1)?.split('/').next()?;
    let (_, port) = authority.rsplit_once(':')?;
    (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(port)
}
