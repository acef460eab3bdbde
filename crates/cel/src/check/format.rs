//! Formats that are written in the expression.

use super::Type;
use crate::functions::kinds_of_format;

/// Checks a format.
///
/// # Errors
/// It does not fit its arguments.
pub(super) fn check(format: &str, arguments: &[Type]) -> Result<(), String> {
    let kinds = kinds_of_format(format)?;
    if kinds.len() != arguments.len() {
        let (kinds, arguments) = (kinds.len(), arguments.len());
        return Err(format!("the format has {kinds} clauses and {arguments} arguments"));
    }
    for (kind, of) in kinds.into_iter().zip(arguments).filter(|(_, of)| !of.is_open()) {
        if !fits(kind, &of.to_string()) {
            return Err(format!("a {of} does not fit %{}", char::from(kind)));
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
