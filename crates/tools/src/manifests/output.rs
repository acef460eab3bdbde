//! Prints the documents: of one file as the file has them, of several as one stream of YAML.

use std::{
    io::{self, Write},
    ops::Range,
};

use injectd_command::{CommandError, print::stdout};
use injectd_yaml::Format;
use serde_json::Value;

const SEPARATOR: &str = "---\n";
const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// A file and its documents.
pub(super) struct File {
    pub(super) text: String,
    pub(super) documents: Vec<Written>,
}

/// A document of a file.
pub(super) struct Written {
    pub(super) place: Range<usize>,
    /// What it is written in now.
    pub(super) format: Format,
    /// Its text; `None` if it did not change, empty if it is left out.
    pub(super) text: Option<String>,
}

/// Prints all files. `forced` is the format of --output.
pub(super) fn write(files: Vec<File>, forced: Option<Format>) -> Result<(), CommandError> {
    let mut out = io::BufWriter::new(stdout());
    let one = files.len() == 1;
    let print = || {
        for file in files {
            match forced {
                None if one => file.write(&mut out)?,
                Some(Format::Json) => file.write_json(&mut out)?,
                _ => file.write_yaml(&mut out, one)?,
            }
        }
        out.flush()
    };
    print().map_err(CommandError::output)
}

impl File {
    /// As it is, with the changed documents.
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut at = 0;
        for document in &self.documents {
            if let Some(text) = &document.text {
                out.write_all(&self.text.as_bytes()[at..document.place.start])?;
                out.write_all(text.as_bytes())?;
                at = document.place.end;
            }
        }
        out.write_all(&self.text.as_bytes()[at..])
    }

    /// A stream of JSON values.
    fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        for text in self.texts() {
            writeln!(out, "{}", text.trim())?;
        }
        Ok(())
    }

    /// A part of a stream of YAML: it begins with a separator, unless it is the only part, and ends
    /// with a line break.
    fn write_yaml(&self, out: &mut impl Write, one: bool) -> io::Result<()> {
        // Only then may documents be JSON.
        if !self.text.trim_start().starts_with('{') {
            let mut text = Vec::new();
            self.write(&mut text)?;
            let text = String::from_utf8_lossy(&text);
            let text = if one { &text } else { text.trim_start_matches(BYTE_ORDER_MARK) };
            if !one && !text.starts_with("---") {
                out.write_all(SEPARATOR.as_bytes())?;
            }
            return write_line(out, text);
        }
        for (index, document) in self.documents.iter().enumerate() {
            let text = self.text_of(document);
            let text = match document.format {
                Format::Json => &as_yaml(text),
                Format::Yaml => text,
            };
            if index > 0 || !one {
                out.write_all(SEPARATOR.as_bytes())?;
            }
            write_line(out, text)?;
        }
        Ok(())
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.documents
            .iter()
            .map(|document| self.text_of(document))
            .filter(|text| !text.trim().is_empty())
    }

    fn text_of<'f>(&'f self, document: &'f Written) -> &'f str {
        document.text.as_deref().unwrap_or(&self.text[document.place.clone()])
    }
}

fn write_line(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") }
}

/// JSON, if it reads the same as YAML; else YAML. A tab or `\/` is no YAML 1.1.
fn as_yaml(json: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(json) else { return json.to_owned() };
    match injectd_yaml::parse(json, injectd_yaml::Options::default()) {
        Ok(read) if read == value => json.to_owned(),
        _ => injectd_yaml::write(&value),
    }
}
