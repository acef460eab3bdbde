//! URLs, as Go reads them (`net/url`).

use injectd_gocompat::url::{is_escaped, is_hex, is_host};

/// A URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

/// The text that escapes stand for; `None` if one is not valid.
pub(crate) fn decoded(text: &str, is_query: bool) -> Option<String> {
    if !is_escaped(text, is_hex, |_| true) {
        return None;
    }
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default();
                let (high, low) = (bytes.next()?, bytes.next()?);
                u8::try_from(digit(high) * 16 + digit(low)).ok()?
            }
            b'+' if is_query => b' ',
            byte => byte,
        });
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// The scheme and the rest; `None` if there is a colon and no scheme before it.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let end = text.bytes().position(|byte| !is_of_scheme(byte));
    match end {
        Some(0) if text.starts_with(':') => None,
        Some(end) if text.as_bytes()[end] == b':' && text.as_bytes()[0].is_ascii_alphabetic() => {
            Some((&text[..end], &text[end + 1..]))
        }
        _ => Some(("", text)),
    }
}

/// `url.ParseRequestURI`: a URL with a scheme, or a path.
pub(crate) fn is_of_request(text: &str) -> bool {
    let Some((scheme, rest)) = split(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if text == "*" {
        return true;
    }
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let has_host = !scheme.is_empty() && rest.starts_with("//");
    let (authority, path) = if has_host { authority(rest) } else { ("", rest) };
    is_authority(authority) && decoded(path, false).is_some()
}

fn split(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() || text.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    scheme(text)
}

/// The authority and the path of what begins with two slashes.
fn authority(rest: &str) -> (&str, &str) {
    let rest = rest.get(2..).unwrap_or_default();
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let is_of_user =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    (host.is_empty() || is_host(host)) && is_escaped(user, is_hex, is_of_user)
}

impl Url {
    /// Reads a URL as `url.ParseRequestURI` does; `None` if the text is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if !is_of_request(text) {
            return None;
        }
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        decoded(fragment, false)?;
        let (scheme, rest) = split(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let is_opaque = !rest.starts_with('/') && !scheme.is_empty();
        let has_host = rest.starts_with("//") && (!scheme.is_empty() || !rest.starts_with("///"));
        let (authority, path) = if has_host { authority(rest) } else { ("", rest) };
        if !is_authority(authority) {
            return None;
        }
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        Some(Self {
            scheme: scheme.to_ascii_lowercase(),
            host: decoded(host, false)?,
            path: if is_opaque { String::new() } else { escaped_path(path)? },
            query: query.to_owned(),
        })
    }

    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host with its port.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The host without its port and without brackets.
    pub(crate) fn hostname(&self) -> &str {
        let host = &*self.host;
        let host = host.strip_suffix(self.port()).and_then(|host| host.strip_suffix(':'));
        let host = host.unwrap_or(&self.host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// Empty without one.
    pub(crate) fn port(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((before, port)) if !before.starts_with('[') || before.ends_with(']') => port,
            _ => "",
        }
    }

    pub(crate) fn escaped_path(&self) -> &str {
        &self.path
    }

    /// As it is written, without the question mark.
    pub(crate) fn query(&self) -> &str {
        &self.query
    }
}

/// `URL.EscapedPath`: as it is written if that is valid, else escaped again.
fn escaped_path(path: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    let is_valid = |byte: u8| is_plain(byte) || b"!'()*[]%".contains(&byte);
    let decoded = decoded(path, false)?;
    if path.bytes().all(is_valid) {
        return Some(path.to_owned());
    }
    Some(decoded.bytes().fold(String::new(), |mut out, byte| {
        if is_plain(byte) {
            out.push(byte.into());
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.extend(
                    char::from_digit(u32::from(digit), 16)
                        .map(|letter| letter.to_ascii_uppercase()),
                );
            }
        }
        out
    }))
}
