//! What expressions may name: variables with their types, and functions.

use std::sync::LazyLock;

use injectd_merge::schema::{NEWEST_RELEASE, RELEASE};

use super::{
    Type,
    definition::TypeDef,
    functions::{self, Overload},
};

/// The variables of expressions, with their types, and the functions that they may call.
#[derive(Debug, Clone)]
pub struct Environment {
    variables: Vec<(Box<str>, Type)>,
    /// Whether the functions of sidecar templates are there.
    is_of_templates: bool,
    /// The minor version of Kubernetes whose Pods are typed.
    release: u32,
}

static CONDITIONS: LazyLock<Environment> = LazyLock::new(|| Environment::of_objects(Type::Dyn));

/// Variables of every expression of a template, with their types.
const OF_TEMPLATES: [(&str, &str); 6] = [
    ("object", "Pod"),
    ("namespaceObject", "NamespaceObject"),
    ("serviceAccount", "optional<ServiceAccount>"),
    ("controller", "optional<OwnerReference>"),
    ("owner", "Owner"),
    ("owners", "list<Owner>"),
];

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

    /// The functions of sidecar templates, and the variables that all of their expressions have:
    /// `object`, `namespaceObject`, `serviceAccount`, `controller`, `owner` and `owners`.
    ///
    /// [`Environment::with`] adds the others: `params`, `variables`, `container`, `item`.
    ///
    /// ```
    /// use injectd_cel::{Datum, Environment, FieldDef, Program, TypeDef, Typed, Variables};
    /// use serde_json::json;
    ///
    /// let params = TypeDef::object(
    ///     "params",
    ///     vec![
    ///         FieldDef::required("cpu", TypeDef::Quantity),
    ///         FieldDef::optional("role", TypeDef::String),
    ///     ],
    /// );
    /// let environment = Environment::templates().with("params", params.clone());
    /// let program = Program::compile_in(&environment, "scale(params.cpu, 2)").expect("it compiles");
    /// assert_eq!(program.type_of(), TypeDef::Quantity);
    ///
    /// struct Values(Typed);
    /// impl Variables for Values {
    ///     fn get(&self, name: &str) -> Option<Datum<'_>> {
    ///         (name == "params").then(|| self.0.datum())
    ///     }
    /// }
    /// let values = Values(Typed::of(&params, Some(&json!({"cpu": "0.25"}))));
    /// assert_eq!(program.value(&values).value, Ok(Some(json!("500m"))));
    /// ```
    #[must_use]
    pub fn templates() -> Self {
        let variables = OF_TEMPLATES.map(|(name, of)| (name.into(), Type::read(of)));
        Self { variables: variables.into(), is_of_templates: true, release: NEWEST_RELEASE }
    }

    fn of_objects(object: Type) -> Self {
        let variables = [
            ("object", object.clone()),
            ("oldObject", object),
            ("request", Type::named("AdmissionRequest")),
            ("namespaceObject", Type::named("Namespace")),
            ("authorizer", Type::named("authorizer")),
        ];
        let variables = variables.map(|(name, of)| (name.into(), of)).into();
        Self { variables, is_of_templates: false, release: RELEASE }
    }

    /// Adds a variable, in the place of one with its name. A type may be written as
    /// `map<string,list<int>>`.
    #[must_use]
    pub fn with(mut self, name: &str, of: impl Into<TypeDef>) -> Self {
        self.variables.retain(|(known, _)| **known != *name);
        self.variables.push((name.into(), (&of.into()).into()));
        self
    }

    /// The same, for typed Pods of a minor version of Kubernetes, such as 37. Versions before 1.36 have
    /// the fields of 1.36. Templates have the newest version otherwise, match conditions 1.36.
    #[must_use]
    pub fn for_release(mut self, minor: u32) -> Self {
        self.release = minor.max(RELEASE);
        self
    }

    pub(crate) fn release(&self) -> u32 {
        self.release
    }

    /// The variables, with their types.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, TypeDef)> {
        self.variables.iter().map(|(name, of)| (&**name, of.into()))
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.iter().find(|(known, _)| **known == *name).map(|(_, of)| of)
    }

    pub(crate) fn is_of_templates(&self) -> bool {
        self.is_of_templates
    }

    /// The overloads of a function; `None` if it is not declared.
    pub(super) fn overloads(&self, name: &str) -> Option<&'static [Overload]> {
        let of_templates = || functions::overloads_of_templates(name);
        functions::overloads(name)
            .or_else(|| if self.is_of_templates { of_templates() } else { None })
    }
}
