//! Random walks, and some that are known to matter.

use proptest::test_runner::Config;

use super::*;
use crate::certificates::plan::Change;

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let replica = || 0..REPLICAS;
    let act = prop_oneof![
        4 => replica().prop_map(Act::ReadWebhooks),
        4 => replica().prop_map(Act::ReadSecret),
        4 => replica().prop_map(Act::Write),
        4 => replica().prop_map(Act::Watch),
        2 => (1..20_i64).prop_map(Act::Seconds),
        1 => replica().prop_map(Act::Restart),
        1 => Just(Act::LoseSecret),
        1 => Just(Act::ForeignSecret),
        1 => Just(Act::OldSecret),
        1 => (0..2_usize).prop_map(Act::Overwrite),
        1 => (0..2_usize, forgery()).prop_map(|(index, it)| Act::ForgeBundle(index, it)),
        1 => Just(Act::ForgeSecret),
        1 => (0..3_usize).prop_map(Act::Revoke),
        1 => (0..2_usize, any::<bool>()).prop_map(|(index, is)| Act::Forbid(index, is)),
    ];
    proptest::collection::vec(act, 1..60)
}

fn forgery() -> impl Strategy<Value = Forgery> {
    proptest::sample::select(&[Forgery::Plain, Forgery::Hidden, Forgery::Later])
}

/// Runs acts in rounds, the first one at some age of the CA.
fn walk(age: u8, rounds: &[Vec<Act>]) -> Checked {
    let mut world = World::begun()?;
    for _ in 0..age {
        world.pass(5);
        world.settle()?;
        world.check()?;
    }
    for acts in rounds {
        for act in acts {
            world.run(*act)?;
            world.check()?;
        }
        world.end_round()?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 64, ..Config::default() })]

    #[test]
    fn every_review_is_verified(
        age in 0..48_u8,
        rounds in proptest::collection::vec(acts(), 1..6),
    ) {
        walk(age, &rounds)?;
    }
}

/// A world whose Secret was not lost for long.
fn settled() -> World {
    let mut world = World::begun().expect("a world");
    world.pass(HANDOVER);
    world.settle().expect("the invariants");
    world
}

#[test]
fn a_ca_that_others_wrote_is_not_published_after_the_next_look() {
    let mut world = settled();
    for act in [
        Act::ForgeBundle(0, Forgery::Plain),
        Act::ForgeBundle(1, Forgery::Hidden),
        Act::ForgeBundle(0, Forgery::Later),
        Act::ForgeSecret,
    ] {
        world.run(act).expect("the act");
        assert_eq!(world.published_forgeries().is_empty(), matches!(act, Act::ForgeSecret));
        world.settle().expect("the invariants");
        assert!(world.published_forgeries().is_empty(), "{act:?}");
        world.check_strangers().expect("the invariants");
    }
}

#[test]
fn a_ca_of_a_bundle_is_handed_over_for_a_while_after_the_secret_was_lost() {
    let mut world = settled();
    for forgery in [Forgery::Plain, Forgery::Later, Forgery::Hidden] {
        world.run(Act::ForgeBundle(0, forgery)).expect("the act");
    }
    (0..REPLICAS).for_each(|replica| world.replicas[replica] = Replica::started(world.now));
    world.run(Act::LoseSecret).expect("the act");
    world.settle().expect("the invariants");
    assert_eq!(world.published_forgeries(), [Forgery::Plain]);
    world.pass(HANDOVER);
    world.settle().expect("the invariants");
    assert!(world.published_forgeries().is_empty());
}

#[test]
fn a_signing_ca_is_revoked_with_all_that_it_vouches_for() {
    // While a configuration may not be written, the next CA does not sign.
    for has_next in [false, true] {
        let mut world = settled();
        world.run(Act::Forbid(1, has_next)).expect("the act");
        for _ in 0..LIFETIMES.ca.as_secs() / 2 {
            if world.state().is_some_and(|state| state.cas().count() == 1) {
                world.pass(1);
                world.settle().expect("the invariants");
            }
        }
        world.run(Act::Forbid(1, false)).expect("the act");
        let earlier = world.state().expect("a state").clone();
        assert_eq!((earlier.next.is_some(), earlier.cas().count()), (has_next, 2));
        world.run(Act::Revoke(0)).expect("the act");
        for act in [Act::Watch(1), Act::OldSecret, Act::LoseSecret, Act::Restart(1)] {
            world.run(act).expect("the act");
            world.settle().expect("the invariants");
            let bundles =
                world.webhooks.iter().flat_map(|webhook| Certificate::of_pem(&webhook.bundle));
            let mut used = world.state().expect("a state").cas().cloned().chain(bundles);
            assert!(!used.any(|ca| earlier.cas().any(|known| *known == ca)), "{act:?}");
        }
    }
}

#[test]
fn a_revoked_ca_stays_revoked() {
    let mut world = settled();
    let first = world.state().expect("a state").ca.certificate.clone();
    world.run(Act::Revoke(0)).expect("the act");
    for act in [Act::LoseSecret, Act::OldSecret, Act::ForeignSecret, Act::Restart(0)] {
        world.settle().expect("the invariants");
        world.pass(PROPAGATION.as_secs().cast_signed());
        world.settle().expect("the invariants");
        let state = world.state().expect("a state");
        assert!(state.revoked.has(&first) && !state.cas().any(|ca| *ca == first), "{act:?}");
        let bundle = Certificate::of_pem(&world.webhooks[0].bundle);
        assert!(!bundle.contains(&first) && !bundle.is_empty(), "{act:?}");
        let served = world.replicas[1].served.as_ref().map(|served| served.ca.clone());
        assert_eq!(served.as_ref(), Some(&state.ca.certificate), "{act:?}");
        world.run(act).expect("the act");
    }
}

#[test]
fn certificates_are_renewed_and_previous_cas_are_removed_when_they_end() {
    let mut world = World::begun().expect("a world");
    let (mut changes, mut served) = (Vec::new(), Vec::new());
    for _ in 0..610 {
        world.pass(1);
        for _ in 0..2 {
            world.run(Act::ReadWebhooks(0)).expect("read");
            world.run(Act::ReadSecret(0)).expect("read");
            if let Some((_, _, Some(Step::Secret(_, found)))) = &world.replicas[0].planned {
                changes.extend(found.clone());
            }
            world.run(Act::Write(0)).expect("the invariants");
        }
        (0..REPLICAS).for_each(|replica| world.watch(replica));
        world.check().expect("the invariants");
        served.extend(world.replicas[1].served.clone());
        served.dedup();
    }
    let count = |change| changes.iter().filter(|found| **found == change).count();
    // A CA lives 240 s and is replaced when 120 s remain, the lifetime of a certificate.
    assert_eq!((count(Change::NewCa), count(Change::NextCaSigns)), (5, 5));
    assert_eq!(count(Change::NewLeaf), 10);
    assert_eq!(count(Change::RemovedCa), 4);
    assert_eq!(served.len(), 11, "each certificate is served");
    assert_eq!(world.state().expect("a state").previous.len(), 1);
}

#[test]
fn a_configuration_that_may_not_be_written_keeps_the_other_one_working() {
    let mut world = World::begun().expect("a world");
    let first = world.state().expect("a state").ca.clone();
    world.run(Act::Forbid(1, true)).expect("forbidden");
    for second in 0..=240 - MAX_SKEW - LAST_SECONDS {
        world.pass(1);
        (0..REPLICAS).for_each(|replica| world.watch(replica));
        world.settle().expect("the invariants");
        let state = world.state().expect("a state");
        assert_eq!(state.ca, first, "{second} s: the CA signs until its last seconds");
        let ended = world
            .replicas
            .iter()
            .flat_map(|replica| &replica.served)
            .any(|served| served.leaf.certificate.has_ended(world.now));
        assert!(!ended, "{second} s: certificates are renewed");
    }
    for _ in 0..MAX_SKEW + LAST_SECONDS {
        world.pass(1);
        world.settle().expect("the invariants");
    }
    let state = world.state().expect("a state");
    assert_ne!(state.ca, first);
    let served = |replica: &Replica| replica.served.as_ref().map(|served| served.ca.clone());
    assert_eq!(served(&world.replicas[0]), Some(state.ca.certificate.clone()));
}
