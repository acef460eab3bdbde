//! The version of this program.

use injectd_core::linkerd::release::Release;

/// The version that `proxy-injector` reports: injectd's own, and the Linkerd releases it supports.
#[must_use]
pub fn version() -> String {
    format!("injectd-{} ({})", env!("CARGO_PKG_VERSION"), releases())
}

/// The version with the commit, if the build knows it, and the Linkerd releases.
#[must_use]
pub fn long_version(commit: Option<&str>) -> String {
    let commit = commit.map(|commit| format!("\ncommit {commit}"));
    format!("{}{}\n{}", env!("CARGO_PKG_VERSION"), commit.unwrap_or_default(), releases())
}

fn releases() -> String {
    format!("linkerd {} to {}", Release::stable_2_14(), Release::NEWEST)
}
