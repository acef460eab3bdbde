//! The flags of the servers' limits.

use std::time::Duration;

use clap::value_parser;
use injectd_command::units::{parse_bytes, parse_duration};

use crate::server::Limits;

/// Maximum value of a limit: more connections than a process can have.
const MAX_LIMIT: i64 = 1_000_000;

/// The flags of a server's limits.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Maximum concurrent connections. Up to 25 % more are answered with 503; connections beyond
    /// that are closed. A Go client keeps 25 per host: the default is enough for hundreds of API
    /// servers and takes at most 250 MiB
    #[arg(long, value_name = "N", default_value = "2000", value_parser = value_parser!(u32).range(1..=MAX_LIMIT), env = "INJECTD_MAX_CONNECTIONS")]
    pub(super) max_connections: u32,
    /// Timeout of a TLS handshake. Go clients give up after 10 s
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_HANDSHAKE_TIMEOUT")]
    handshake_timeout: Duration,
    /// Timeout for the header of a request, including idle time. Go clients keep idle connections
    /// for 90 s
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration, env = "INJECTD_HEADER_TIMEOUT")]
    header_timeout: Duration,
    /// Timeout for the body of a request. The API server gives a whole review 10 s by default
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_BODY_TIMEOUT")]
    body_timeout: Duration,
    /// Timeout for a client that does not read its response
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "INJECTD_WRITE_TIMEOUT")]
    write_timeout: Duration,
    /// Maximum concurrent requests. Over the limit, a connection may still have its share: the
    /// limit divided by the number of connections with requests. Further requests are answered with
    /// 503
    #[arg(long, value_name = "N", default_value = "4000", value_parser = value_parser!(u32).range(1..=MAX_LIMIT), env = "INJECTD_MAX_REQUESTS")]
    max_requests: u32,
    /// Maximum memory of bodies and responses, such as 64Mi, without the first 2 KiB of each, and of
    /// reviews that wait for Istio's templates. Over the limit, a connection may still have its
    /// share: half of an even division among the connections that hold any. Further requests are
    /// answered with 503 [default: an eighth of the container's memory limit, at most 64Mi]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, env = "INJECTD_MAX_BODY_MEMORY")]
    max_body_memory: Option<u32>,
    /// Maximum memory of evaluations of Istio's templates, such as 64Mi, by an estimate from the size of
    /// the pod. A pod that alone takes more is denied; others wait, and are answered with 503 after 2 s
    /// [default: a quarter of the container's memory limit, else 64Mi]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, env = "INJECTD_MAX_EVALUATION_MEMORY")]
    max_evaluation_memory: Option<u32>,
    /// Maximum concurrent HTTP/2 streams per connection. RFC 9113 recommends at least 100
    #[arg(long, value_name = "N", default_value = "100", value_parser = value_parser!(u32).range(1..), env = "INJECTD_HTTP2_MAX_STREAMS")]
    http2_max_streams: u32,
    /// Maximum HTTP/2 streams per connection that a client may reset before the server reads them;
    /// more close the connection. A client that gives up may reset all of its streams
    #[arg(long, value_name = "N", default_value = "100", env = "INJECTD_HTTP2_MAX_RESETS")]
    http2_max_resets: u32,
    /// Time after SIGTERM in which new requests are still answered, with connection: close.
    /// Kubernetes takes a moment to remove the pod from its endpoints
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration, env = "INJECTD_DRAIN_DELAY")]
    drain_delay: Duration,
    /// Timeout for requests in flight after the drain delay. Delay and timeout together should be
    /// less than the pod's termination grace period, 30 s by default
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration, env = "INJECTD_DRAIN_TIMEOUT")]
    drain_timeout: Duration,
}

impl From<&LimitArgs> for Limits {
    fn from(args: &LimitArgs) -> Self {
        Self {
            max_connections: args.max_connections,
            handshake_timeout: args.handshake_timeout,
            header_timeout: args.header_timeout,
            body_timeout: args.body_timeout,
            write_timeout: args.write_timeout,
            max_requests: args.max_requests,
            max_body_memory: args.max_body_memory,
            max_evaluation_memory: args.max_evaluation_memory,
            http2_max_streams: args.http2_max_streams,
            http2_max_resets: args.http2_max_resets,
            drain_delay: args.drain_delay,
            drain_timeout: args.drain_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _, Parser, builder::Resettable};

    use super::*;

    #[derive(Parser)]
    struct Args {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn without_flags_the_limits_are_the_servers_defaults() {
        // Not from this process's environment.
        let command = Args::command().mut_args(|flag| flag.env(Resettable::Reset));
        let args =
            Args::from_arg_matches(&command.get_matches_from(["injectd"])).expect("no flags");
        assert_eq!(Limits::from(&args.limits), Limits::default());
    }
}
