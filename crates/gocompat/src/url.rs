//! Parts of URLs, as Go's `url.Parse` reads them.

/// Whether a text is a host with or without a port, such as `[::1]:443`.
#[must_use]
pub fn is_host(text: &str) -> bool {
    let is_port = |text: &str| {
        let digits = text.strip_prefix(':');
        text.is_empty() || digits.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
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

/// Whether all digits are hexadecimal.
#[must_use]
pub fn is_hex(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}

/// Whether all bytes are allowed, and two digits that are allowed follow each `%`.
pub fn is_escaped(
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
