//! injectd in Linkerd's place in a cluster that it watches, whose API server comes, hangs and
//! comes back.

mod account;
mod namespaces;
mod outage;
mod start;
mod workloads;
