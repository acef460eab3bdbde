//! Tables of cells in which every two values of different factors meet: a covering array of strength 2.
//!
//! For tests whose inputs have many factors, of which most faults need one or two.

use std::collections::BTreeSet;

use crate::generator::random::Random;

/// Candidates for a row. More of them make the table a little shorter.
const CANDIDATES: usize = 12;

/// A value of a factor: the numbers of both.
type Level = (usize, usize);

/// Rows with the number of a value for each factor, `count` or as many as all pairs of values need.
///
/// `weights` has the weights of the values by factor. They decide wherever pairs do not: in a random
/// row, and between values that are as new as each other. The first rows have the most new pairs, so
/// that a part of the table from its beginning is a good sample.
pub fn rows(weights: &[&[u32]], count: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = Random::new(seed);
    let mut missing = pairs(weights);
    let mut rows = Vec::new();
    while !missing.is_empty() || rows.len() < count {
        let candidates = (0..CANDIDATES).map(|_| candidate(weights, &missing, &mut random));
        let row = candidates.max_by_key(|row| covered(row, &missing).count());
        let row = row.expect("there must be candidates");
        for pair in covered(&row, &missing).collect::<Vec<_>>() {
            missing.remove(&pair);
        }
        rows.push(row);
    }
    rows
}

/// The pairs of values of different factors, the first factor first.
pub fn pairs(weights: &[&[u32]]) -> BTreeSet<(Level, Level)> {
    let of = |factor: usize| (0..weights[factor].len()).map(move |value| (factor, value));
    let factors = 0..weights.len();
    factors
        .clone()
        .flat_map(|first| (first + 1..weights.len()).map(move |second| (first, second)))
        .flat_map(|(first, second)| of(first).flat_map(move |a| of(second).map(move |b| (a, b))))
        .collect()
}

/// The pairs of a row that are missing.
fn covered(
    row: &[usize],
    missing: &BTreeSet<(Level, Level)>,
) -> impl Iterator<Item = (Level, Level)> {
    let levels = || row.iter().copied().enumerate();
    let pairs = levels().flat_map(move |a| levels().skip(a.0 + 1).map(move |b| (a, b)));
    pairs.filter(|pair| missing.contains(pair))
}

/// A row with a missing pair, if there is one, and then the value of each factor that makes the most
/// missing pairs with those before it.
fn candidate(
    weights: &[&[u32]],
    missing: &BTreeSet<(Level, Level)>,
    random: &mut Random,
) -> Vec<usize> {
    let mut chosen: Vec<Level> = Vec::new();
    if !missing.is_empty() {
        let pair = missing.iter().nth(random.below(missing.len()));
        chosen.extend(pair.into_iter().flat_map(|(a, b)| [*a, *b]));
    }
    let mut rest: Vec<_> = (0..weights.len()).collect();
    rest.retain(|factor| chosen.iter().all(|(other, _)| other != factor));
    random.shuffle(&mut rest);
    for factor in rest {
        let gain = |value: usize| {
            let new = (factor, value);
            let pairs = chosen.iter().map(|&old| if old < new { (old, new) } else { (new, old) });
            pairs.filter(|pair| missing.contains(pair)).count()
        };
        let gains: Vec<_> = (0..weights[factor].len()).map(gain).collect();
        let most = gains.iter().max();
        let best = (0..gains.len()).filter(|value| Some(&gains[*value]) == most);
        chosen.push((factor, weighted(weights[factor], &best.collect::<Vec<_>>(), random)));
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|(_, value)| value).collect()
}

/// One of these values of a factor, by their weights.
fn weighted(weights: &[u32], values: &[usize], random: &mut Random) -> usize {
    let repeated = values.iter().flat_map(|&value| (0..weights[value]).map(move |_| value));
    let repeated: Vec<_> = repeated.collect();
    if repeated.is_empty() { random.pick(values) } else { random.pick(&repeated) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: [&[u32]; 4] = [&[1, 1, 9], &[1; 7], &[2, 1, 0, 1], &[1, 5]];

    #[test]
    fn every_two_values_meet_in_few_rows() {
        let rows = rows(&WEIGHTS, 0, 1);
        let all = pairs(&WEIGHTS);
        let met: BTreeSet<_> = rows.iter().flat_map(|row| covered(row, &all)).collect();
        assert_eq!(met, all);
        // The two largest factors alone need 28.
        assert!((28..40).contains(&rows.len()), "{} rows", rows.len());
    }

    #[test]
    fn a_table_can_be_longer_and_is_the_same_each_time() {
        let long = rows(&WEIGHTS, 100, 1);
        assert_eq!(long.len(), 100);
        assert_eq!(rows(&WEIGHTS, 100, 1), long);
        let heavy = long.iter().skip(50).filter(|row| row[0] == 2).count();
        assert!(heavy > 30, "{heavy} of 50 have the heavy value");
    }
}
