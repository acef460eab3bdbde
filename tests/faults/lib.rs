//! The fault suite. `process` starts and stops the binary, `client` speaks to it, `files` are what
//! it reads; the others are rules, by where the trouble comes from. Nothing here sleeps for luck:
//! what is waited for is asked for until it is there, and not for ever.

mod admin;
mod client;
mod descriptors;
mod drop_in;
mod fairness;
mod files;
mod http2;
mod limits;
mod process;
mod protocols;
mod release;
mod reload_config;
mod reload_tls;
mod shutdown;
mod slow;
mod usage;
