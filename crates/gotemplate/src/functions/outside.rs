//! Functions of sprig that reach out of the process.
//!
//! `getHostByName` is always refused, since it waits for DNS. `expandenv` reads the environment of the
//! injector; see [`Functions::with_expandenv`](crate::Functions::with_expandenv).

use crate::function::{Call, Function, Outcome, Param::Text};

pub(super) const TABLE: &[Function] =
    &[Function::refused("expandenv"), Function::refused("getHostByName")];

pub(super) const EXPANDENV: &[Function] =
    &[Function::new("expandenv", &[Text], expandenv).outside()];

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
