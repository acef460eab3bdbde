//! The counts of the pods whose creation began in one phase.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use injectd_harness::{
    expect::{Outcome, failed},
    scenario::note,
    sidecar::{names, proxy_variable},
};
use serde_json::Value;

const EXAMPLES: usize = 3;

/// The settings of a sidecar that depend on the values and the trust roots.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Settings {
    timeout: String,
    roots: String,
}

impl Settings {
    pub(super) fn of(pod: &Value) -> Self {
        let timeout = proxy_variable(pod, "LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT");
        let roots = &pod["metadata"]["annotations"]["linkerd.io/trust-root-sha256"];
        Self {
            timeout: timeout.unwrap_or_default().to_owned(),
            roots: roots.as_str().unwrap_or_default().to_owned(),
        }
    }
}

/// A pod without sidecar.
#[derive(Clone, Debug)]
pub(super) struct Uninjected {
    /// When its creation began; of one by a controller it is unknown.
    pub(super) begin: Option<Instant>,
    pub(super) name: String,
}

/// A fault, and what became of the pods meanwhile.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) created: usize,
    pub(super) injected: usize,
    pub(super) refused: usize,
    pub(super) unreachable: usize,
    pub(super) slowest: Duration,
    pub(super) uninjected: Vec<Uninjected>,
    pub(super) begins: Vec<Instant>,
    pub(super) settings: BTreeSet<Settings>,
    pub(super) examples: Vec<String>,
}

impl Phase {
    /// Counts a pod as the API server has it; returns whether it has a sidecar.
    pub(super) fn count(&mut self, pod: &Value, begin: Option<Instant>) -> Outcome<bool> {
        self.created += 1;
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        match sidecars(pod) {
            0 => self.uninjected.push(Uninjected { begin, name: name.to_owned() }),
            1 => {
                self.injected += 1;
                self.settings.insert(Settings::of(pod));
            }
            count => return Err(failed(format!("{count} sidecars in {name}"))),
        }
        Ok(sidecars(pod) == 1)
    }

    /// Counts a creation that failed.
    pub(super) fn fail(&mut self, why: &str) {
        if why.contains(super::WEBHOOK_FAILED) {
            self.refused += 1;
        } else {
            self.unreachable += 1;
        }
        if self.examples.len() < EXAMPLES {
            self.examples.push(why.chars().take(300).collect());
        }
    }

    fn print(&self) {
        note(&format!(
            "  {:36} {:>6} {:>8} {:>12} {:>7} {:>9} {:>5} ms",
            self.name,
            self.created,
            self.injected,
            self.uninjected.len(),
            self.refused,
            self.unreachable,
            self.slowest.as_millis(),
        ));
    }
}

pub(super) fn sidecars(pod: &Value) -> usize {
    names(pod, "initContainers").iter().filter(|name| **name == "linkerd-proxy").count()
}

/// Prints the counts of all phases.
pub(super) fn print(phases: &[Phase]) {
    note(&format!(
        "  {:36} {:>6} {:>8} {:>12} {:>7} {:>9} {:>8}",
        "", "pods", "injected", "not injected", "refused", "no answer", "slowest"
    ));
    phases.iter().for_each(Phase::print);
}
