//! What a check of templates takes.

use injectd_istio::{
    budget::{Budget, MAX_CHECK_STEPS},
    leaks,
};
use injectd_testkit::istio;

use super::*;

/// A template whose loop takes most of a pod's budget each time that it is rendered.
const LOOP: &str = "{{ range until 40000 }}{{ end }}{{ index .ObjectMeta.Labels `a` }}";

fn with_templates(count: usize) -> Revision {
    let templates = (0..count).map(|index| format!("  t{index:03}: \"{LOOP}\"\n"));
    let config = format!("policy: enabled\ntemplates:\n{}", templates.collect::<String>());
    revision_of(&config, "{}", "")
}

/// A budget that is spent in a moment.
const STEPS: usize = 2_000_000;

#[test]
fn templates_that_take_too_long_end_the_check_and_are_named() {
    let found = leaks::within(&with_templates(100), &Budget::of_check(STEPS));
    let unfinished = found.unfinished.expect("an end before the end");
    let number: usize = unfinished.template[1..].parse().expect("a number");
    assert!(number < 9, "{unfinished}");
    let problem = unfinished.to_string();
    assert!(problem.ends_with("takes more than its budget of 2000000 steps"), "{problem}");
}

#[test]
fn the_budget_is_one_for_all_configurations() {
    let budget = Budget::of_check(STEPS);
    assert!(leaks::within(&with_templates(100), &budget).unfinished.is_some());
    let next = leaks::within(&small(), &budget);
    assert_eq!(next.leaks, []);
    assert_eq!(next.unfinished.map(|unfinished| unfinished.template).as_deref(), Some("sidecar"));
}

#[test]
fn the_budget_has_room_for_25_revisions() {
    let testkit = istio::revision_of(istio::CONFIG, istio::VALUES, istio::MESH);
    for (release, revision) in
        [("testkit".to_owned(), testkit)].into_iter().chain(releases::recorded())
    {
        let budget = Budget::of_check(MAX_CHECK_STEPS);
        let found = leaks::within(&revision, &budget);
        assert_eq!(found.unfinished, None, "{release}");
        let steps = MAX_CHECK_STEPS - budget.left();
        println!("{release}: {steps} steps");
        assert!(25 * steps < MAX_CHECK_STEPS, "{release}: {steps}");
    }
}
