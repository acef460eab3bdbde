//! The annotations of namespaces about restarts.

/// Set by the owner of a namespace: `enabled` or `disabled`. Default: the value of `--restart`.
pub const RESTART_ANNOTATION: &str = "injectd.dev/restart";
/// Set by the owner of a namespace: maintenance windows, separated by `;`. They replace those of
/// `--window`. Default: those of `--window`.
pub const WINDOW_ANNOTATION: &str = "injectd.dev/restart-window";
