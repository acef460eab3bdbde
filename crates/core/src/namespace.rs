//! What injection reads of namespaces: caches keep this, and drop everything else.

use std::{borrow::Cow, collections::BTreeSet};

/// Maximum number of patterns in a union: far more than all templates of a cluster have. Above it, every key is
/// kept.
const MAX_PATTERNS: usize = 65_536;

/// What a configuration reads of namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceReads {
    /// What follows if the namespace of an object does not exist.
    pub missing: MissingNamespace,
    /// The annotations that are read.
    pub annotations: KeySet,
    /// The labels that are read.
    pub labels: KeySet,
}

/// What follows if the namespace of an object does not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingNamespace {
    /// It has neither labels nor annotations.
    #[default]
    Empty,
    /// The object is denied, as by the API server.
    Denied,
}

/// A set of keys of labels or annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: BTreeSet<Cow<'static, str>>,
    domains: BTreeSet<Cow<'static, str>>,
    prefixes: BTreeSet<Cow<'static, str>>,
}

/// One key, or many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPattern {
    /// This key.
    Key(Cow<'static, str>),
    /// The keys of a domain: all whose part before the slash ends with this text.
    Domain(Cow<'static, str>),
    /// The keys that begin with this text. All keys begin with the empty text.
    Prefix(Cow<'static, str>),
}

impl NamespaceReads {
    /// Whether nothing is read, not even whether a namespace exists.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.missing == MissingNamespace::Empty
            && self.annotations.is_empty()
            && self.labels.is_empty()
    }

    /// Whether each key that another configuration reads is read.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.annotations.covers(&other.annotations) && self.labels.covers(&other.labels)
    }

    /// The keys that two configurations read.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            // Caches ask for keys only. What follows from a missing namespace, a review asks its
            // own configuration.
            missing: self.missing,
            annotations: self.annotations.union(&other.annotations),
            labels: self.labels.union(&other.labels),
        }
    }
}

impl KeySet {
    /// Whether the set has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the set has a key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
            || key.split_once('/').is_some_and(|(domain, _)| self.has_domain(domain))
            || self.has_prefix(key)
    }

    /// Whether the set has each key of another one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let is_all = self.has_prefix("");
        is_all
            || other.keys.iter().all(|key| self.has(key))
                && other.domains.iter().all(|domain| self.has_domain(domain))
                && other.prefixes.iter().all(|prefix| self.has_prefix(prefix))
    }

    /// The keys of both sets, or every key if these are too many.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let both = Self {
            keys: &self.keys | &other.keys,
            domains: &self.domains | &other.domains,
            prefixes: &self.prefixes | &other.prefixes,
        };
        if both.len() > MAX_PATTERNS { Self::from_iter([KeyPattern::EVERY]) } else { both }
    }

    fn len(&self) -> usize {
        self.keys.len() + self.domains.len() + self.prefixes.len()
    }

    fn has_domain(&self, domain: &str) -> bool {
        self.domains.iter().any(|end| domain.ends_with(&**end))
    }

    /// Whether the set has each key that begins with a text.
    fn has_prefix(&self, text: &str) -> bool {
        let begins = |prefix: &Cow<'_, str>| text.starts_with(&**prefix);
        // A prefix of the text is not greater than the text.
        self.prefixes.iter().take_while(|prefix| ***prefix <= *text).any(begins)
    }
}

impl KeyPattern {
    /// Every key.
    pub const EVERY: Self = Self::Prefix(Cow::Borrowed(""));
}

impl FromIterator<KeyPattern> for KeySet {
    fn from_iter<I: IntoIterator<Item = KeyPattern>>(patterns: I) -> Self {
        let mut set = Self::default();
        for pattern in patterns {
            match pattern {
                KeyPattern::Key(key) => set.keys.insert(key),
                KeyPattern::Domain(end) => set.domains.insert(end),
                KeyPattern::Prefix(prefix) => set.prefixes.insert(prefix),
            };
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_keys_and_those_of_its_domains() {
        let set: KeySet = [
            KeyPattern::Key("openshift.io/sa.scc.uid-range".into()),
            KeyPattern::Domain("linkerd.io".into()),
        ]
        .into_iter()
        .collect();
        for key in ["openshift.io/sa.scc.uid-range", "linkerd.io/inject", "config.linkerd.io/x"] {
            assert!(set.has(key), "{key}");
        }
        for key in ["openshift.io/x", "linkerd.io", "linkerd.io.example/inject", ""] {
            assert!(!set.has(key), "{key}");
        }
    }

    #[test]
    fn a_set_covers_what_was_added_to_it() {
        let one = KeySet::from_iter([KeyPattern::Key("a".into())]);
        let other = KeySet::from_iter([KeyPattern::Domain("b".into())]);
        let both = one.union(&other);
        assert!(both.covers(&one) && both.covers(&other) && both.covers(&both));
        assert!(!one.covers(&other) && one.covers(&KeySet::default()));
    }

    #[test]
    fn a_prefix_has_each_key_that_begins_with_it() {
        let prefix = |text: &'static str| KeyPattern::Prefix(text.into());
        let set = KeySet::from_iter([prefix("a.example/x-"), prefix("b")]);
        for key in ["a.example/x-", "a.example/x-1", "b", "b.example/a"] {
            assert!(set.has(key), "{key}");
        }
        for key in ["a.example/x", "a", "c", ""] {
            assert!(!set.has(key), "{key}");
        }
        assert!(set.covers(&KeySet::from_iter([prefix("b.example/")])));
        assert!(set.covers(&KeySet::from_iter([KeyPattern::Key("bc".into())])));
        assert!(!set.covers(&KeySet::from_iter([prefix("")])));
        let every = KeySet::from_iter([KeyPattern::EVERY]);
        assert!(every.covers(&set) && every.has("") && every.has("x"));
        assert!(every.covers(&KeySet::from_iter([KeyPattern::Domain("linkerd.io".into())])));
    }

    #[test]
    fn a_union_of_too_many_keys_is_every_key() {
        let keys = |from: usize| {
            let numbers = from..from + MAX_PATTERNS;
            numbers.map(|number| KeyPattern::Key(number.to_string().into())).collect::<KeySet>()
        };
        let half = keys(0);
        assert_eq!(half.union(&half), half);
        assert!(half.union(&keys(MAX_PATTERNS)).has("any"));
    }
}
