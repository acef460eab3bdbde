//! The parts of a URL.

use std::net::Ipv6Addr;

use super::escape::{Part, escape, unescape};
use crate::quote::quote;

/// A name and perhaps a password.
#[derive(Clone, Debug, Default)]
pub(super) struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl User {
    /// As in a URL.
    pub(super) fn shown(&self) -> Vec<u8> {
        let mut out = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            out.push(b':');
            out.extend_from_slice(&escape(password, Part::User));
        }
        out
    }
}

/// A URL; parts that are not there are empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Url {
    pub(super) scheme: Vec<u8>,
    pub(super) opaque: Vec<u8>,
    pub(super) user: Option<User>,
    pub(super) host: Vec<u8>,
    pub(super) path: Vec<u8>,
    pub(super) query: Vec<u8>,
    pub(super) fragment: Vec<u8>,
}

/// The text before a byte, and after it if it is there.
fn cut(text: &[u8], byte: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|found| *found == byte) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

impl Url {
    /// Go: `url.Parse`.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let (body, fragment) = cut(text, b'#');
        let wrong =
            |text: &[u8], message: String| format!("parse {}: {message}", quote(text, false));
        let mut url = Self::without_fragment(body).map_err(|message| wrong(body, message))?;
        if let Some(fragment) = fragment {
            url.fragment =
                unescape(fragment, Part::Fragment).map_err(|message| wrong(text, message))?;
        }
        Ok(url)
    }

    fn without_fragment(text: &[u8]) -> Result<Self, String> {
        let mut url = Self::default();
        if text.iter().any(u8::is_ascii_control) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text == b"*" {
            url.path = text.to_vec();
            return Ok(url);
        }
        let (scheme, rest) = scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = cut(rest, b'?');
        url.query = query.unwrap_or_default().to_vec();
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_vec();
                return Ok(url);
            }
            if cut(rest, b'/').0.contains(&b':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        if rest.starts_with(b"//") && (!url.scheme.is_empty() || !rest.starts_with(b"///")) {
            let authority = &rest[2..];
            let end = authority.iter().position(|byte| *byte == b'/').unwrap_or(authority.len());
            url.set_authority(&authority[..end])?;
            rest = &authority[end..];
        }
        url.path = unescape(rest, Part::Path)?;
        Ok(url)
    }

    fn set_authority(&mut self, authority: &[u8]) -> Result<(), String> {
        let Some(at) = authority.iter().rposition(|byte| *byte == b'@') else {
            self.host = host(&self.scheme, authority)?;
            return Ok(());
        };
        self.host = host(&self.scheme, &authority[at + 1..])?;
        let info = &authority[..at];
        let is_allowed =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
        if !info.iter().all(is_allowed) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = cut(info, b':');
        let password = password.map(|password| unescape(password, Part::User));
        let (name, password) = (unescape(name, Part::User)?, password.transpose()?);
        self.user = Some(User { name, password });
        Ok(())
    }

    /// The host without its port. Go: `URL.Hostname`.
    pub(super) fn hostname(&self) -> &[u8] {
        let host = self.host.as_slice();
        let colon = host.iter().rposition(|byte| *byte == b':');
        let without_port = match colon {
            Some(colon) if is_port(&host[colon..]) => &host[..colon],
            _ => host,
        };
        without_port
            .strip_prefix(b"[")
            .and_then(|inner| inner.strip_suffix(b"]"))
            .unwrap_or(without_port)
    }
}

fn scheme(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok((b"", text))
}

/// Nothing, or a colon and digits.
fn is_port(text: &[u8]) -> bool {
    text.is_empty() || text[0] == b':' && text[1..].iter().all(u8::is_ascii_digit)
}

fn check_port(text: &[u8]) -> Result<(), String> {
    if is_port(text) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quote(text, false)))
}

fn host(scheme: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
    match text.iter().rposition(|byte| *byte == b'[') {
        Some(0) => return literal(text),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let Some(first) = text.iter().position(|byte| *byte == b':') {
        // Go refuses a second colon in these; URLs of databases may list hosts with their ports.
        let strict = scheme == b"http" || scheme == b"https";
        let last = text.iter().rposition(|byte| *byte == b':').unwrap_or(first);
        check_port(&text[if strict { first } else { last }..])?;
    }
    unescape(text, Part::Host)
}

/// An address of IPv6 in brackets, perhaps with a zone and a port.
fn literal(text: &[u8]) -> Result<Vec<u8>, String> {
    let close = text.iter().rposition(|byte| *byte == b']').ok_or("missing ']' in host")?;
    let port = &text[close + 1..];
    check_port(port)?;
    let name = &text[1..close];
    // In RFC 6874 a zone begins with an escaped percent sign.
    let zone = super::super::strings::find(name, b"%25").unwrap_or(name.len());
    let mut host = unescape(&name[..zone], Part::Host)?;
    host.extend(unescape(&name[zone..], Part::Zone)?);
    let address = host.split(|byte| *byte == b'%').next().unwrap_or_default();
    let address = std::str::from_utf8(address).ok().and_then(|text| text.parse::<Ipv6Addr>().ok());
    if address.is_none() {
        return Err("invalid IP-literal".to_owned());
    }
    Ok([b"[", host.as_slice(), b"]", port].concat())
}
