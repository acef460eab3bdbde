//! How like two names are: a known one, and one that a person may have mistyped.
//!
//! Not for where a key belongs; [`crate::explain::keys`] has that. Allocates nothing, and the time for two
//! names is bounded: explanations compare thousands of names that a client sends.

use smallvec::SmallVec;

/// Maximum length of a compared name, in bytes. Kubernetes limits the name of an annotation or label
/// to it.
const MAX_NAME_BYTES: usize = 63;
/// Maximum number of mistakes in a name. The time grows with its third power of four.
const MAX_MISTAKES: usize = 3;
/// One mistake is allowed for so many letters.
const LETTERS_PER_MISTAKE: usize = 4;

/// A name as it is compared: in lower case, without separators.
#[derive(Debug)]
pub(crate) struct Folded {
    bytes: SmallVec<[u8; MAX_NAME_BYTES]>,
    /// The letters that occur, a bit for each.
    letters: u64,
}

/// How like a known name is to another one; the least is the most like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// They differ in case and separators at most.
    Same,
    /// So many letters are missing, added, replaced, or swapped with the next one.
    Mistakes(usize),
    /// One is a part of the other, which has so many letters more.
    Part(usize),
}

impl Folded {
    /// The name; `None` if it is too long to be compared.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let mut folded = Self { bytes: SmallVec::new(), letters: 0 };
        for byte in name.bytes().filter(|byte| !b"-_./".contains(byte)) {
            if folded.bytes.len() == MAX_NAME_BYTES {
                return None;
            }
            let byte = byte.to_ascii_lowercase();
            folded.bytes.push(byte);
            folded.letters |= 1 << bit(byte);
        }
        Some(folded)
    }

    /// How like this known name is to another one; `None` if they share less than half of the
    /// letters, or have too many mistakes.
    pub(crate) fn like(&self, other: &Self) -> Option<Likeness> {
        let (one, other_bytes) = (&*self.bytes, &*other.bytes);
        if one == other_bytes {
            return Some(Likeness::Same);
        }
        let most = most_mistakes(one.len());
        // A mistake adds a letter, removes one, or both.
        let differing = (self.letters ^ other.letters).count_ones() as usize;
        let found = (differing <= 2 * most).then(|| mistakes(one, other_bytes, most)).flatten();
        found.map(Likeness::Mistakes).or_else(|| part(self, other))
    }
}

/// The bit of a letter. Bytes that no name should have share some bits.
fn bit(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => byte - b'a',
        b'0'..=b'9' => 26 + byte - b'0',
        other => 36 + other % 28,
    }
}

fn most_mistakes(letters: usize) -> usize {
    let least = usize::from(letters > 1);
    (letters / LETTERS_PER_MISTAKE).clamp(least, MAX_MISTAKES)
}

/// The number of letters that are missing, added, replaced, or swapped with the next one, if there
/// are at most so many.
pub(crate) fn mistakes(one: &[u8], other: &[u8], most: usize) -> Option<usize> {
    let common = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[common..], &other[common..]);
    let difference = one.len().abs_diff(other.len());
    if difference > most {
        return None;
    }
    if one.is_empty() || other.is_empty() {
        return Some(difference);
    }
    let rest = most.checked_sub(1)?;
    let is_swapped = one.len() > 1 && other.len() > 1 && one[0] == other[1] && one[1] == other[0];
    let after_swap = is_swapped.then(|| mistakes(&one[2..], &other[2..], rest)).flatten();
    let after_others = [(1, 0), (0, 1), (1, 1)]
        .map(|(of_one, of_other)| mistakes(&one[of_one..], &other[of_other..], rest));
    after_others.into_iter().chain([after_swap]).flatten().min().map(|found| found + 1)
}

/// The likeness of two names of which one is at least half of the other.
fn part(one: &Folded, other: &Folded) -> Option<Likeness> {
    let is_longer = one.bytes.len() > other.bytes.len();
    let (long, short) = if is_longer { (one, other) } else { (other, one) };
    let more = long.bytes.len() - short.bytes.len();
    let may_be = more <= short.bytes.len() && short.letters & !long.letters == 0;
    let mut windows = long.bytes.windows(short.bytes.len().max(1));
    let is_part = may_be && windows.any(|window| window == &*short.bytes);
    is_part.then_some(Likeness::Part(more))
}

/// The known name that is most like another one.
#[must_use]
pub fn most_like<'k>(known: impl Iterator<Item = &'k str>, name: &str) -> Option<&'k str> {
    let other = Folded::of(name)?;
    let like = known.filter_map(|known| Some((Folded::of(known)?.like(&other)?, known)));
    like.min_by_key(|(likeness, _)| *likeness).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn likeness(known: &str, other: &str) -> Option<Likeness> {
        Folded::of(known)?.like(&Folded::of(other)?)
    }

    #[test]
    fn names_are_compared_letter_by_letter() {
        for (known, other, expected) in [
            ("proxyCPU", "proxy-cpu", Some(Likeness::Same)),
            ("inject", "injcet", Some(Likeness::Mistakes(1))),
            ("proxy-log-level", "prxy-lg-levle", Some(Likeness::Mistakes(3))),
            ("logLevel", "proxyLogLevel", Some(Likeness::Part(5))),
            ("inject", "injection", Some(Likeness::Part(3))),
            ("rev", "revision", None),
            ("proxy-version", "retries", None),
            ("userVolumeMount", "excludeOutboundPorts", None),
            ("a", "b", None),
            ("a", "", None),
        ] {
            assert_eq!(likeness(known, other), expected, "{known} {other}");
        }
        assert_eq!(likeness("a", &"a".repeat(64)), None);
    }

    proptest! {
        /// Of what is like a name, at least half of the letters are its own.
        #[test]
        fn like_names_share_half_of_their_letters(known in "[a-d]{1,12}", other in "[a-f]{0,16}") {
            if likeness(&known, &other).is_some() {
                let mut rest: Vec<_> = other.bytes().collect();
                let shared = known.bytes().filter(|letter| {
                    let place = rest.iter().position(|other| other == letter);
                    place.map(|place| rest.swap_remove(place)).is_some()
                });
                let shared = shared.count();
                prop_assert!(2 * shared >= other.len(), "{known} {other}: {shared}");
            }
        }

        #[test]
        fn mistakes_are_those_of_another_algorithm(one in "[ab]{0,9}", other in "[ab]{0,9}") {
            let expected = strsim::osa_distance(&one, &other);
            let found = mistakes(one.as_bytes(), other.as_bytes(), MAX_MISTAKES);
            prop_assert_eq!(found, Some(expected).filter(|count| *count <= MAX_MISTAKES));
        }
    }
}
