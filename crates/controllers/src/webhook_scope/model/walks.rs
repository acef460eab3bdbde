//! Random walks, and some that are known to matter.

use proptest::test_runner::Config;

use super::*;
use crate::webhook_scope::state::Why;

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (replica, variant) = (|| 0..REPLICAS, || 0..VARIANTS.len());
    let fault =
        prop_oneof![8 => Just(Fault::None), 1 => Just(Fault::Unreachable), 1 => Just(Fault::Lost)];
    let act = prop_oneof![
        6 => replica().prop_map(Act::Plan),
        6 => (replica(), fault).prop_map(|(replica, fault)| Act::Write(replica, fault)),
        4 => replica().prop_map(Act::See),
        4 => replica().prop_map(Act::Watch),
        3 => (1_u64..70).prop_map(Act::Seconds),
        3 => variant().prop_map(Act::Set),
        1 => variant().prop_map(Act::Delete),
        2 => replica().prop_map(Act::Lead),
        1 => replica().prop_map(Act::Restart),
        2 => proptest::sample::select(&Edit::ALL).prop_map(Act::Others),
        1 => any::<bool>().prop_map(Act::Drops),
        1 => any::<bool>().prop_map(Act::Rejects),
    ];
    proptest::collection::vec(act, 1..80)
}

proptest! {
    #![proptest_config(Config { cases: 32, ..Config::default() })]

    #[test]
    fn each_pod_of_a_template_is_called_for(rounds in proptest::collection::vec(acts(), 1..4)) {
        let mut world = World::new();
        world.end_round()?;
        for acts in rounds {
            for act in acts {
                world.run(act)?;
            }
            world.end_round()?;
        }
    }
}

/// A world in which a leader has written the scope of some variants.
fn begun(variants: &[usize]) -> World {
    let mut world = World::new();
    for variant in variants {
        world.run(Act::Set(*variant)).expect("the act");
    }
    world.end_round().expect("the invariants");
    world
}

#[test]
fn a_template_that_changes_is_called_for_in_both_ways_for_a_while() {
    let mut world = begun(&[0]);
    world.run(Act::Set(1)).expect("the act");
    world.settle().expect("the invariants");
    assert_eq!(world.called(), [true, true, false, false, false]);
    world.pass(KEPT.as_secs());
    world.settle().expect("the invariants");
    assert_eq!(world.called(), [false, true, false, false, false]);
}

#[test]
fn a_leader_with_older_knowledge_narrows_nothing() {
    let mut world = begun(&[0]);
    world.run(Act::Set(2)).expect("the act");
    for act in [Act::Watch(0), Act::See(0), Act::Plan(0), Act::Write(0, Fault::None), Act::Lead(1)]
    {
        world.run(act).expect("the act");
    }
    for act in [Act::See(1), Act::Plan(1), Act::Write(1, Fault::None)] {
        world.run(act).expect("the invariants");
    }
    assert_eq!(world.called(), [true; PODS], "all pods, until it has seen the template");
    world.end_round().expect("the invariants");
    assert_eq!(world.called(), [true, false, true, false, false]);
}

#[test]
fn what_others_wrote_is_repaired_at_once() {
    let mut world = begun(&[0]);
    for edit in [Edit::Reset, Edit::Narrow, Edit::Again] {
        world.run(Act::Others(edit)).expect("the act");
        for act in [Act::See(0), Act::Plan(0), Act::Write(0, Fault::None)] {
            world.run(act).expect("the invariants");
        }
        assert_eq!(world.called(), [true, false, false, false, false], "{edit:?}");
    }
}

#[test]
fn a_further_entry_follows_the_first_and_that_is_no_repair() {
    let mut world = begun(&[0, 3]);
    assert_eq!(world.server.entries().map(|entries| entries.len()), Some(2));
    for act in [Act::Others(Edit::Timeout), Act::See(0), Act::Plan(0)] {
        world.run(act).expect("the act");
    }
    let planned = world.replicas[0].planned.as_ref().map(|write| &write.why);
    assert_eq!(planned, Some(&Why::Changed));
    world.end_round().expect("the invariants");
}

#[test]
fn what_a_leader_writes_has_no_findings() {
    let whole: Vec<usize> = (0..VARIANTS.len()).collect();
    for variants in [&[][..], &[0, 2], &[5, 3], &[4], &whole] {
        let world = begun(variants);
        let object = world.server.object().expect("a configuration");
        let findings = injectd_webhooks::check::check([object]);
        assert_eq!(findings, [], "{variants:?}");
    }
}
