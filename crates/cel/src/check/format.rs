//! Formats that are written in the expression.

use super::Type;
use crate::functions::kinds_of_format;

/// Why a format does not fit.
pub(super) struct Misfit {
    /// The argument, if it is one.
    pub(super) argument: Option<usize>,
    pub(super) text: String,
}

impl From<String> for Misfit {
    fn from(text: String) -> Self {
        Self { argument: None, text }
    }
}

/// Checks a format.
///
/// # Errors
/// It does not fit its arguments.
pub(super) fn check(format: &str, arguments: &[Type]) -> Result<(), Misfit> {
    let kinds = kinds_of_format(format)?;
    if kinds.len() != arguments.len() {
        let (kinds, arguments) = (kinds.len(), arguments.len());
        return Err(format!("the format has {kinds} clauses and {arguments} arguments").into());
    }
    for (place, (kind, of)) in kinds.into_iter().zip(arguments).enumerate() {
        if !of.is_open() && !fits(kind, &of.to_string()) {
            let text = format!("a {of} does not fit %{}", char::from(kind));
            return Err(Misfit { argument: Some(place), text });
        }
    }
    Ok(())
}

fn fits(kind: u8, of: &str) -> bool {
    let scalars = [
        "bool",
        "bytes",
        "double",
        "google.protobuf.Duration",
        "int",
        "null_type",
        "string",
        "google.protobuf.Timestamp",
    ];
    match kind {
        b's' => scalars.contains(&of) || ["uint", "type"].contains(&of) || of.contains('('),
        b'd' | b'o' => ["int", "uint"].contains(&of),
        b'f' | b'e' => ["double", "string"].contains(&of),
        b'b' => ["int", "uint", "bool"].contains(&of),
        _ => ["int", "uint", "string", "bytes"].contains(&of),
    }
}
