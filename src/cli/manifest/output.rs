//! Prints objects as YAML documents or as a List in JSON.

#![expect(clippy::disallowed_types, reason = "objects are printed as trees")]

use std::io::{self, Write as _};

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    Yaml,
    Json,
}

pub(super) fn print(objects: &[Value], format: Format) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::Yaml => {
            let documents: Vec<_> = objects.iter().map(injectd_yaml::write).collect();
            out.write_all(documents.join("---\n").as_bytes())
        }
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            serde_json::to_writer_pretty(&mut out, &list)?;
            writeln!(out)
        }
    }
}

pub(super) fn text(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}
