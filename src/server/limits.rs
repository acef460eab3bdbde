//! The limits of the servers. Each limit has a flag, a default with its reason, and a metric that
//! counts how often it is reached.

use std::time::Duration;

use clap::value_parser;

use injectd_gocompat::{duration, quantity};

use super::memory_limit::memory_limit;

/// Maximum value of a limit: more connections than a process can have.
const MAX_LIMIT: i64 = 1_000_000;
/// The part of the container's memory that evaluations may take: the rest is for bodies, connections,
/// namespaces and answers (docs/memory.md).
const EVALUATION_PART: u64 = 4;
/// The part of the container's memory that bodies and responses may take. Connections can exceed it by
/// half with their shares, and one of the largest reviews takes nine times its size beside it.
const BODY_PART: u64 = 8;
/// The most memory that bodies and responses take unless a flag says more: six of the largest bodies.
const MAX_BODY_MEMORY: u32 = 64 << 20;
/// The memory of evaluations without a limit of the container: that of the chart's limit, 256Mi.
const DEFAULT_EVALUATION_MEMORY: u32 = 64 << 20;

/// The limits of a server.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Maximum concurrent connections. Up to 25 % more are answered with 503; connections beyond
    /// that are closed. A Go client keeps 25 per host: the default is enough for hundreds of API
    /// servers and takes at most 250 MiB
    #[arg(long, value_name = "N", default_value = "2000", value_parser = value_parser!(u32).range(1..=MAX_LIMIT), env = "INJECTD_MAX_CONNECTIONS")]
    pub max_connections: u32,
    /// Timeout of a TLS handshake. Go clients give up after 10 s
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_HANDSHAKE_TIMEOUT")]
    pub handshake_timeout: Duration,
    /// Timeout for the header of a request, including idle time. Go clients keep idle connections
    /// for 90 s
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration, env = "INJECTD_HEADER_TIMEOUT")]
    pub header_timeout: Duration,
    /// Timeout for the body of a request. The API server gives a whole review 10 s by default
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_BODY_TIMEOUT")]
    pub body_timeout: Duration,
    /// Timeout for a client that does not read its response
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_WRITE_TIMEOUT")]
    pub write_timeout: Duration,
    /// Maximum concurrent requests. Over the limit, a connection may still have its share: the
    /// limit divided by the number of connections with requests. Further requests are answered with
    /// 503
    #[arg(long, value_name = "N", default_value = "4000", value_parser = value_parser!(u32).range(1..=MAX_LIMIT), env = "INJECTD_MAX_REQUESTS")]
    pub max_requests: u32,
    /// Maximum memory of bodies and responses, such as 64Mi, without the first 2 KiB of each, and of
    /// reviews that wait for Istio's templates. Over the limit, a connection may still have its
    /// share: half of an even division among the connections that hold any. Further requests are
    /// answered with 503 [default: an eighth of the container's memory limit, at most 64Mi]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, env = "INJECTD_MAX_BODY_MEMORY")]
    pub max_body_memory: Option<u32>,
    /// Maximum memory of evaluations of Istio's templates, such as 64Mi, by an estimate from the size of
    /// the pod. A pod that alone takes more is denied; others wait, and are answered with 503 after 2 s
    /// [default: a quarter of the container's memory limit, else 64Mi]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, env = "INJECTD_MAX_EVALUATION_MEMORY")]
    pub max_evaluation_memory: Option<u32>,
    /// Maximum concurrent HTTP/2 streams per connection. RFC 9113 recommends at least 100
    #[arg(long, value_name = "N", default_value = "100", value_parser = value_parser!(u32).range(1..), env = "INJECTD_HTTP2_MAX_STREAMS")]
    pub http2_max_streams: u32,
    /// Maximum HTTP/2 streams per connection that a client may reset before the server reads them;
    /// more close the connection. A client that gives up may reset all of its streams
    #[arg(long, value_name = "N", default_value = "100", env = "INJECTD_HTTP2_MAX_RESETS")]
    pub http2_max_resets: u32,
    /// Time after SIGTERM in which new requests are still answered, with connection: close.
    /// Kubernetes takes a moment to remove the pod from its endpoints
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration, env = "INJECTD_DRAIN_DELAY")]
    pub drain_delay: Duration,
    /// Timeout for requests in flight after the drain delay. Delay and timeout together should be
    /// less than the pod's termination grace period, 30 s by default
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration, env = "INJECTD_DRAIN_TIMEOUT")]
    pub drain_timeout: Duration,
}

impl Limits {
    /// Bytes of all bodies and responses.
    pub(super) fn body_memory(&self) -> u32 {
        let of_container = || u32::try_from(memory_limit()? / BODY_PART).ok();
        let default = || of_container().map_or(MAX_BODY_MEMORY, |part| part.min(MAX_BODY_MEMORY));
        self.max_body_memory.unwrap_or_else(default)
    }

    /// Bytes of all evaluations.
    pub(super) fn evaluation_memory(&self) -> usize {
        let of_container = || {
            let part = memory_limit()? / EVALUATION_PART;
            Some(u32::try_from(part).unwrap_or(u32::MAX))
        };
        let memory = self.max_evaluation_memory.or_else(of_container);
        memory.unwrap_or(DEFAULT_EVALUATION_MEMORY) as usize
    }
}

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
fn parse_bytes(text: &str) -> Result<u32, String> {
    let quantity = text.strip_suffix('B').filter(|text| text.ends_with('i')).unwrap_or(text);
    let bytes = quantity::parse(quantity).and_then(|quantity| quantity.whole_units());
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok()).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| "expected a number of bytes below 4Gi, such as 67108864 or 64Mi".to_owned())
}

impl Default for Limits {
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct Defaults {
            #[command(flatten)]
            limits: Limits,
        }
        let defaults: [&str; 1] = ["injectd"];
        <Defaults as clap::Parser>::parse_from(defaults).limits
    }
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
        let limits = Limits { max_body_memory: Some(5), ..Limits::default() };
        assert_eq!(limits.body_memory(), 5);
        assert!(Limits::default().body_memory() <= MAX_BODY_MEMORY);
    }
}
