//! The version of this program.

use injectd_core::linkerd::release::Release;
use injectd_istio::release::Release as IstioRelease;

/// The version that `proxy-injector` reports: injectd's own, and the Linkerd releases it supports.
#[must_use]
pub fn version() -> String {
    format!("injectd-{} ({})", env!("CARGO_PKG_VERSION"), releases())
}

/// The version with the commit, if the build knows it, and the releases of Linkerd and Istio.
#[must_use]
pub fn long_version(commit: Option<&str>) -> String {
    let (version, commit) =
        (env!("CARGO_PKG_VERSION"), commit.map(|commit| format!("\ncommit {commit}")));
    let [oldest, newest] = istio_releases();
    format!("{version}{}\n{}\nistio {oldest} to {newest}", commit.unwrap_or_default(), releases())
}

/// The oldest and the newest minor release of Istio that is supported.
#[must_use]
pub fn istio_releases() -> [String; 2] {
    [IstioRelease::OLDEST, IstioRelease::NEWEST].map(|release| format!("1.{}", release.minor()))
}

fn releases() -> String {
    format!("linkerd {} to {}", Release::stable_2_14(), Release::NEWEST)
}
