//! hyper's HTTP servers, and their limits for headers, streams and pings.

use std::time::Duration;

use hyper_util::{
    rt::{TokioExecutor, TokioTimer},
    server::conn::auto,
};

use super::Limits;

/// Maximum size of a request header. Over HTTP/1 it is also the size of the buffer for reading a
/// body: one TLS record.
pub(super) const MAX_HEADER_BYTES: u16 = 16 << 10;
/// Maximum size of a header that is read over HTTP/2: a gRPC caller with too large a header gets a
/// gRPC status.
const MAX_HEADER_BYTES_READ: u32 = 4 * MAX_HEADER_BYTES as u32;
/// Interval and timeout of pings on an idle HTTP/2 connection.
// Load balancers forget a connection that is idle for a minute or more.
const PING_INTERVAL: Duration = Duration::from_secs(30);
// Longer than a garbage collection or a moment of a busy node: the client is still there.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// HTTP servers by the protocol that ALPN selected.
#[derive(Debug)]
pub(super) struct Http {
    one: auto::Builder<TokioExecutor>,
    two: auto::Builder<TokioExecutor>,
    /// Without ALPN, the first bytes select the protocol.
    either: auto::Builder<TokioExecutor>,
}

impl Http {
    /// Servers with these limits.
    pub(super) fn new(limits: &Limits) -> Self {
        // Where ALPN has decided, the first bytes need not be waited for.
        let server = || {
            let mut http = auto::Builder::new(TokioExecutor::new());
            http.http1()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header_timeout)
                .max_buf_size(MAX_HEADER_BYTES.into());
            http.http2()
                .timer(TokioTimer::new())
                .max_header_list_size(MAX_HEADER_BYTES_READ)
                .max_concurrent_streams(limits.http2_max_streams)
                // A client that opens and resets streams without an end costs work and no window
                // (CVE-2023-44487): with more of them its connection ends.
                .max_pending_accept_reset_streams(limits.http2_max_resets as usize)
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT);
            http
        };
        Self { one: server().http1_only(), two: server().http2_only(), either: server() }
    }

    /// The server for the protocol that a client agreed on with ALPN, if it did.
    pub(super) fn agreed_on(&self, protocol: Option<&[u8]>) -> &auto::Builder<TokioExecutor> {
        match protocol {
            Some(b"h2") => &self.two,
            Some(b"http/1.1") => &self.one,
            _ => &self.either,
        }
    }
}
