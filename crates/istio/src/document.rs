//! The documents of a configuration, which are easily taken for one another: each is the text of a
//! key of a `ConfigMap`.

use std::fmt;

use serde_json::Value;

/// A document of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// `config` of `istio-sidecar-injector`.
    Config,
    /// `values` of `istio-sidecar-injector`.
    Values,
    /// `mesh` of `istio`.
    Mesh,
}

/// A document is another one than expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistaken {
    /// It is another key.
    #[error("expected {expected}, found {found}")]
    Key {
        /// What was expected.
        expected: Document,
        /// What the document looks like.
        found: Document,
    },
    /// It is the whole `ConfigMap`, with the key in it.
    #[error("expected {0}, found a whole ConfigMap; write only the text of the key into the file")]
    ConfigMap(Document),
}

impl Document {
    const ALL: [Self; 3] = [Self::Config, Self::Values, Self::Mesh];

    /// The key of the `ConfigMap`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Values => "values",
            Self::Mesh => "mesh",
        }
    }

    fn config_map(self) -> &'static str {
        match self {
            Self::Config | Self::Values => "istio-sidecar-injector",
            Self::Mesh => "istio",
        }
    }

    /// Keys that documents of this kind have, and others do not.
    fn own(self) -> &'static [&'static str] {
        match self {
            Self::Config => &[
                "policy",
                "templates",
                "defaultTemplates",
                "aliases",
                "neverInjectSelector",
                "alwaysInjectSelector",
                "injectedAnnotations",
            ],
            Self::Values => &["global"],
            Self::Mesh => &["defaultConfig", "trustDomain", "rootNamespace", "meshMTLS"],
        }
    }

    fn is(self, tree: &Value) -> bool {
        let keys = tree.as_object().into_iter().flat_map(serde_json::Map::keys);
        keys.into_iter().any(|key| self.own().iter().any(|own| own.eq_ignore_ascii_case(key)))
    }

    /// Checks that a document is not another one.
    ///
    /// # Errors
    /// It has keys of another document, and no key of its own.
    pub(crate) fn check(self, tree: &Value) -> Result<(), Mistaken> {
        if self.is(tree) {
            return Ok(());
        }
        if tree["kind"] == "ConfigMap" {
            return Err(Mistaken::ConfigMap(self));
        }
        match Self::ALL.into_iter().find(|other| other.is(tree)) {
            Some(found) => Err(Mistaken::Key { expected: self, found }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key {} of the ConfigMap {}", self.key(), self.config_map())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_known_by_its_keys() {
        let documents = [
            (Document::Config, json!({"policy": "enabled", "templates": {}})),
            (Document::Values, json!({"global": {}, "pilot": {}})),
            (Document::Mesh, json!({"trustDomain": "cluster.local"})),
        ];
        for (found, tree) in &documents {
            for (expected, _) in &documents {
                let mistaken = Mistaken::Key { expected: *expected, found: *found };
                let result = if expected == found { Ok(()) } else { Err(mistaken) };
                assert_eq!(expected.check(tree), result);
            }
        }
        let whole = json!({"kind": "ConfigMap", "data": {"mesh": ""}});
        assert_eq!(Document::Mesh.check(&whole), Err(Mistaken::ConfigMap(Document::Mesh)));
        for unknown in [json!({}), json!(null), json!({"policies": 1}), json!([])] {
            assert_eq!(Document::Config.check(&unknown), Ok(()));
        }
        let both = json!({"Templates": {}, "global": {}});
        assert_eq!(Document::Config.check(&both), Ok(()));
    }
}
