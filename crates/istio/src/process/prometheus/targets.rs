//! Reads the annotation `prometheus.istio.io/scrape-targets`.

/// The path of a target without one.
const DEFAULT_PATH: &str = "/metrics";

/// An endpoint of the application that serves metrics.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    /// The port as it was given.
    pub(super) port: &'a str,
    /// The path, `/metrics` by default.
    pub(super) path: &'a str,
}

/// Reads a list such as `8080:/metrics,9090`. The error is the first entry without a port.
pub(super) fn parse(text: &str) -> Result<Vec<Target<'_>>, &str> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(|entry| target(entry).ok_or(entry)).collect()
}

fn target(entry: &str) -> Option<Target<'_>> {
    let (port, path) = entry.split_once(':').unwrap_or((entry, ""));
    let (port, path) = (port.trim(), path.trim());
    let path = if path.is_empty() { DEFAULT_PATH } else { path };
    (!port.is_empty()).then_some(Target { port, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_trimmed_and_empty_ones_skipped() {
        let expected = [("8080", "/a?b=c:d"), ("9090", DEFAULT_PATH)];
        let expected = expected.map(|(port, path)| Target { port, path });
        assert_eq!(parse(" 8080:/a?b=c:d ,, 9090").as_deref(), Ok(&expected[..]));
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn an_entry_without_a_port_is_an_error() {
        assert_eq!(parse("8080, :/x"), Err(":/x"));
    }
}
