//! `urlParse` and `urlJoin` of sprig. Go: `net/url`.

mod escape;
mod parse;

use escape::{Part, escape};
use parse::{Url, User};

use crate::{
    function::{
        Call, Function, Outcome,
        Param::{Map as Dict, Text as Str},
    },
    value::{Entries, Map, Value},
};

pub(super) const TABLE: &[Function] =
    &[Function::new("urlJoin", &[Dict], join), Function::new("urlParse", &[Str], parse)];

fn parse(call: &mut Call<'_, '_>) -> Outcome {
    let url = Url::parse(call.text(0)).map_err(|text| format!("unable to parse url: {text}"))?;
    let hostname = url.hostname().to_vec();
    let user = url.user.as_ref().map_or_else(Vec::new, User::shown);
    let entries: Entries = [
        ("scheme", url.scheme),
        ("host", url.host),
        ("hostname", hostname),
        ("path", url.path),
        ("query", url.query),
        ("opaque", url.opaque),
        ("fragment", url.fragment),
        ("userinfo", user),
    ]
    .into_iter()
    .map(|(key, text)| (key.into(), Value::from(text)))
    .collect();
    Ok(Map::new(entries).into())
}

/// A string of the map; the error is for another type.
fn string(map: &Map, key: &str) -> Result<Vec<u8>, String> {
    match map.get(key.as_bytes()) {
        None => Ok(Vec::new()),
        Some(Value::Nil) => Err(super::lists::NIL_DEREFERENCE.to_owned()),
        Some(value) => match value.plain().as_ref() {
            Value::Text(text) => Ok(text.to_vec()),
            value => Err(format!(
                "unable to parse {key} key, must be of type string, but {} found",
                value.kind().name()
            )),
        },
    }
}

fn join(call: &mut Call<'_, '_>) -> Outcome {
    let map = call.map(0);
    let scheme = string(&map, "scheme")?;
    let host = string(&map, "host")?;
    let path = string(&map, "path")?;
    let query = string(&map, "query")?;
    let opaque = string(&map, "opaque")?;
    let fragment = string(&map, "fragment")?;
    let user = string(&map, "userinfo")?;
    let mut out = Vec::new();
    if !scheme.is_empty() {
        out.extend_from_slice(&scheme);
        out.push(b':');
    }
    let user = if user.is_empty() { None } else { Some(user_of(&user)?) };
    if opaque.is_empty() {
        write_host(&mut out, &host, &path, user.as_ref());
        let path = escaped_path(&path);
        if !path.is_empty() && path[0] != b'/' && !host.is_empty() {
            out.push(b'/');
        }
        let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
        if out.is_empty() && first.contains(&b':') {
            out.extend_from_slice(b"./");
        }
        out.extend_from_slice(&path);
    } else {
        out.extend_from_slice(&opaque);
    }
    if !query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&query);
    }
    if !fragment.is_empty() {
        out.push(b'#');
        out.extend_from_slice(&escape(&fragment, Part::Fragment));
    }
    call.give(out)
}

fn escaped_path(path: &[u8]) -> Vec<u8> {
    if path == b"*" { path.to_vec() } else { escape(path, Part::Path) }
}

fn write_host(out: &mut Vec<u8>, host: &[u8], path: &[u8], user: Option<&User>) {
    let is_there = !host.is_empty() || user.is_some();
    if is_there || !out.is_empty() && !path.is_empty() {
        out.extend_from_slice(b"//");
    }
    if let Some(user) = user {
        out.extend_from_slice(&user.shown());
        out.push(b'@');
    }
    out.extend_from_slice(&escape(host, Part::Host));
}

fn user_of(text: &[u8]) -> Result<User, String> {
    let url = Url::parse(&[b"proto://", text, b"@host"].concat())
        .map_err(|text| format!("unable to parse userinfo in dict: {text}"))?;
    Ok(url.user.unwrap_or_default())
}
