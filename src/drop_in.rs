//! What a replacement for Linkerd's injector owes its clients: its counters and its log lines, which
//! dashboards, alerts and log searches depend on.

mod counters;
pub mod log_lines;

pub use counters::Counters;

/// The host name under which an API server calls Linkerd's injector.
pub const SERVICE_HOST: &str = "linkerd-proxy-injector.linkerd.svc";
