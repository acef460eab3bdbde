//! What expressions may name: variables with their types.

use std::sync::LazyLock;

use super::Type;

/// The variables of expressions, with their types.
#[derive(Debug, Clone)]
pub struct Environment {
    variables: Vec<(Box<str>, Type)>,
}

static CONDITIONS: LazyLock<Environment> = LazyLock::new(|| Environment::of_objects(Type::Dyn));

impl Environment {
    /// The variables of match conditions, for objects of any type.
    #[must_use]
    pub fn conditions() -> &'static Self {
        &CONDITIONS
    }

    /// The variables of match conditions, for Pods of Kubernetes 1.36.
    #[must_use]
    pub fn pods() -> Self {
        Self::of_objects(Type::pod())
    }

    fn of_objects(object: Type) -> Self {
        let variables = [
            ("object", object.clone()),
            ("oldObject", object),
            ("request", Type::named("AdmissionRequest")),
            ("namespaceObject", Type::named("Namespace")),
            ("authorizer", Type::named("authorizer")),
        ];
        Self { variables: variables.map(|(name, of)| (name.into(), of)).into() }
    }

    /// Adds a variable, whose type is written as `map<string,list<int>>`; `Pod` is the type of Pods.
    #[must_use]
    pub fn with(mut self, name: &str, of: &str) -> Self {
        let of = if of == "Pod" { Type::pod() } else { Type::read(of) };
        self.variables.push((name.into(), of));
        self
    }

    pub(super) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.iter().find(|(known, _)| **known == *name).map(|(_, of)| of)
    }
}
