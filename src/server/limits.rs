//! How much the webhook door takes at a time. Each limit has a flag, a default with its reason, and
//! a metric that tells when it was reached.

use std::time::Duration;

use clap::value_parser;

use crate::go::duration;

/// More connections than a process can have.
const MOST: i64 = 1_000_000;

/// The limits of a door.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Connections that are served; a quarter as many more are answered 503, the rest is closed. A Go client
    /// keeps 25 to a host: enough for hundreds of API servers, within 250 MiB
    #[arg(long, value_name = "N", default_value = "2000", value_parser = value_parser!(u32).range(1..=MOST), env = "INJECTD_MAX_CONNECTIONS")]
    pub max_connections: u32,
    /// Longest TLS handshake: Go's clients give up after ten seconds
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_HANDSHAKE_TIMEOUT")]
    pub handshake_timeout: Duration,
    /// Longest wait for a request's header, which includes idling: Go keeps connections for 90 s
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration, env = "INJECTD_HEADER_TIMEOUT")]
    pub header_timeout: Duration,
    /// Longest wait for a request's body: the API server gives a whole review 10 s unless told
    /// otherwise
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_BODY_TIMEOUT")]
    pub body_timeout: Duration,
    /// Longest wait for a client to take more of an answer
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_WRITE_TIMEOUT")]
    pub write_timeout: Duration,
    /// Requests that are read or answered at the same time. Beyond it a connection still has its share,
    /// this number divided by the connections that have requests; more are answered 503
    #[arg(long, value_name = "N", default_value = "4000", value_parser = value_parser!(u32).range(1..=MOST), env = "INJECTD_MAX_REQUESTS")]
    pub max_requests: u32,
    /// Bytes of bodies and answers, each above its first 2 KiB, that are held at the same time. Beyond
    /// it a connection still has its share, a fourth of an even division; more are answered 503
    #[arg(long, value_name = "BYTES", default_value = "67108864", value_parser = value_parser!(u32).range(1..), env = "INJECTD_MAX_BODY_MEMORY")]
    pub max_body_memory: u32,
    /// HTTP/2 streams of a connection: the least that RFC 9113 recommends
    #[arg(long, value_name = "N", default_value = "100", value_parser = value_parser!(u32).range(1..), env = "INJECTD_HTTP2_MAX_STREAMS")]
    pub http2_max_streams: u32,
    /// HTTP/2 streams of a connection that may be reset before they are looked at; more close it.
    /// A client that gives up may reset all it has
    #[arg(long, value_name = "N", default_value = "100", env = "INJECTD_HTTP2_MAX_RESETS")]
    pub http2_max_resets: u32,
    /// How long requests are still taken after SIGTERM, answered with connection: close. Endpoints
    /// take a moment to learn that this one is not ready
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration, env = "INJECTD_DRAIN_DELAY")]
    pub drain_delay: Duration,
    /// How long requests under way are waited for after that: with the delay less than the 30 s that
    /// Kubernetes gives a pod
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration, env = "INJECTD_DRAIN_TIMEOUT")]
    pub drain_timeout: Duration,
}

/// Reads a duration as Go writes it, for a flag.
///
/// # Errors
/// What was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let usage = || "expected a duration above zero, such as 10s, 1m30s or 500ms".to_owned();
    let nanoseconds = duration::parse(text).ok_or_else(usage)?;
    match u64::try_from(nanoseconds) {
        Ok(nanoseconds @ 1..) => Ok(Duration::from_nanos(nanoseconds)),
        _ => Err(usage()),
    }
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
