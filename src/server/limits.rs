//! The limits of the servers. Each limit has a flag, a default with its reason, and a metric that
//! counts how often it is reached.

use std::time::Duration;

use super::memory_limit::memory_limit;

/// The part of the container's memory that evaluations may take: the rest is for bodies, connections,
/// namespaces and answers (docs/performance.md).
const EVALUATION_PART: u64 = 4;
/// The part of the container's memory that bodies and responses may take. Connections can exceed it by
/// half with their shares, and one of the largest reviews takes nine times its size beside it.
const BODY_PART: u64 = 8;
/// The most memory that bodies and responses take unless a flag says more: six of the largest bodies.
const MAX_BODY_MEMORY: u32 = 64 << 20;
/// The memory of evaluations without a limit of the container: that of the chart's limit, 256Mi.
const DEFAULT_EVALUATION_MEMORY: u32 = 64 << 20;

/// The limits of a server. The flags of `injectd serve` have the reasons of the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum concurrent connections; a quarter more are answered with 503.
    pub max_connections: u32,
    /// Timeout of a TLS handshake.
    pub handshake_timeout: Duration,
    /// Timeout for the header of a request, including idle time.
    pub header_timeout: Duration,
    /// Timeout for the body of a request.
    pub body_timeout: Duration,
    /// Timeout for a client that does not read its response.
    pub write_timeout: Duration,
    /// Maximum concurrent requests, besides the shares of connections.
    pub max_requests: u32,
    /// Maximum bytes of bodies and responses; `None` for a part of the container's memory.
    pub max_body_memory: Option<u32>,
    /// Maximum bytes of evaluations; `None` for a part of the container's memory.
    pub max_evaluation_memory: Option<u32>,
    /// Maximum concurrent HTTP/2 streams per connection.
    pub http2_max_streams: u32,
    /// Maximum HTTP/2 streams per connection that a client may reset before they are read.
    pub http2_max_resets: u32,
    /// Time after SIGTERM in which new requests are still answered.
    pub drain_delay: Duration,
    /// Timeout for requests in flight after the drain delay.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 2_000,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_mins(2),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            max_requests: 4_000,
            max_body_memory: None,
            max_evaluation_memory: None,
            http2_max_streams: 100,
            http2_max_resets: 100,
            drain_delay: Duration::from_secs(3),
            drain_timeout: Duration::from_secs(20),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_memory_of_the_flag_or_a_part_of_the_container() {
        let limits = Limits { max_body_memory: Some(5), ..Limits::default() };
        assert_eq!(limits.body_memory(), 5);
        assert!(Limits::default().body_memory() <= MAX_BODY_MEMORY);
    }
}
