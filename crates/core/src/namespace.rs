//! What injection reads of namespaces: caches keep this, and drop everything else.

use std::{borrow::Cow, collections::BTreeSet};

/// What a configuration reads of namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceReads {
    /// What follows if the namespace of an object does not exist.
    pub missing: MissingNamespace,
    /// The annotations that are read.
    pub annotations: KeySet,
}

/// What follows if the namespace of an object does not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingNamespace {
    /// It has no annotations.
    #[default]
    Empty,
    /// The object is denied, as by the API server.
    Denied,
}

/// A set of keys of annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySet(BTreeSet<KeyPattern>);

/// One key, or many.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPattern {
    /// This key.
    Key(Cow<'static, str>),
    /// The keys of a domain: all whose part before the slash ends with this text.
    Domain(Cow<'static, str>),
}

impl NamespaceReads {
    /// Whether nothing is read, not even whether a namespace exists.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.missing == MissingNamespace::Empty && self.annotations.0.is_empty()
    }
}

impl KeySet {
    /// Whether the set has a key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(key))
    }

    /// Whether the set has each pattern of another one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.0.is_subset(&self.0)
    }

    /// The keys of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }
}

impl KeyPattern {
    fn matches(&self, key: &str) -> bool {
        match self {
            Self::Key(wanted) => wanted == key,
            Self::Domain(end) => {
                key.split_once('/').is_some_and(|(domain, _)| domain.ends_with(&**end))
            }
        }
    }
}

impl FromIterator<KeyPattern> for KeySet {
    fn from_iter<I: IntoIterator<Item = KeyPattern>>(patterns: I) -> Self {
        Self(patterns.into_iter().collect())
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
}
