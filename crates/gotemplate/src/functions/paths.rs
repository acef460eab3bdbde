//! Paths with slashes, and paths of files, which on Linux are the same. Go: `path`.

use crate::function::{Function, Param::Text};

pub(super) const TABLE: &[Function] = &[
    Function::new("base", &[Text], |call| Ok(base(call.text(0)).into())),
    Function::new("clean", &[Text], |call| Ok(clean(call.text(0)).into())),
    Function::new("dir", &[Text], |call| Ok(dir(call.text(0)).into())),
    Function::new("ext", &[Text], |call| Ok(ext(call.text(0)).into())),
    Function::new("isAbs", &[Text], |call| Ok(call.text(0).starts_with(b"/").into())),
    Function::new("osBase", &[Text], |call| Ok(base(call.text(0)).into())),
    Function::new("osClean", &[Text], |call| Ok(clean(call.text(0)).into())),
    Function::new("osDir", &[Text], |call| Ok(dir(call.text(0)).into())),
    Function::new("osExt", &[Text], |call| Ok(ext(call.text(0)).into())),
    Function::new("osIsAbs", &[Text], |call| Ok(call.text(0).starts_with(b"/").into())),
];

/// Bytes up to and with the last slash.
pub(super) fn directory(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)]
}

fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let Some(last) = path.iter().rposition(|byte| *byte != b'/') else { return b"/" };
    let path = &path[..=last];
    &path[directory(path).len()..]
}

fn dir(path: &[u8]) -> Vec<u8> {
    clean(directory(path))
}

fn ext(path: &[u8]) -> &[u8] {
    let name = &path[directory(path).len()..];
    name.iter().rposition(|byte| *byte == b'.').map_or(b"", |at| &name[at..])
}

fn clean(path: &[u8]) -> Vec<u8> {
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
