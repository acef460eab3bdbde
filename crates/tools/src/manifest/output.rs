//! Prints objects as YAML documents or as a List in JSON.

use std::io::{self, Write as _};

use injectd_command::{
    format::Format,
    print::{Printer, stdout},
};
use serde_json::{Value, json};

pub(super) fn print(objects: &[Value], format: Format) -> io::Result<()> {
    if format == Format::Json {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return Printer::stdout().json(&list);
    }
    stdout().write_all(documents(objects).as_bytes())
}

/// Objects as documents of YAML.
pub(super) fn documents(objects: &[Value]) -> String {
    let documents: Vec<_> = objects.iter().map(injectd_yaml::write).collect();
    documents.join("---\n")
}

pub(super) fn text(text: &str) -> io::Result<()> {
    stdout().write_all(text.as_bytes())
}
