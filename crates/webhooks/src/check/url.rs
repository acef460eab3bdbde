//! URLs of webhooks, as Go's `url.Parse` reads them and `ValidateWebhookURL` accepts them.

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

pub(crate) fn is_host(text: &str) -> bool {
    let is_port = |text: &str| {
        let digits = text.strip_prefix(':');
        text.is_empty() || digits.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.rsplit_once(']') else { return false };
        let address = address.split_once("%25").map_or(address, |(address, _)| address);
        return is_port(port) && address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
    // Only bytes beyond ASCII, and the percent sign.
    let is_escape =
        |hex: &[u8]| is_hex(hex) && (hex == b"25" || !hex[0].is_ascii_digit() || hex[0] >= b'8');
    let is_allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-_.~!$&'()*+,;=[]<>\"".contains(&byte)
    };
    is_port(port) && is_escaped(name, is_escape, is_allowed)
}

pub(crate) fn is_hex(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}

/// Whether all bytes are allowed, and two digits that are allowed follow each `%`.
pub(crate) fn is_escaped(
    text: &str,
    is_escape: impl Fn(&[u8]) -> bool,
    is_allowed: impl Fn(u8) -> bool,
) -> bool {
    let mut parts = text.as_bytes().split(|byte| *byte == b'%');
    let first = parts.next().unwrap_or_default();
    let all_allowed = |part: &[u8]| part.iter().all(|byte| is_allowed(*byte));
    all_allowed(first)
        && parts.all(|part| {
            part.split_at_checked(2).is_some_and(|(hex, rest)| is_escape(hex) && all_allowed(rest))
        })
}
