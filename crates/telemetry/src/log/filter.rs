//! Which lines are logged: the levels of the flag, without the repetitions of libraries.

use tracing_subscriber::filter::{LevelFilter, Targets};

use super::StartError;

/// Libraries whose lines repeat what the modules that use them report, and up to which level they log:
/// one that watches objects of a cluster, and one that sends requests to it.
const REPETITIVE: [(&str, LevelFilter); 2] =
    [("kube_runtime", LevelFilter::ERROR), ("kube_client::client::builder", LevelFilter::OFF)];

/// A level, or levels by module.
pub(super) fn targets(filter: &str) -> Result<Targets, StartError> {
    let mut words = filter.split(',').filter(|word| !word.is_empty() && !word.contains('='));
    if let Some(word) = words.find(|word| word.parse::<LevelFilter>().is_err()) {
        return Err(StartError::Level(word.to_owned()));
    }
    filter.parse().map_err(StartError::Filter)
}

/// Leaves out the lines of libraries at each attempt of a request or watch: the modules that use them
/// report failures. Levels debug and trace, and a level for the library, show them.
pub(super) fn without_repetitions(filter: Targets) -> Targets {
    let quiet = [LevelFilter::WARN, LevelFilter::INFO].map(Some);
    let is_quiet = quiet.contains(&filter.default_level());
    if !is_quiet {
        return filter;
    }
    let is_named = |library: &str| {
        let package = library.split("::").next().unwrap_or_default();
        filter.iter().any(|(target, _)| target.starts_with(package))
    };
    let left_out: Vec<_> =
        REPETITIVE.into_iter().filter(|(library, _)| !is_named(library)).collect();
    filter.with_targets(left_out)
}
