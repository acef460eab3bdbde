//! Functions of sprig that reach out of the process.
//!
//! They are off until [`Functions::with_outside`](crate::Functions::with_outside) turns them on:
//! `expandenv` reads the whole environment of the injector, and `getHostByName` waits for DNS.

use std::net::ToSocketAddrs as _;

use crate::function::{Call, Function, Outcome, Param::Text, Refusal::ReachesOut};

pub(super) const TABLE: &[Function] =
    &[Function::refused("expandenv", ReachesOut), Function::refused("getHostByName", ReachesOut)];

pub(super) const EXPANDENV: &[Function] =
    &[Function::new("expandenv", &[Text], expandenv).outside()];

pub(super) const GET_HOST_BY_NAME: &[Function] =
    &[Function::new("getHostByName", &[Text], get_host_by_name).outside()];

/// Sprig takes a random address; this is the first one.
fn get_host_by_name(call: &mut Call<'_, '_>) -> Outcome {
    let name = String::from_utf8_lossy(call.text(0)).into_owned();
    let found = (&*name, 0).to_socket_addrs().map_err(|error| format!("lookup {name}: {error}"))?;
    let first = found.map(|address| address.ip().to_string()).next();
    call.give(first.ok_or_else(|| format!("lookup {name}: no such host"))?.into_bytes())
}

/// Special names of one character in a shell.
const SPECIAL: &[u8] = b"*#$@!?-0123456789";

/// Go: `os.Expand`.
fn expandenv(call: &mut Call<'_, '_>) -> Outcome {
    let mut out = Vec::new();
    let mut rest = call.text(0);
    while let Some(at) = rest.iter().position(|byte| *byte == b'$').filter(|at| at + 1 < rest.len())
    {
        out.extend_from_slice(&rest[..at]);
        let (name, length) = shell_name(&rest[at + 1..]);
        match name {
            // Wrong syntax is left out; a dollar sign without a name stays.
            b"" if length == 0 => out.push(b'$'),
            b"" => {}
            name => {
                let name = String::from_utf8_lossy(name);
                let value = (call.context.environment)(&name).unwrap_or_default();
                out.extend_from_slice(value.as_bytes());
                call.check_bytes(out.len())?;
            }
        }
        rest = &rest[at + 1 + length..];
    }
    out.extend_from_slice(rest);
    call.give(out)
}

/// The name after a dollar sign and how many bytes it takes. Go: `getShellName`.
fn shell_name(text: &[u8]) -> (&[u8], usize) {
    if let [b'{', body @ ..] = text {
        if let [special, b'}', ..] = body
            && SPECIAL.contains(special)
        {
            return (&body[..1], 3);
        }
        return match body.iter().position(|byte| *byte == b'}') {
            Some(0) => (b"", 2),
            Some(end) => (&body[..end], end + 2),
            None => (b"", 1),
        };
    }
    if text.first().is_some_and(|byte| SPECIAL.contains(byte)) {
        return (&text[..1], 1);
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
    (&text[..length], length)
}
