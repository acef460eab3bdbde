//! Replays what the recorder saw, and fails if a restart broke a rule.

use std::collections::{HashMap, HashSet};

use injectd_harness::expect::{Outcome, expect, failed};

use super::recorder::{Fact, Key, Record};

/// What the replay found.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) restarted: usize,
    pub(super) most_at_once: usize,
}

/// The state of the cluster at a version.
#[derive(Default)]
struct State {
    open: HashMap<String, bool>,
    /// By namespace and name of the workload.
    exhausted: HashMap<(String, String), bool>,
    restarted_at: HashMap<Key, String>,
    in_flight: HashSet<Key>,
    generations: HashMap<Key, i64>,
}

/// Each workload at most once, none outside of its window, none while its budget allows none.
pub(super) fn judge(records: &[Record]) -> Outcome<Verdict> {
    let (mut state, mut verdict) = (State::default(), Verdict::default());
    for Record { key, fact, .. } in records {
        let (_, namespace, name) = key;
        match fact {
            Fact::Namespace { is_open } => {
                state.open.insert(name.clone(), *is_open);
            }
            Fact::Budget { is_exhausted } => {
                state.exhausted.insert((namespace.clone(), name.clone()), *is_exhausted);
            }
            Fact::Workload { generation, restarted_at, is_finished } => {
                state.generations.insert(key.clone(), *generation);
                if let Some(at) = restarted_at {
                    state.restart(key, at)?;
                }
                if *is_finished {
                    state.in_flight.remove(key);
                }
            }
        }
        verdict.most_at_once = verdict.most_at_once.max(state.in_flight.len());
    }
    for (key, &generation) in &state.generations {
        // A restart that no watch saw would be one more.
        expect(format!("the generation of {key:?}"), 2, generation)?;
    }
    verdict.restarted = state.restarted_at.len();
    Ok(verdict)
}

impl State {
    /// Judges a restart, unless it is known.
    fn restart(&mut self, key: &Key, at: &str) -> Outcome {
        match self.restarted_at.insert(key.clone(), at.to_owned()) {
            Some(before) if before == at => return Ok(()),
            Some(before) => return Err(failed(format!("{key:?}: restarted at {before} and {at}"))),
            None => {}
        }
        let (_, namespace, name) = key;
        if !self.open.get(namespace).copied().unwrap_or_default() {
            return Err(failed(format!("{key:?}: restarted outside of its window")));
        }
        if self.exhausted.get(&(namespace.clone(), name.clone())) == Some(&true) {
            return Err(failed(format!("{key:?}: restarted while its budget allowed none")));
        }
        self.in_flight.insert(key.clone());
        Ok(())
    }
}
