//! The Pod Security Standards, by version (k8s.io/pod-security-admission v0.37.2, `policy`; for releases
//! up to 1.34 also v0.34.4).
//!
//! Exemptions and defaults of the API server's own configuration cannot be seen from outside.

use serde_json::Value;

use super::{Cause, Found, pod::Pod, version::Version};

mod baseline;
mod levels;
mod restricted;

use self::levels::Level;

/// A check of one level.
struct Check {
    /// The check of the level baseline that it replaces.
    replaces: Option<Id>,
    id: Id,
    /// The releases since which it is as each function has it, the oldest first.
    since: &'static [(Version, Test)],
}

/// What a check of the level baseline is about, if another may replace it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Capabilities,
    HostPaths,
    ProcMount,
    Seccomp,
    /// Of any other check.
    Other,
}

/// A check: texts of what violates it.
type Test = fn(Pod<'_>) -> Vec<String>;

impl Check {
    const fn new(id: Id, since: &'static [(Version, Test)]) -> Self {
        Self { replaces: None, id, since }
    }

    const fn replacing(replaces: Id, since: &'static [(Version, Test)]) -> Self {
        Self { replaces: Some(replaces), id: Id::Other, since }
    }

    /// The check as it is in a version, if it is there.
    fn test(&self, version: Version) -> Option<Test> {
        let newest = self.since.iter().rev().find(|(since, _)| *since <= version);
        newest.map(|(_, test)| *test)
    }
}

/// The first release: what has been checked ever since.
const EVER: Version = Version::minor(0);

/// The objections of the levels that the labels of a namespace name, on an API server of a version.
pub(super) fn objections(namespace: Option<&Value>, server: Version, pod: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    for policy in levels::policies(namespace) {
        // An API server knows no newer checks than its own.
        let version = policy.version.unwrap_or(server).min(server);
        let problems = violations(policy.level, version, Pod(pod));
        let by = match policy.version {
            Some(version) => format!("PodSecurity {}:v{version}", policy.level.as_str()),
            None => format!("PodSecurity {}", policy.level.as_str()),
        };
        found.extend(problems.into_iter().map(|problem| {
            Found::new(policy.effect, Cause::PodSecurity, &by, problem.clone(), problem)
        }));
    }
    found
}

fn violations(level: Level, version: Version, pod: Pod<'_>) -> Vec<String> {
    let restricted: Vec<_> = match level {
        Level::Privileged => return Vec::new(),
        Level::Baseline => Vec::new(),
        Level::Restricted => {
            let known = restricted::CHECKS.iter();
            known.filter_map(|check| Some((check.replaces, check.test(version)?))).collect()
        }
    };
    let is_replaced = |id| restricted.iter().any(|(replaced, _)| *replaced == Some(id));
    let baseline = baseline::CHECKS.iter().filter(|check| !is_replaced(check.id));
    let tests = baseline.filter_map(|check| check.test(version));
    tests.chain(restricted.iter().map(|(_, test)| *test)).flat_map(|test| test(pod)).collect()
}
