//! What a process shows of itself: metrics, log lines, readiness.
//!
//! Not for what replaces the counters and log lines of the injectors of Linkerd and Istio: the service
//! has those.

pub mod log;
pub mod metrics;
pub mod readiness;
pub mod recent_errors;
