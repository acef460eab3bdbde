//! Errors of the command line. clap's messages have several lines and quote what the caller typed.

use std::error::Error as _;

use clap::error::ContextValue;
use injectd_core::text::printable;

use super::print_line;

/// Prints an error on stderr.
pub fn print_usage(error: clap::Error) {
    for line in text(error).lines() {
        print_line(line);
    }
}

/// The error in one line, without the word `error`.
pub fn in_one_line(error: clap::Error) -> String {
    let text = text(error);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join("; ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// The message; only clap's own line breaks are in it.
fn text(mut error: clap::Error) -> String {
    let quoted = error.context().filter_map(|(kind, value)| Some((kind, escaped(value)?)));
    let quoted: Vec<_> = quoted.collect();
    for (kind, value) in quoted {
        error.insert(kind, value);
    }
    let text = error.render().to_string();
    match error.source().map(ToString::to_string) {
        Some(source) if !source.is_empty() => text.replace(&source, &printable(&source)),
        _ => text,
    }
}

fn escaped(value: &ContextValue) -> Option<ContextValue> {
    Some(match value {
        ContextValue::String(text) => ContextValue::String(printable(text).into_owned()),
        ContextValue::Strings(texts) => {
            ContextValue::Strings(texts.iter().map(|text| printable(text).into_owned()).collect())
        }
        _ => return None,
    })
}
