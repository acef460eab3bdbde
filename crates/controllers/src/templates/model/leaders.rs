//! A leader that stops between any two of its writes: it dies, or hangs and does the rest later, when another
//! one has led for some time.

use super::*;
use crate::templates::conditions::OF_NEWEST;

/// The leader that stops, the one that follows, and a replica that never leads.
const FIRST: usize = 0;
const SECOND: usize = 1;
const LATE: usize = 2;

/// What a user does while the first leader hangs.
const MEANWHILE: [&[Act]; 4] = [
    &[],
    &[Act::Edit(0, None)],
    &[Act::Edit(0, Some(5)), Act::Edit(1, Some(0))],
    &[Act::Delete(0), Act::Edit(0, Some(1))],
];

impl World {
    /// No leader writes a status that is older than the one that is there, or in parts.
    pub(super) fn check_order(&mut self) -> Checked {
        for (uid, status) in self.store.statuses() {
            let Some(generation) = status["observedGeneration"].as_i64() else { continue };
            let before = self.generations.insert(uid.to_owned(), generation).unwrap_or_default();
            prop_assert!(before <= generation, "{}: {} after {}", uid, generation, before);
            for condition in status["conditions"].as_array().into_iter().flatten() {
                let of = condition["observedGeneration"].as_i64();
                let is_of_newest = OF_NEWEST.iter().any(|name| condition["type"] == *name);
                prop_assert!(of == Some(generation) || !is_of_newest && of < Some(generation));
            }
        }
        Ok(())
    }
}

/// A world in which a leader has all kinds of writes to do: a new revision, one of before, one too many, and
/// status.
fn begun() -> World {
    let mut world = World::begun();
    for spec in 0..3 {
        run(&mut world, &[Act::Edit(0, Some(spec)), Act::Edit(1, Some(spec % 2))]);
        lead(&mut world, FIRST, usize::MAX);
    }
    run(&mut world, &[Act::Edit(0, Some(3)), Act::Edit(1, Some(1))]);
    world
}

fn run(world: &mut World, acts: &[Act]) {
    for act in acts {
        world.run(*act).expect("the invariants");
    }
}

/// A leader does up to so many writes, while all replicas follow, one of them later. Returns how many writes
/// were done.
fn lead(world: &mut World, leader: usize, most: usize) -> usize {
    let mut done = 0;
    for round in 0..ROUNDS {
        for replica in 0..if round == 0 { LATE } else { REPLICAS } {
            run(world, &[Act::SeeTemplates(replica), Act::SeeRevisions(replica)]);
            run(world, &[Act::Report(replica)]);
        }
        run(world, &[Act::Plan(leader)]);
        let planned = world.replicas[leader].planned.len();
        if planned == 0 {
            return done;
        }
        for _ in 0..planned {
            if done == most {
                return done;
            }
            run(world, &[Act::Write(leader)]);
            done += 1;
        }
    }
    panic!("the writes of leader {leader} do not end");
}

#[test]
fn a_leader_may_die_between_any_two_writes() {
    let all = lead(&mut begun(), FIRST, usize::MAX);
    assert!(all >= 7, "{all} writes");
    for stop in 0..=all {
        let mut world = begun();
        assert_eq!(lead(&mut world, FIRST, stop), stop);
        run(&mut world, &[Act::Restart(FIRST)]);
        lead(&mut world, SECOND, usize::MAX);
        world.end_round(SECOND).unwrap_or_else(|error| panic!("after {stop} writes: {error}"));
    }
}

/// The stale leader has read what was there before, and knows of no other one.
#[test]
fn a_leader_may_hang_between_any_two_writes_and_write_later() {
    let all = lead(&mut begun(), FIRST, usize::MAX);
    for stop in 0..all {
        // The second one has done so many writes when the first one wakes up.
        for others in [stop % 3, all] {
            let mut world = begun();
            lead(&mut world, FIRST, stop);
            run(&mut world, MEANWHILE[(stop + others) % MEANWHILE.len()]);
            lead(&mut world, SECOND, others);
            while !world.replicas[FIRST].planned.is_empty() {
                run(&mut world, &[Act::Write(FIRST), Act::SeeRevisions(LATE), Act::Write(SECOND)]);
            }
            let ended = world.end_round(SECOND);
            ended.unwrap_or_else(|error| panic!("{stop} and {others} writes: {error}"));
        }
    }
}

/// A user goes back to the content of a revision that the first leader is about to remove.
#[test]
fn a_late_removal_spares_a_revision_that_is_in_force_again() {
    let all = lead(&mut begun(), FIRST, usize::MAX);
    let mut spared = 0;
    for (stop, spec) in (0..all).flat_map(|stop| (0..3).map(move |spec| (stop, spec))) {
        let mut world = begun();
        lead(&mut world, FIRST, stop);
        let Some(Write::DeleteRevision(of)) = world.replicas[FIRST].planned.first() else {
            continue;
        };
        let name = of.name.clone();
        run(&mut world, &[Act::Edit(0, Some(spec)), Act::Edit(1, Some(spec))]);
        lead(&mut world, SECOND, usize::MAX);
        let is_kept = |world: &World| {
            world.store.revisions().iter().any(|kept| kept.metadata.name.as_ref() == Some(&name))
        };
        let was_kept = is_kept(&world);
        run(&mut world, &[Act::Write(FIRST)]);
        assert_eq!(is_kept(&world), was_kept, "{name}");
        spared += usize::from(was_kept);
    }
    assert!(spared > 0, "no revision was in force again");
}

/// Both go on: neither waits for the other, and each has seen less than the other has written.
#[test]
fn two_leaders_end_with_the_same() {
    let mut world = begun();
    for _ in 0..ROUNDS {
        for (leader, other) in [(FIRST, SECOND), (SECOND, FIRST)] {
            run(&mut world, &[Act::SeeTemplates(leader), Act::Report(leader), Act::Plan(leader)]);
            run(&mut world, &[Act::Write(leader), Act::Write(other), Act::Write(leader)]);
            run(&mut world, &[Act::SeeRevisions(other)]);
        }
    }
    world.end_round(FIRST).expect("the invariants");
}
