//! Which elements of a list stay where they are if others change their places.

/// Keeps the rising part of `origins` with as many unchanged elements as possible, and then with as
/// many changed ones as possible. The others become `None`.
///
/// `origins` are different indices below `old_len`. The cost is n log n.
pub(super) fn keep_rising(
    origins: &mut [Option<usize>],
    old_len: usize,
    is_unchanged: impl Fn(usize, usize) -> bool,
) {
    let mut best = Best::new(old_len);
    let mut previous = vec![None; origins.len()];
    let unchanged_weight = old_len + 1;
    let mut end = (0, None);
    for (at, origin) in origins.iter().enumerate() {
        let Some(origin) = *origin else { continue };
        let own = if is_unchanged(origin, at) { unchanged_weight } else { 1 };
        let (weight, before) = best.below(origin);
        previous[at] = before;
        let chain = (weight + own, Some(at));
        best.raise(origin, chain);
        if chain.0 > end.0 {
            end = chain;
        }
    }
    let mut kept = vec![false; origins.len()];
    while let Some(at) = end.1 {
        kept[at] = true;
        end.1 = previous[at];
    }
    for (origin, kept) in origins.iter_mut().zip(kept) {
        if !kept {
            *origin = None;
        }
    }
}

/// The weight of a chain, and the position of its last element in the new list.
type Chain = (usize, Option<usize>);

/// The heaviest chain that ends below an old index: a Fenwick tree of maxima.
struct Best(Vec<Chain>);

impl Best {
    fn new(old_len: usize) -> Self {
        Self(vec![(0, None); old_len + 1])
    }

    fn below(&self, old: usize) -> Chain {
        let mut found = (0, None);
        let mut node = old;
        while node > 0 {
            if self.0[node].0 > found.0 {
                found = self.0[node];
            }
            node &= node - 1;
        }
        found
    }

    fn raise(&mut self, old: usize, chain: Chain) {
        let mut node = old + 1;
        while node < self.0.len() {
            if chain.0 > self.0[node].0 {
                self.0[node] = chain;
            }
            node += node & node.wrapping_neg();
        }
    }
}
