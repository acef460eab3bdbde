//! Releases: named ones, and the edges around each change of L§1.1.

use super::random::Random;
use crate::reference::Release;
use crate::reference::release::Edge;

/// The edges that changed the output.
const CHANGES: &[Edge] = &[
    (23, 10, 4),
    (23, 11, 1),
    (23, 11, 2),
    (23, 11, 4),
    (23, 12, 4),
    (24, 1, 1),
    (24, 1, 2),
    (24, 2, 2),
    (24, 2, 3),
    (24, 4, 1),
    (24, 4, 2),
    (24, 4, 5),
    (24, 5, 1),
    (24, 5, 2),
    (24, 5, 4),
    (24, 6, 2),
    (24, 6, 4),
    (24, 7, 1),
    (24, 7, 3),
    (24, 7, 4),
    (24, 8, 1),
    (24, 8, 2),
    (24, 10, 1),
    (25, 1, 1),
    (25, 3, 3),
    (25, 3, 4),
    (25, 5, 5),
    (25, 6, 4),
    (25, 8, 2),
    (25, 8, 4),
    (25, 9, 1),
    (25, 10, 1),
    (25, 10, 2),
    (25, 11, 1),
    (25, 11, 3),
    (25, 12, 2),
    (26, 4, 3),
    (26, 4, 4),
    (26, 5, 2),
    (26, 6, 1),
    (26, 7, 1),
];

/// Versions of named releases, as the values contain them.
pub const NAMED: &[&str] = &[
    "stable-2.14.10",
    "version-2.15",
    "stable-2.16.0",
    "version-2.17",
    "enterprise-2.18.4",
    "version-2.19",
    "version-2.20",
    "edge-26.8.3",
];

/// A release.
pub fn any(random: &mut Random) -> Release {
    match random.below(10) {
        0..2 => Release::parse(random.pick(NAMED)).expect("a named release must parse"),
        2..9 => at(around(random.pick(CHANGES), random.pick(&[0, 0, 1, 1, 1, 2]))),
        _ => at((23 + number(random, 3), 1 + number(random, 12), 1 + number(random, 6))),
    }
}

/// A version of a release, as the values contain it.
pub fn version_of(release: Release, random: &mut Random) -> String {
    if release.stable_2_14 {
        return "stable-2.14.10".to_owned();
    }
    let named = NAMED.iter().filter(|name| Release::parse(name) == Some(release));
    let named: Vec<_> = named.collect();
    if !named.is_empty() && random.percent(50) {
        return (*random.pick(&named)).to_owned();
    }
    let (year, month, number) = release.edge;
    format!("edge-{year}.{month}.{number}")
}

/// The edge before, the edge itself, or the one after.
fn around(edge: Edge, which: usize) -> Edge {
    let (year, month, number) = edge;
    match which {
        0 if number > 1 => (year, month, number - 1),
        0 if month > 1 => (year, month - 1, 9),
        0 => (year - 1, 12, 9),
        1 => edge,
        _ => (year, month, number + 1),
    }
}

/// An edge, at least 23.9.2, the oldest supported one.
fn at(edge: Edge) -> Release {
    Release { edge: edge.max((23, 9, 2)), stable_2_14: false }
}

fn number(random: &mut Random, below: usize) -> u32 {
    u32::try_from(random.below(below)).expect("a small number must fit")
}
