//! What a replacement for the injectors of Linkerd and Istio owes their clients: counters and log
//! lines, which dashboards, alerts and log searches depend on.

mod counters;
mod istio;
pub mod log_lines;

pub use counters::Counters;
pub use istio::IstioCounters;
