//! The units of flags: durations and numbers of bytes.

use std::time::Duration;

use injectd_gocompat::{duration, quantity};

/// Parses the value of a flag as a Go duration.
///
/// # Errors
/// The expected format.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let usage = || "expected a duration above zero, such as 10s, 1m30s or 500ms".to_owned();
    let nanoseconds = duration::parse(text).ok_or_else(usage)?;
    match u64::try_from(nanoseconds) {
        Ok(nanoseconds @ 1..) => Ok(Duration::from_nanos(nanoseconds)),
        _ => Err(usage()),
    }
}

/// Parses the value of a flag as a number of bytes: a Kubernetes quantity such as `64Mi`; also
/// accepts `64MiB`.
///
/// # Errors
/// The expected format.
pub fn parse_bytes(text: &str) -> Result<u32, String> {
    let quantity = text.strip_suffix('B').filter(|text| text.ends_with('i')).unwrap_or(text);
    let bytes = quantity::parse(quantity).and_then(|quantity| quantity.whole_units());
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok()).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| "expected a number of bytes below 4Gi, such as 67108864 or 64Mi".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kubernetes_quantities() {
        for (text, bytes) in [
            ("67108864", Some(64 << 20)),
            ("64Mi", Some(64 << 20)),
            ("64MiB", Some(64 << 20)),
            ("100M", Some(100_000_000)),
            ("4Gi", None),
            ("0", None),
            ("-1", None),
            ("64MB", None),
            ("many", None),
        ] {
            assert_eq!(parse_bytes(text).ok(), bytes, "{text}");
        }
    }
}
