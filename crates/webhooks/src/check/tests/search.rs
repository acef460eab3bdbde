//! The search for requests that a condition fails for: its bound.

use super::{
    Severity,
    failing::{CREATE, Case, PODS, of_pods},
};
use crate::check::check;

/// The search is bounded for all webhooks together, and an end is reported at each that it concerns.
#[test]
fn the_work_of_a_run_is_bounded_and_its_end_is_reported() {
    let parts =
        (0..40).map(|it| format!("object.metadata.labels.a{it} == 'b' || object.spec.x{it}"));
    let long = parts.collect::<Vec<_>>().join(" || ");
    let doubled = (0..40).fold("[[1]]".to_owned(), |list, _| list + ".map(x, x + x)");
    let nested = (0..40).fold("dyn([1])".to_owned(), |list, _| format!("[{list}].map(x, [x, x])"));
    let deep = (0..12).fold("object".to_owned(), |of, _| format!("optional.of({of}).optMap(v, v)"));
    let few = format!("{nested} == [object.spec]");
    of_pods(CREATE, &few);
    of_pods(CREATE, &format!("{deep} == 1"));
    // One that spends its share leaves something to the next.
    let case = Case { operations: CREATE, resources: PODS, expressions: &[&long] };
    let mut object = case.object("ValidatingWebhookConfiguration", "Fail");
    let mut next = object["webhooks"][0].clone();
    next["name"] = "next.example.com".into();
    next["matchConditions"][0]["expression"] = "object.metadata.labels.a == 'b'".into();
    object["webhooks"].as_array_mut().expect("webhooks").push(next);
    let found = check([&object]);
    assert!(found.iter().any(|it| it.advice.starts_with("Write has(")), "{found:?}");
    for expression in [long, format!("{doubled}.size() == 1")] {
        let case = Case { operations: CREATE, resources: PODS, expressions: &[&expression] };
        let mut object = case.object("ValidatingWebhookConfiguration", "Fail");
        let first = object["webhooks"][0].clone();
        let all = (0..30).map(|index| {
            let mut webhook = first.clone();
            webhook["name"] = format!("w{index}.example.com").into();
            webhook
        });
        object["webhooks"] = all.collect();
        let found = check([&object]);
        let ends = found.iter().filter(|it| it.problem.contains("stopped early"));
        assert_eq!(ends.clone().count(), 30, "{found:?}");
        assert!(ends.clone().all(|it| it.severity == Severity::Suggestion));
    }
}

/// Conditions beside each other cost what each of them costs.
#[test]
fn many_conditions_are_followed_to_the_end() {
    let all: Vec<_> = (0..64)
        .map(|it| format!("object.metadata.labels['k{it}'] == 'v' || object.spec.f{it} == 'w'"))
        .collect();
    let expressions: Vec<_> = all.iter().map(String::as_str).collect();
    let case = Case { operations: CREATE, resources: PODS, expressions: &expressions };
    let found = case.found("MutatingWebhookConfiguration", "Fail");
    assert_eq!(found.len(), 64);
    assert!(found.iter().all(|it| it.1.contains("metadata.labels.k")), "{found:?}");
}
