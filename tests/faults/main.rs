//! Faults: the real binary on real sockets, with slow, malicious or too many clients, changing
//! files, and signals.
//!
//! `process` starts and stops the binary, `client` connects to it, `files` writes the files it
//! reads; the other modules are tests, by the source of the fault. Tests do not sleep for a fixed
//! time: they poll a condition, with a timeout.

#![expect(clippy::disallowed_types, reason = "lines of the log are looked into as trees")]

mod admin;
mod client;
mod descriptors;
mod drop_in;
mod fairness;
mod files;
mod http2;
mod istio;
mod limits;
mod process;
mod protocols;
mod release;
mod reload_config;
mod reload_tls;
mod shutdown;
mod slow;
mod templates;
mod usage;
