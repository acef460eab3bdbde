//! Names: of folders, images and objects.

use injectd_gocompat::path;

use super::{Call, Function, encode::hex, made, object, text};
use crate::value::{Fault, Res, Val};

/// Hexadecimal digits of a hash at the end of a name, and the hyphen before them.
const HASH: usize = 8;

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "dirname" => |call| {
            let folder = path::dir(text(call, 0)?.as_bytes());
            made(call, &String::from_utf8_lossy(&folder))
        },
        "dnsName" => dns_name,
        "image" => image,
        _ => return None,
    })
}

/// The parts of the name of an image, as they are written: a part that is not is empty.
fn image<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let reference = text(call, 0)?;
    let (name, digest) = reference.split_once('@').unwrap_or((&reference, ""));
    let last = name.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match name[last..].rfind(':') {
        Some(at) => (&name[..last + at], &name[last + at + 1..]),
        None => (name, ""),
    };
    // The first part is a registry if it cannot be a part of a path (`distribution/reference`).
    let is_registry = |first: &str| first.contains(['.', ':']) || first == "localhost";
    let (registry, repository) = match name.split_once('/') {
        Some((first, rest)) if is_registry(first) => (first, rest),
        _ => ("", name),
    };
    let mut part = |name: &'static str, text: &str| Ok((name, made(call, text)?));
    let fields = [
        part("registry", registry)?,
        part("repository", repository)?,
        part("tag", tag)?,
        part("digest", digest)?,
    ];
    object(fields, call.work)
}

/// A text as a label of a DNS name of at most so many characters.
fn dns_name<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (name, max) = (text(call, 0)?, call.int(1)?);
    let max = usize::try_from(max).unwrap_or_default();
    if max < HASH + 2 {
        return Fault::error(format!("dnsName: {max} characters are too few"));
    }
    let allowed = |letter: char| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    let replaced: String = name.chars().map(allowed).collect();
    let trimmed = replaced.trim_matches('-');
    if trimmed.is_empty() {
        return Fault::error("dnsName: the text has no letter or digit");
    }
    if trimmed.len() <= max {
        return made(call, trimmed);
    }
    let hash = hex(&name);
    let kept = trimmed[..max - HASH - 1].trim_end_matches('-');
    made(call, &format!("{kept}-{}", &hash[..HASH]))
}
