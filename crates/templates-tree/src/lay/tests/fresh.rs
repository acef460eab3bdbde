//! Containers and volumes that a pod does not have are put there as [`steps`](super::steps) would lay them.

use std::{borrow::Cow, cell::Cell};

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::select,
    test_runner::{RngSeed, TestRunner},
};

use super::{
    properties::{conflict, part, piece},
    *,
};
use crate::lay::fresh;

/// Cases that are tried.
const CASES: u32 = 512;
/// Any number: the cases are the same each time.
const SEED: u64 = 43;

/// What the steps make of a pod without comparing what they meet; `None` if they may meet something.
fn put(pod: &Value, steps: &[StepOverlay]) -> Option<Result<(Value, Own), Denied>> {
    if !fresh::is_new(pod, steps) {
        return None;
    }
    let (mut pod, mut own) = (Cow::Borrowed(pod), Own::default());
    if let Err(denied) = fresh::prepare(&mut pod, &mut own, steps) {
        return Some(Err(denied));
    }
    for step in steps {
        let placed = [step.init_containers.clone(), step.containers.clone()];
        fresh::put(pod.to_mut(), &mut own, &mut step.overlay.clone(), &placed);
    }
    Some(Ok((pod.into_owned(), own)))
}

fn placement() -> impl Strategy<Value = Placed> {
    let positions =
        || select(vec![Position::First, Position::Last, Position::Before, Position::After]);
    let names = option::of(select(vec!["pa", "pb", "ta", "nobody"]));
    (positions(), names, any::<bool>()).prop_map(|(position, name, is_first)| {
        let otherwise = if is_first { Position::First } else { Position::Last };
        placed(position, name, otherwise)
    })
}

fn without_empty_lists(mut pod: Value) -> Value {
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    }
    pod
}

/// The same cases each time.
fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig {
        rng_seed: RngSeed::Fixed(SEED),
        failure_persistence: None,
        ..ProptestConfig::with_cases(CASES)
    })
}

#[test]
fn what_is_new_is_put_as_steps_lay_it() {
    let existing = option::of(select(vec![Existing::Keep, Existing::Replace, Existing::Fail]));
    // Steps with other letters name other containers.
    let overlay = prop_oneof![2 => part("t"), 2 => part("u"), 2 => part("v"), 1 => part("p")];
    let step = (overlay, existing, conflict(), placement(), placement());
    let input = (part("p"), any::<bool>(), vec(step, 1..4));
    let (new, denied) = (Cell::new(0), Cell::new(0));
    let result = runner().run(&input, |(pod, is_short, steps)| {
        let pod = if is_short { without_empty_lists(pod) } else { pod };
        let steps = steps.iter().map(|(overlay, existing, answer, init_containers, containers)| {
            let (init_containers, containers) = (init_containers.clone(), containers.clone());
            let on_conflict = Some(*answer);
            StepOverlay {
                existing: *existing,
                on_conflict,
                init_containers,
                containers,
                ..bare(overlay)
            }
        });
        let steps: Vec<_> = steps.collect();
        let Some(found) = put(&pod, &steps) else { return Ok(()) };
        let mut own = Own::default();
        let expected = crate::lay::laid(&pod, &mut own, &steps).map(|(laid, changed)| {
            assert!(laid.iter().all(|laid| *laid == Laid::Done), "{laid:?}");
            (changed.unwrap_or_else(|| pod.clone()), own)
        });
        new.set(new.get() + 1);
        denied.set(denied.get() + u32::from(found.is_err()));
        prop_assert_eq!(found, expected);
        Ok(())
    });
    result.unwrap_or_else(|why| panic!("{why}"));
    assert!(new.get() > CASES / 5 && denied.get() > 0, "{new:?} {denied:?}");
}

#[test]
fn entries_that_are_new_are_added_as_a_comparison_would() {
    let existing = option::of(select(vec![Existing::Keep, Existing::Replace, Existing::Fail]));
    // An overlay with a list alone is new more often than one with all of them.
    let overlay = (piece(), select(vec!["env", "volumeMounts", "ports", ""])).prop_map(
        |(mut overlay, kept)| {
            if let Some(overlay) = overlay.as_object_mut().filter(|_| !kept.is_empty()) {
                overlay.retain(|key, _| key == kept);
            }
            overlay
        },
    );
    let lacks = select(vec!["env", "volumeMounts", "ports", ""]);
    let added = Cell::new(0);
    let input = (piece(), lacks, overlay, existing);
    let result = runner().run(&input, |(mut container, lacks, overlay, existing)| {
        container.as_object_mut().expect("an object").remove(lacks);
        let mut found = container.clone();
        let map = |value: &mut Value| value.as_object_mut().map(std::mem::take);
        let (Some(mut fields), Value::Object(new)) = (map(&mut found), &overlay) else {
            panic!("two objects: {container} {overlay}");
        };
        if !fresh::add_entries(&mut fields, new) {
            prop_assert_eq!(Value::Object(fields), container);
            return Ok(());
        }
        added.set(added.get() + 1);
        let existing_env = BTreeMap::new();
        let rule = RuleOverlay {
            overlay: &overlay,
            existing,
            existing_env: &existing_env,
            env_first: false,
            others: Others::default(),
        };
        prop_assert_eq!(crate::lay::compared(&mut container, &rule), Ok(()));
        prop_assert_eq!(Value::Object(fields), container);
        Ok(())
    });
    result.unwrap_or_else(|why| panic!("{why}"));
    assert!(added.get() > CASES / 5, "{added:?}");
}
