//! Prints objects as YAML documents or as a List in JSON.

use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::cli::{
    format::Format,
    print::{Printer, stdout},
};

pub(super) fn print(objects: &[Value], format: Format) -> io::Result<()> {
    if format == Format::Json {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return Printer::stdout().json(&list);
    }
    let documents: Vec<_> = objects.iter().map(injectd_yaml::write).collect();
    stdout().write_all(documents.join("---\n").as_bytes())
}

pub(super) fn text(text: &str) -> io::Result<()> {
    stdout().write_all(text.as_bytes())
}
