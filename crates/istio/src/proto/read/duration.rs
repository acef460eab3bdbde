//! Durations, as Go's `time.ParseDuration` reads them.

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use serde_json::Value as Json;

use super::{ReadError, scalar};

/// A duration in nanoseconds.
pub(super) fn nanos(json: &Json) -> Result<i64, ReadError> {
    if json.is_null() {
        return Ok(0);
    }
    let text = scalar::text(json)?;
    injectd_gocompat::duration::parse(text).ok_or_else(|| ReadError::Duration(reason(text)))
}

/// Why Go rejects the text: the first term without a known unit, else the whole.
fn reason(text: &str) -> String {
    let is_number = |c: char| c == '.' || c.is_ascii_digit();
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    while rest.starts_with(is_number) {
        let unit_start = rest.trim_start_matches(is_number);
        let end = unit_start.find(is_number).unwrap_or(unit_start.len());
        let (unit, after) = unit_start.split_at(end);
        match unit {
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = after,
            "" => return format!("time: missing unit in duration {text:?}"),
            _ => return format!("time: unknown unit {unit:?} in duration {text:?}"),
        }
    }
    format!("time: invalid duration {text:?}")
}
