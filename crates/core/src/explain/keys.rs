//! Annotations and labels that look as if a mesh read them, and do not have their right place or name.
//!
//! One set of rules for every mesh: a mesh brings the keys that it reads and where it reads them. Not
//! for keys in their right place; whether those have an effect is for the mesh.

use injectd_k8s::names::{MAX_LABEL_BYTES, MAX_SUBDOMAIN_BYTES};
use smallvec::SmallVec;

use super::{
    Layer,
    places::{At, Place, Places},
};
use crate::spelling::{Folded, Likeness, mistakes};

/// Maximum length of a key of annotations and labels: a DNS subdomain, a slash and a name.
const MAX_KEY_BYTES: usize = MAX_SUBDOMAIN_BYTES + 1 + MAX_LABEL_BYTES;
/// Maximum number of suggestions for one key: keys that are equally like.
const MAX_SUGGESTIONS: usize = 3;
/// Maximum number of mistakes in the prefix of a key, or in a key without its slash.
const MISTAKES_IN_PREFIX: usize = 2;

/// A key that a mesh reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known<'k> {
    /// The key.
    pub key: &'k str,
    /// Where it is read, the place to prefer first.
    pub places: &'static [Place],
}

/// What is said of a mesh's keys.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// What reads annotations: `Linkerd reads`.
    pub annotations: &'static str,
    /// What reads labels: `the webhooks read`.
    pub labels: &'static str,
    /// A word that every prefix of the mesh has: `linkerd`.
    pub name: &'static str,
    /// The prefixes, without the slash, of which the mesh reads every key that it knows and no other.
    pub settings: &'static [&'static str],
    /// What is said of an unknown key with such a prefix.
    pub unknown: &'static str,
}

/// The keys that a mesh reads.
#[derive(Debug)]
pub struct Keys<'k> {
    words: Words,
    /// In the order of the keys.
    known: Vec<Compared<'k>>,
    prefixes: Vec<&'k str>,
}

/// A known key in the form in which it is compared.
#[derive(Debug)]
struct Compared<'k> {
    known: Known<'k>,
    prefix: &'k str,
    name: Option<Folded>,
}

/// Known keys that are equally like another one.
type Suggestions<'k> = SmallVec<[Known<'k>; MAX_SUGGESTIONS]>;

/// What is wrong with a key.
#[derive(Debug)]
pub struct Problem<'k>(What<'k>);

#[derive(Debug)]
enum What<'k> {
    /// The mesh reads the key elsewhere.
    Misplaced(Known<'k>),
    /// The mesh reads no such key, although the prefix is one of its own.
    Unknown,
    /// Nothing reads the key, and it is like these.
    Mistyped(Suggestions<'k>),
}

impl Problem<'_> {
    /// Whether the mesh reads the key, but elsewhere.
    #[must_use]
    pub fn is_misplaced(&self) -> bool {
        matches!(self.0, What::Misplaced(_))
    }
}

impl<'k> Keys<'k> {
    /// The keys of a mesh.
    pub fn new(words: Words, known: impl Iterator<Item = Known<'k>>) -> Self {
        let mut known: Vec<_> = known
            .map(|known| {
                let (prefix, name) = split(known.key);
                Compared { known, prefix, name: Folded::of(name) }
            })
            .collect();
        known.sort_by_key(|key| key.known.key);
        let mut prefixes: Vec<_> =
            known.iter().map(|key| key.prefix).filter(|prefix| !prefix.is_empty()).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        Self { words, known, prefixes }
    }

    /// What is wrong with a key at a place that is not its right one; `None` if it is not a key of the
    /// mesh, or if its right place has it with the same value.
    #[must_use]
    pub fn problem(
        &self,
        places: &Places<'_>,
        at: &At<'_>,
        key: &str,
        value: &str,
    ) -> Option<Problem<'k>> {
        if let Ok(index) = self.known.binary_search_by_key(&key, |key| key.known.key) {
            let known = self.known[index].known;
            let is_right = known.places.contains(&at.place);
            let is_copy = at.place.layer() != Layer::Pod && places.have(known.places, key, value);
            return (!is_right && !is_copy).then_some(Problem(What::Misplaced(known)));
        }
        let (prefix, _) = split(key);
        if self.words.settings.contains(&prefix) {
            return Some(Problem(What::Unknown));
        }
        if key.len() > MAX_KEY_BYTES {
            return None;
        }
        let like = match prefix {
            "" => self.without_slash(key),
            _ if self.is_like_own(prefix) => self.like(key, |_| true),
            _ if prefix.contains(self.words.name) => {
                self.like(key, |likeness| likeness == Likeness::Same)
            }
            _ => return None,
        };
        (!like.is_empty()).then_some(Problem(What::Mistyped(like)))
    }

    /// The problem in words.
    #[must_use]
    pub fn text(
        &self,
        places: &Places<'_>,
        at: &At<'_>,
        key: &str,
        problem: &Problem<'k>,
    ) -> String {
        match &problem.0 {
            What::Misplaced(known) => self.misplaced(places, at, *known),
            What::Unknown => {
                let like = self.like(key, |_| true);
                format!("{}{}", self.words.unknown, suggestion(places, at, &like))
            }
            What::Mistyped(like) => format!("nothing reads it{}", suggestion(places, at, like)),
        }
    }

    /// Whether a known key has the same name as another one, under another prefix.
    #[must_use]
    pub fn has_name_of(&self, key: &str) -> bool {
        !self.like(key, |likeness| likeness == Likeness::Same).is_empty()
    }

    /// The known keys that another one may mean: those with the same name under another prefix, else
    /// those with a name like it. Of equally like names, those with the nearest prefix.
    #[must_use]
    pub fn suggestions(&self, key: &str) -> Vec<&'k str> {
        let (prefix, _) = split(key);
        let like =
            if prefix.is_empty() { self.without_slash(key) } else { self.like(key, |_| true) };
        like.iter().map(|known| known.key).collect()
    }

    fn like(&self, key: &str, accepts: impl Fn(Likeness) -> bool) -> Suggestions<'k> {
        let mut found = Suggestions::new();
        let (prefix, name) = split(key);
        let Some(name) = Folded::of(name).filter(|_| key.len() <= MAX_KEY_BYTES) else {
            return found;
        };
        let mut most = None;
        for it in &self.known {
            let likeness = it.name.as_ref().and_then(|known| known.like(&name));
            let Some(likeness) = likeness.filter(|likeness| accepts(*likeness)) else { continue };
            if most.is_some_and(|(most, _)| most < likeness) {
                continue;
            }
            let rank = (likeness, unlikeness(it.prefix, prefix));
            if most.is_none_or(|most| rank < most) {
                most = Some(rank);
                found.clear();
            }
            if most == Some(rank) && found.len() < MAX_SUGGESTIONS {
                found.push(it.known);
            }
        }
        found
    }

    /// The known keys that a key without a slash may mean: keys without one, or with a mistake at the
    /// slash.
    fn without_slash(&self, key: &str) -> Suggestions<'k> {
        let Some(name) = Folded::of(key) else { return Suggestions::new() };
        let is_like = |it: &&Compared<'k>| {
            let by_name = it.name.as_ref().filter(|_| it.prefix.is_empty());
            by_name.is_some_and(|known| known.like(&name).is_some())
                || mistakes(it.known.key.as_bytes(), key.as_bytes(), 1).is_some()
        };
        self.known.iter().filter(is_like).map(|key| key.known).take(MAX_SUGGESTIONS).collect()
    }

    /// Whether a prefix is one of the mesh's, or a mistyped one.
    fn is_like_own(&self, prefix: &str) -> bool {
        let is_like =
            |own: &&str| mistakes(own.as_bytes(), prefix.as_bytes(), MISTAKES_IN_PREFIX).is_some();
        self.prefixes.iter().any(is_like)
    }

    /// Why a known key has no effect where it is.
    fn misplaced(&self, places: &Places<'_>, at: &At<'_>, known: Known<'_>) -> String {
        if known.places.contains(&at.place.other_map()) {
            return if at.place.is_label() {
                format!("is a label; {} the annotation", self.words.annotations)
            } else {
                format!("is an annotation; {} the label", self.words.labels)
            };
        }
        let Some(right) = known.places.first().copied() else {
            return self.words.unknown.to_owned();
        };
        let shown = places.shown(right);
        match (right.layer(), at.place.layer()) {
            (Layer::Namespace, _) => {
                let what = if right.is_label() { "a label" } else { "an annotation" };
                format!("is {what} of Namespaces; nothing reads it here")
            }
            (_, Layer::Namespace) => {
                format!("is read of pods, not of namespaces; it belongs into {shown}")
            }
            _ => format!("nothing reads it in {}; it belongs into {shown}", at.path),
        }
    }
}

/// Which keys may be meant, and where they belong if not here.
fn suggestion(places: &Places<'_>, at: &At<'_>, like: &[Known<'_>]) -> String {
    let shown = like.iter().map(|known| {
        let right = known.places.first().filter(|_| !known.places.contains(&at.place));
        let right = right.map(|place| format!(" in {}", places.shown(*place)));
        format!("{}{}", known.key, right.unwrap_or_default())
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { String::new() } else { format!("; did you mean {}?", shown.join(" or ")) }
}

/// How unlike two prefixes are: the mistakes, if they are few, then the difference of the lengths.
fn unlikeness(known: &str, other: &str) -> (usize, usize) {
    let found = mistakes(known.as_bytes(), other.as_bytes(), MISTAKES_IN_PREFIX);
    (found.unwrap_or(MISTAKES_IN_PREFIX + 1), known.len().abs_diff(other.len()))
}

/// Prefix and name of a key.
fn split(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}
