//! Prints objects as YAML documents or as a List in JSON.

#![expect(clippy::disallowed_types, reason = "objects are printed as trees")]

use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::cli::print::{Printer, stdout};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    Yaml,
    Json,
}

pub(super) fn print(objects: &[Value], format: Format) -> io::Result<()> {
    match format {
        Format::Yaml => {
            let documents: Vec<_> = objects.iter().map(injectd_yaml::write).collect();
            stdout().write_all(documents.join("---\n").as_bytes())
        }
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            Printer::stdout().json(&list)
        }
    }
}

pub(super) fn text(text: &str) -> io::Result<()> {
    stdout().write_all(text.as_bytes())
}
