//! Names of fields and types in JSON and in Go.

/// The key in JSON: `_` is dropped and the letter behind it is a capital.
pub(super) fn json(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut capital = false;
    for c in name.chars() {
        match c {
            '_' => capital = true,
            _ if capital => {
                out.push(c.to_ascii_uppercase());
                capital = false;
            }
            _ => out.push(c),
        }
    }
    out
}

/// The name in Go. `_` is dropped only before a small letter, and letters behind digits are capitals:
/// `http1_pending` is `Http1Pending`, `enable_64bit_id` is `Enable_64BitId`.
///
/// Go: `GoCamelCase` of `google.golang.org/protobuf/internal/strs`.
pub(super) fn go(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut capital = true;
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let before_small = rest.peek().is_some_and(char::is_ascii_lowercase);
        match c {
            '_' if before_small => capital = true,
            _ if c.is_ascii_lowercase() && capital => {
                out.push(c.to_ascii_uppercase());
                capital = false;
            }
            _ => {
                capital = !c.is_ascii_alphabetic();
                out.push(c);
            }
        }
    }
    out
}

/// The name of a type in Go: the last part of the package, and nested names joined with `_`.
pub(super) fn go_type(full: &str) -> String {
    let start = full.find(|c: char| c.is_ascii_uppercase()).unwrap_or(full.len());
    let (package, name) = full.split_at(start);
    let package = package.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    format!("{package}.{}", name.replace('.', "_"))
}
