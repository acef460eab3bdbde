//! Facts that an API server does not take in a condition: more pods are shown without them.

use std::cmp::Reverse;

use injectd_cel::{Environment, Program};

use super::{
    Note,
    entries::Part,
    fact::{Fact, bracketed},
    largest::{MAX_UNITS, units},
    way::Way,
};
use crate::Problem;

/// A fact that is left out, and why.
#[derive(Debug)]
pub(super) struct Refused {
    fact: Fact,
    why: String,
}

impl Refused {
    /// Takes the fact out of all ways. The result is a note for each template that has it.
    pub(super) fn leave_out(&self, ways: &mut [Way]) -> Vec<Note> {
        let mut notes = Vec::new();
        for way in ways.iter_mut().filter(|way| way.facts.contains(&self.fact)) {
            way.facts.retain(|fact| *fact != self.fact);
            let problem =
                Problem::new("spec.match.conditions", format!("{}: {}", self.fact, self.why));
            let note = |template| Note { template: Some(template), problem: problem.clone() };
            notes.extend(way.templates.iter().cloned().map(note));
        }
        notes.dedup();
        notes
    }
}

/// A condition as an API server compiles it.
///
/// # Errors
/// It does not.
pub(super) fn compiled(condition: &str) -> Result<Program, String> {
    Program::compile_in(Environment::conditions(), condition)
        .map_err(|problem| format!("an API server does not compile the condition: {problem}"))
}

impl Part {
    /// Conditions that do not compile, and the dearest ones, so that the entry costs no more than an API server
    /// allows.
    pub(super) fn refused(&self) -> Vec<Refused> {
        if !self.entry().is_ok_and(|entry| entry.condition.is_some()) {
            return Vec::new();
        }
        let (mut refused, mut costs, mut total) = (Vec::new(), Vec::new(), 0);
        // All else that a pod is asked compiles, and costs little.
        let is_condition = |fact: &&Fact| matches!(fact, Fact::Condition { .. });
        for fact in self.ways.iter().flat_map(|way| &way.facts).filter(is_condition) {
            // A condition has its terms in brackets.
            match compiled(&bracketed(&fact.cel())) {
                Ok(program) => {
                    let units = units(&program);
                    total += units;
                    costs.push((units, fact));
                }
                Err(why) => refused.push(Refused { fact: fact.clone(), why }),
            }
        }
        costs.sort_by_key(|(units, _)| Reverse(*units));
        for (units, fact) in costs {
            if total <= MAX_UNITS {
                break;
            }
            total -= units;
            let why = "an API server does not evaluate it for the largest pods: go through fewer lists, or use \
                selectors beside it";
            refused.push(Refused { fact: fact.clone(), why: why.to_owned() });
        }
        refused
    }
}
