//! Functions of sprig that templates cannot use.
//!
//! They make keys, certificates and passwords, which differ for each pod and cost much time, or ask
//! the network. `expandenv` reads the environment of the injector; see
//! [`Functions::with_expandenv`](crate::Functions::with_expandenv).

use crate::function::{Call, Function, Outcome, Param::Text};

pub(super) const TABLE: &[Function] = &[
    Function::refused("bcrypt"),
    Function::refused("buildCustomCert"),
    Function::refused("decryptAES"),
    // It takes 32 MiB and a tenth of a second.
    Function::refused("derivePassword"),
    Function::refused("encryptAES"),
    Function::refused("expandenv"),
    Function::refused("genCA"),
    Function::refused("genCAWithKey"),
    Function::refused("genPrivateKey"),
    Function::refused("genSelfSignedCert"),
    Function::refused("genSelfSignedCertWithKey"),
    Function::refused("genSignedCert"),
    Function::refused("genSignedCertWithKey"),
    // It waits for DNS.
    Function::refused("getHostByName"),
    Function::refused("htpasswd"),
];

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
