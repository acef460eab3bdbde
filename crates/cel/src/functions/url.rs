//! URLs, as Go reads them (`pkg/cel/library/urls.go`).

use std::rc::Rc;

use injectd_gocompat::url::{is_escaped, is_hex, is_host};

use super::{Call, Function};
use crate::{
    value::{Fault, Made, Map, Res, Val},
    work::Work,
};

/// A URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "url" => |call| match Url::parse(&call.text(0)?) {
            Some(url) => Ok(Val::Url(Rc::new(url))),
            None => Fault::error("URL parse error during conversion from string"),
        },
        "isURL" => |call| Ok(Val::Bool(is_of_request(&call.text(0)?))),
        ".getScheme" => |call| part(call, |url| &url.scheme),
        ".getHost" => |call| part(call, |url| &url.host),
        ".getHostname" => |call| part(call, |url| hostname(&url.host)),
        ".getPort" => |call| part(call, |url| port(&url.host)),
        ".getEscapedPath" => |call| part(call, |url| &url.path),
        ".getQuery" => |call| {
            let url = one(call)?;
            query(&url.query, call.work)
        },
        _ => return None,
    })
}

fn one(call: &Call<'_, '_>) -> Res<Rc<Url>> {
    match call.at(0)? {
        Val::Url(url) => Ok(Rc::clone(url)),
        _ => Fault::overload(),
    }
}

fn part<'d>(call: &mut Call<'_, 'd>, of: fn(&Url) -> &str) -> Res<Val<'d>> {
    let url = one(call)?;
    call.made(of(&url))
}

fn hostname(host: &str) -> &str {
    let host =
        host.strip_suffix(port(host)).and_then(|host| host.strip_suffix(':')).unwrap_or(host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((before, port)) if !before.starts_with('[') || before.ends_with(']') => port,
        _ => "",
    }
}

fn query<'d>(text: &str, work: &mut Work) -> Res<Val<'d>> {
    let mut found: Vec<(String, Vec<Val<'d>>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (decoded(key, true), decoded(value, true)) else { continue };
        work.spend(key.len() + value.len())?;
        work.spend_items(2)?;
        let place = *places.entry(key.clone()).or_insert_with(|| {
            found.push((key, Vec::new()));
            found.len() - 1
        });
        found[place].1.push(Val::text(value));
    }
    let mut made = Made::default();
    for (key, values) in found {
        made.insert(Val::text(key), Val::list(values), work)?;
    }
    Ok(Val::Map(Map::Made(Rc::new(made))))
}

/// The text that escapes stand for; `None` if one is not valid.
fn decoded(text: &str, is_query: bool) -> Option<String> {
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
pub(super) fn is_of_request(text: &str) -> bool {
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
    fn parse(text: &str) -> Option<Self> {
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
