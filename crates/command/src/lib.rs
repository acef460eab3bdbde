//! What the commands share: the flags for a configuration, a cluster and restarts, files, texts on a
//! terminal, and errors with their exit codes.
//!
//! Not for a command: the service has `serve`, and the tools have the others. Each module uses only
//! modules below it.

#![expect(
    clippy::disallowed_types,
    reason = "configurations, objects and reports are trees of any shape"
)]

pub mod guide;

pub mod config;

pub mod cluster_config;
pub mod remote;
pub mod restart_policy;
pub mod templates;

pub mod input;

pub mod format;
pub mod junit;
pub mod print;
pub mod sarif;
pub mod units;

mod error;
mod version;

pub use error::CommandError;
pub use version::{istio_releases, long_version, version};

/// The exit code of wrong usage (`sysexits.h`, `EX_USAGE`).
// Not 2, which clap has for it: grep and diff end with 2 when they fail, and scripts treat it so.
pub const EXIT_USAGE: u8 = 64;
/// Wrong usage, in programs that use Go's `flag` package.
pub const EXIT_GO_USAGE: u8 = 2;

/// The first flag that is set, by its name.
#[must_use]
pub fn first_set<const N: usize>(flags: [(&'static str, bool); N]) -> Option<&'static str> {
    flags.into_iter().find_map(|(flag, is_set)| is_set.then_some(flag))
}

/// A number with its noun: `1 review`, `2 reviews`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
