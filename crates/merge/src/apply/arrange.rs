//! The order of a merged list.

/// Go sorts lists of up to this many elements by insertion.
// The block size of `sort.SliceStable`, which merges the blocks of a longer list.
const INSERTION_LENGTH: usize = 20;

/// An element and its places, each by the first element of its key.
#[derive(Debug)]
pub(super) struct Placed<T> {
    pub(super) item: T,
    /// In the patch.
    pub(super) in_patch: Option<usize>,
    /// In the base before the merge.
    pub(super) in_base: Option<usize>,
    /// Whether it still has `$patch: delete` after the merge. Go puts such elements last.
    pub(super) is_deletion: bool,
}

/// Elements of the patch in its order, and before each of them the others that stand before it in
/// the base. New elements come as early as possible.
///
/// Kubernetes: `normalizeElementOrder`, which searches lists for each comparison. This takes linear
/// time.
pub(super) fn arrange<T>(placed: Vec<Placed<T>>) -> Vec<T> {
    let length = placed.len();
    let (patch, others): (Vec<_>, Vec<_>) =
        placed.into_iter().partition(|placed| placed.in_patch.is_some());
    let mut others = sorted(others, |placed| placed.in_base).into_iter().peekable();
    let mut arranged = Vec::with_capacity(length);
    for next in sorted(patch, |placed| placed.in_patch) {
        let is_before = |other: &Placed<T>| match (other.in_base, next.in_base) {
            (Some(other), Some(next)) => other < next,
            _ => false,
        };
        while let Some(other) = others.next_if(is_before) {
            arranged.push(other.item);
        }
        arranged.push(next.item);
    }
    arranged.extend(others.map(|placed| placed.item));
    arranged
}

/// Sorts by position, elements of the same position as they stand.
///
/// Only with a `$setElementOrder` directive that lacks elements of the patch have some no position.
/// Kubernetes' comparison is inconsistent then; this is the same up to 20 elements.
fn sorted<T>(
    mut list: Vec<Placed<T>>,
    position: fn(&Placed<T>) -> Option<usize>,
) -> Vec<Placed<T>> {
    if list.iter().any(|placed| placed.is_deletion) {
        let (deletions, kept): (Vec<_>, Vec<_>) =
            list.into_iter().partition(|placed| placed.is_deletion);
        let mut all = sorted(kept, position);
        all.extend(deletions);
        return all;
    }
    if list.iter().all(|placed| position(placed).is_some()) {
        return by_counting(list, |placed| position(placed).unwrap_or_default());
    }
    if list.len() <= INSERTION_LENGTH {
        for end in 1..list.len() {
            let less = |one: &Placed<T>, other: &Placed<T>| {
                position(one).zip(position(other)).is_none_or(|(one, other)| one < other)
            };
            let mut at = end;
            while at > 0 && list.get(at).zip(list.get(at - 1)).is_some_and(|(a, b)| less(a, b)) {
                list.swap(at, at - 1);
                at -= 1;
            }
        }
        return list;
    }
    let (found, mut new): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|placed| position(placed).is_some());
    new.reverse();
    new.extend(by_counting(found, |placed| position(placed).unwrap_or_default()));
    new
}

/// A stable sort by small numbers, in linear time.
fn by_counting<T>(list: Vec<T>, number: impl Fn(&T) -> usize) -> Vec<T> {
    let numbers = list.iter().map(&number).max().map_or(0, |most| most + 1);
    let mut starts = vec![0; numbers + 1];
    for item in &list {
        if let Some(start) = starts.get_mut(number(item) + 1) {
            *start += 1;
        }
    }
    let mut before = 0;
    for start in &mut starts {
        before += *start;
        *start = before;
    }
    let mut slots: Vec<Option<T>> = Vec::new();
    slots.resize_with(list.len(), || None);
    for item in list {
        if let Some(start) = starts.get_mut(number(&item)) {
            if let Some(slot) = slots.get_mut(*start) {
                *slot = Some(item);
            }
            *start += 1;
        }
    }
    slots.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(item: &str, in_patch: Option<usize>, in_base: Option<usize>) -> Placed<&str> {
        Placed { item, in_patch, in_base, is_deletion: false }
    }

    #[test]
    fn new_elements_come_first_and_others_keep_their_place() {
        let list = vec![
            placed("app", None, Some(0)),
            placed("istio-proxy", Some(1), Some(1)),
            placed("z", None, Some(2)),
            placed("new1", Some(0), None),
            placed("new2", Some(2), None),
        ];
        assert_eq!(arrange(list), ["new1", "app", "istio-proxy", "new2", "z"]);
    }

    #[test]
    fn elements_of_one_key_come_together() {
        let list = vec![
            placed("a", None, Some(0)),
            placed("b", None, Some(1)),
            placed("a again", None, Some(0)),
        ];
        assert_eq!(arrange(list), ["a", "a again", "b"]);
    }
}
