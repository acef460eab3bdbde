//! The formats of `--output` that several commands have.
//!
//! Not for those of one command, such as tables.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _, ValueParser};

/// The format of what a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For both.
    Yaml,
}

/// Reads one of the formats that a command has, in the order of its help.
pub fn formats(names: impl IntoIterator<Item = impl Into<PossibleValue>>) -> ValueParser {
    let format = |name: String| match &*name {
        "text" => Ok(Format::Text),
        "yaml" => Ok(Format::Yaml),
        "json" => Ok(Format::Json),
        name => Err(format!("{name} is the format of another command")),
    };
    PossibleValuesParser::new(names).try_map(format).into()
}
