//! Paths with slashes. Go: `path`.

/// Bytes up to and with the last slash.
#[must_use]
pub fn directory(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)]
}

/// The path without its last element, cleaned: `.` if nothing is left. Go: `path.Dir`.
#[must_use]
pub fn dir(path: &[u8]) -> Vec<u8> {
    clean(directory(path))
}

/// The shortest path that is the same: without `.`, `..` where it can be, and empty elements. Go:
/// `path.Clean`.
#[must_use]
pub fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if kept.last().is_some_and(|last| *last != b"..") => drop(kept.pop()),
            b".." if rooted => {}
            part => kept.push(part),
        }
    }
    let joined = kept.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", joined.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}
