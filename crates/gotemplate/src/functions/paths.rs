//! Paths with slashes, and paths of files, which on Linux are the same. Go: `path`.

pub(super) use injectd_gocompat::path::directory;
use injectd_gocompat::path::{clean, dir};

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

fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let Some(last) = path.iter().rposition(|byte| *byte != b'/') else { return b"/" };
    let path = &path[..=last];
    &path[directory(path).len()..]
}

fn ext(path: &[u8]) -> &[u8] {
    let name = &path[directory(path).len()..];
    name.iter().rposition(|byte| *byte == b'.').map_or(b"", |at| &name[at..])
}
