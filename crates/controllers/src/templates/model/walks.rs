//! Random walks, and some that are known to matter.

use proptest::test_runner::Config;

use super::{store::TEMPLATES, *};

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let replica = || 0..REPLICAS;
    let spec = prop_oneof![2 => (0..6_u8).prop_map(Some), 1 => Just(None)];
    let act = prop_oneof![
        4 => (0..TEMPLATES, spec).prop_map(|(index, spec)| Act::Edit(index, spec)),
        1 => (0..TEMPLATES).prop_map(Act::Delete),
        1 => (0..TEMPLATES, any::<bool>()).prop_map(|(index, is)| Act::Kind(index, is)),
        1 => (0..4_usize).prop_map(Act::Lose),
        4 => replica().prop_map(Act::SeeTemplates),
        4 => replica().prop_map(Act::SeeRevisions),
        4 => replica().prop_map(Act::Report),
        4 => replica().prop_map(Act::Plan),
        8 => replica().prop_map(Act::Write),
        1 => replica().prop_map(Act::Rescue),
        1 => replica().prop_map(Act::Restart),
        1 => Just(Act::Pass),
    ];
    proptest::collection::vec(act, 1..60)
}

/// Runs acts in rounds; another replica leads at the end of each.
fn walk(rounds: &[Vec<Act>]) -> Checked {
    let mut world = World::begun();
    for (round, acts) in rounds.iter().enumerate() {
        for act in acts {
            world.run(*act)?;
        }
        world.end_round(round % REPLICAS)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 32, ..Config::default() })]

    #[test]
    fn what_is_served_is_kept_and_status_says_so(
        rounds in proptest::collection::vec(acts(), 1..4),
    ) {
        walk(&rounds)?;
    }
}

/// A world with a template in order, of which everything is written.
fn settled() -> World {
    let mut world = World::begun();
    world.run(Act::Edit(0, Some(0))).expect("the act");
    world.end_round(0).expect("the invariants");
    world
}

fn run(world: &mut World, acts: &[Act]) {
    for act in acts {
        world.run(*act).expect("the act");
    }
}

/// The hash that a replica serves.
fn served(world: &World, replica: usize) -> Option<String> {
    let known = world.replicas[replica].plane.known();
    Some(known.templates.get(&identity(0))?.served.as_ref()?.hash.clone())
}

#[test]
fn a_revision_that_no_leader_kept_is_kept_by_a_replica_that_serves_it() {
    let mut world = settled();
    // The leader ends before it keeps the next revision, which one replica serves.
    run(&mut world, &[Act::Edit(0, Some(1)), Act::SeeTemplates(1), Act::Edit(0, None)]);
    run(&mut world, &[Act::Restart(0), Act::Restart(2)]);
    let last = served(&world, 1);
    world.end_round(2).expect("the invariants");
    assert_eq!(
        [0, 1, 2].map(|replica| served(&world, replica)),
        [last.clone(), last.clone(), last]
    );
}

#[test]
fn the_same_content_is_the_same_revision_again() {
    let mut world = settled();
    let first = served(&world, 0);
    for spec in [1, 0] {
        run(&mut world, &[Act::Edit(0, Some(spec))]);
        world.end_round(0).expect("the invariants");
    }
    assert_eq!(served(&world, 0), first);
    let uid = plane::uid(&world.replicas[0].plane.known().templates[&identity(0)]);
    let mut numbers: Vec<_> =
        world.store.kept(&uid).iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
}

#[test]
fn a_leader_that_wakes_up_late_changes_nothing() {
    let mut world = settled();
    run(&mut world, &[Act::Edit(0, Some(1)), Act::SeeTemplates(1), Act::Report(1), Act::Plan(1)]);
    run(&mut world, &[Act::Edit(0, Some(2))]);
    world.end_round(0).expect("the invariants");
    let before = served(&world, 0);
    run(&mut world, &[Act::Edit(0, None)]);
    run(&mut world, &[Act::Write(1); 8]);
    world.end_round(0).expect("the invariants");
    assert_eq!(served(&world, 0), before);
}

#[test]
fn revisions_stay_while_their_kind_is_gone() {
    let mut world = settled();
    let known = world.store.revisions().len();
    run(&mut world, &[Act::Kind(0, false), Act::Pass, Act::Pass]);
    world.end_round(0).expect("the invariants");
    assert_eq!(world.store.revisions().len(), known);
    run(&mut world, &[Act::Kind(0, true)]);
    world.end_round(1).expect("the invariants");
    assert_eq!(world.store.revisions().len(), known, "another leader counts from when it looks");
    // Templates whose definition is there again are served for a while.
    run(&mut world, &[Act::Pass; 5]);
    world.end_round(1).expect("the invariants");
    assert_eq!(world.store.revisions().len(), 0);
}
