//! Rules that hold for all templates, pods, and changes of other webhooks between two calls.
//!
//! `INJECTD_PROPERTY_CASES` sets how many cases are tried.

mod foreign;
mod templates;

use std::{cell::RefCell, collections::BTreeMap};

use proptest::{
    prelude::*,
    test_runner::{RngSeed, TestError, TestRunner},
};

use self::{
    foreign::{Foreign, foreign, pods},
    templates::object,
};
use super::*;
use crate::{Explained, State, explain, lay::patch};

/// Cases that are tried if the variable is not set.
const CASES: u32 = 1024;
/// Any number: the cases that are tried then are the same each time.
const SEED: u64 = 42;
/// One case of so many is explained.
const EXPLAINED: u32 = 4;
/// Operations of a patch that are left out one by one.
const MAX_OPERATIONS: usize = 24;

fn applied(before: &Value, patch: &[Value]) -> Option<Value> {
    let mut pod = before.clone();
    let operations: json_patch::Patch =
        serde_json::from_value(patch.to_vec().into()).expect("a JSON patch");
    json_patch::patch(&mut pod, &operations).ok()?;
    Some(pod)
}

/// The patch applies, and each of its operations is needed.
fn is_minimal(before: &Value, after: &Value) -> bool {
    let patch = patch(before, after);
    let is_needed = |at: usize| {
        let mut shorter = patch.clone();
        shorter.remove(at);
        applied(before, &shorter).as_ref() != Some(after)
    };
    let all_needed = patch.len() > MAX_OPERATIONS || (0..patch.len()).all(is_needed);
    applied(before, &patch).as_ref() == Some(after) && all_needed
}

/// What the cases were about.
#[derive(Default)]
struct Counts(RefCell<BTreeMap<&'static str, u32>>);

impl Counts {
    fn add(&self, what: &'static str) {
        *self.0.borrow_mut().entry(what).or_default() += 1;
    }

    /// How many cases there were.
    fn cases(&self) -> u32 {
        self.0.borrow().get("cases").copied().unwrap_or_default()
    }
}

/// A case: templates, a pod, and what other webhooks change in it between two calls.
struct Case {
    templates: Vec<Template>,
    pod: Value,
    changes: Vec<Foreign>,
}

impl Case {
    /// Whether the pod is denied if it has the foreign containers from the beginning.
    fn denies_changed(&self) -> bool {
        let mut pod = self.pod.clone();
        let containers = self.changes.iter().filter(|change| change.is_container());
        containers.for_each(|change| change.change(&mut pod));
        injected(&self.templates, &pod).is_err()
    }

    /// An explanation is about what an injection does, and names each template's own parameters.
    fn explain(&self, pod: &Value) -> Result<Explained, TestCaseError> {
        let explained = with_request(pod, |request| explain(&self.templates, request));
        let injected = with_request(pod, |request| inject(&self.templates, request));
        prop_assert_eq!(&explained.result, &injected);
        for one in &explained.templates {
            let template = self.templates.iter().find(|template| template.key() == one.template);
            let of_template = template.into_iter().flat_map(|template| &template.spec.parameters);
            let own: Vec<_> = of_template.map(|parameter| &parameter.name).collect();
            let named: Vec<_> = one.parameters.keys().collect();
            prop_assert!(named.is_empty() || named == own, "{}: {:?}", one.template, named);
            let is_applied = one.decision.as_ref().is_some_and(|one| one.state == State::Applied);
            prop_assert!(!is_applied || named == own, "{}: {:?}", one.template, named);
        }
        Ok(explained)
    }

    fn check(mut self, counts: &Counts) -> Result<(), TestCaseError> {
        counts.add("cases");
        let again = |pod: &Value| injected(&self.templates, pod);
        let Ok(first) = again(&self.pod) else {
            counts.add("denied");
            return Ok(());
        };
        let applied = first.decisions.iter().filter(|one| one.state == State::Applied).count();
        counts.add(["nothing applied", "one applied", "several applied"][applied.min(2)]);
        let once = first.pod;
        prop_assert!(is_minimal(&self.pod, &once), "{:?}", patch(&self.pod, &once));
        let twice = again(&once).map_err(TestCaseError::fail)?.pod;
        prop_assert_eq!(patch(&once, &twice), Vec::<Value>::new(), "twice");

        let mut changed = once.clone();
        for change in &self.changes {
            change.change(&mut changed);
            counts.add(change.name());
        }
        let has_new = self.changes.iter().any(|change| change.is_container());
        let third = match again(&changed) {
            // Templates that contradict each other in a container deny each pod that has it.
            Err(_) if has_new && self.denies_changed() => {
                counts.add("denied with a container");
                return Ok(());
            }
            third => third.map_err(TestCaseError::fail)?.pod,
        };
        prop_assert!(is_minimal(&changed, &third), "{:?}", patch(&changed, &third));
        let last = again(&third).map_err(TestCaseError::fail)?.pod;
        prop_assert_eq!(patch(&third, &last), Vec::<Value>::new(), "after {:?}", self.changes);
        if self.changes == [Foreign::Mark] {
            prop_assert_eq!(&third, &once);
        } else if !has_new && !self.changes.contains(&Foreign::Mark) {
            prop_assert_eq!(&third, &changed);
        }

        let is_explained = counts.cases().is_multiple_of(EXPLAINED);
        let pods = if is_explained { vec![&self.pod, &changed] } else { Vec::new() };
        let explained = pods.iter().map(|pod| self.explain(pod)).collect::<Result<Vec<_>, _>>()?;
        self.templates.reverse();
        for (pod, explained) in pods.iter().zip(explained) {
            prop_assert_eq!(self.explain(pod)?, explained, "the order of templates");
        }
        let again = |pod: &Value| injected(&self.templates, pod).map(|injected| injected.pod);
        prop_assert_eq!(again(&self.pod), Ok(once), "the order of templates");
        prop_assert_eq!(again(&changed), Ok(third), "the order of templates");
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "the variable is for people who run the test")]
fn cases() -> Option<u32> {
    std::env::var("INJECTD_PROPERTY_CASES").ok().and_then(|cases| cases.parse().ok())
}

#[test]
fn injecting_again_is_injecting_once() {
    // The same cases each time, unless more are asked for: those are other ones each time.
    let rng_seed = if cases().is_some() { RngSeed::Random } else { RngSeed::Fixed(SEED) };
    let config = ProptestConfig::with_cases(cases().unwrap_or(CASES));
    let config = ProptestConfig { rng_seed, ..config };
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..config });
    let counts = Counts::default();
    let input = ((object('a'), object('b'), object('c')), 1..4_usize, pods(), foreign());
    let result = runner.run(&input, |((a, b, c), count, pod, changes)| {
        let objects = [a, b, c];
        let templates = read(&objects[..count]);
        let shown = Value::from(objects[..count].to_vec());
        let checked = Case { templates, pod: pod.clone(), changes: changes.clone() }.check(&counts);
        let of_case = |why| TestCaseError::fail(format!("{why}\n{shown}\n{pod}\n{changes:?}"));
        checked.map_err(of_case)
    });
    match result {
        Err(TestError::Fail(why, _)) => panic!("{why}"),
        Err(other) => panic!("{other}"),
        Ok(()) => {}
    }
    let counts = counts.0.into_inner();
    print_line(&format!("{counts:?}"));
    assert!(counts["several applied"] * 4 > counts["cases"], "{counts:?}");
    assert!(counts["denied"] * 2 < counts["cases"], "{counts:?}");
}

#[expect(clippy::print_stderr, reason = "a person reads what the test did")]
fn print_line(line: &str) {
    eprintln!("{line}");
}
