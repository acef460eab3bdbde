//! Amounts of more digits than are judged.

use super::*;

#[test]
fn a_note_names_an_amount_that_is_too_long() {
    let cpu = |text: &str| json!({"limits": {"cpu": text}});
    let plain = pod(&json!({}));
    assert_eq!(note_on_amounts(Checks::default(), &pod(&cpu("1e999"))), None);
    let said = note_on_amounts(Checks::default(), &pod(&cpu("1e2147483648"))).expect("a note");
    let begin =
        "container app: resources.limits.cpu is \"1e2147483648\": amounts of more than 1000 digits";
    assert!(said.starts_with(begin), "{said}");
    let long = "9".repeat(200_000);
    let said = note_on_amounts(Checks::default(), &pod(&cpu(&long))).expect("a note");
    assert!(said.len() < 400, "{said}");
    let ranges = range(&json!({"type": "Pod", "max": {"cpu": long}}));
    let quotas = quota(&json!({"hard": {"pods": long}}));
    for (checks, pod, place) in [
        (
            Checks { limit_ranges: &ranges, ..Checks::default() },
            &plain,
            "LimitRange range: max.cpu",
        ),
        (
            Checks { quotas: &quotas, ..Checks::default() },
            &plain,
            "ResourceQuota quota: spec.hard.pods",
        ),
        (
            Checks::default(),
            &json!({"spec": {"overhead": {"cpu": long}}}),
            "the pod: spec.overhead.cpu",
        ),
    ] {
        let said = note_on_amounts(checks, pod).expect("a note");
        assert!(said.starts_with(&format!("{place} is \"999")), "{said}");
    }
    // Nothing is judged of a pod that cannot be decoded.
    let mut undecoded = pod(&cpu(&long));
    undecoded["metadata"] = json!([]);
    assert_eq!(note_on_amounts(Checks::default(), &undecoded), None);
}

/// What is said of an amount does not grow with its text.
#[test]
fn objections_to_long_amounts_are_short() {
    let long = "9".repeat(200_000);
    let ranges = range(&json!({"type": "Container", "max": {"cpu": "1"}}));
    let quotas = quota(&json!({"hard": {"cpu": "1", "limits.cpu": long}}));
    let checks = Checks { limit_ranges: &ranges, quotas: &quotas, ..Checks::default() };
    let resources = json!({"requests": {"cpu": long}, "limits": {"cpu": "2"}});
    let found = refusals(checks, &pod(&resources));
    assert!(found.len() >= 3, "{found:?}");
    assert!(found.iter().all(|text| text.len() < 200), "{found:?}");
    let above = "the cpu request of a number of more than 1000 digits is above the limit of 2";
    assert!(found[0].ends_with(above), "{found:?}");
}
