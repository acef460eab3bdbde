//! What expressions may name: variables with their types, and functions.

use std::{
    collections::HashSet,
    iter,
    sync::{Arc, LazyLock},
};

use injectd_merge::schema::{NEWEST_RELEASE, RELEASE};

use super::{
    Type,
    definition::TypeDef,
    functions::{self, Overload},
};

/// The variables of expressions, with their types, and the functions that they may call. A copy shares the
/// variables.
#[derive(Debug, Clone)]
pub struct Environment {
    variables: Option<Arc<Declared>>,
    /// Whether the functions of sidecar templates are there.
    is_of_templates: bool,
    /// The minor version of Kubernetes whose Pods are typed.
    release: u32,
}

/// A variable, and those that were declared before it. The last one of a name counts.
#[derive(Debug)]
struct Declared {
    name: Box<str>,
    of: Type,
    before: Option<Arc<Self>>,
}

static TEMPLATES: LazyLock<Environment> = LazyLock::new(|| {
    let none = Environment { variables: None, is_of_templates: true, release: NEWEST_RELEASE };
    let declared = |environment: Environment, variable: (&str, &str)| {
        environment.declare(variable.0, Type::read(variable.1))
    };
    OF_TEMPLATES.into_iter().fold(none, declared)
});
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
        TEMPLATES.clone()
    }

    fn of_objects(object: Type) -> Self {
        let variables = [
            ("object", object.clone()),
            ("oldObject", object),
            ("request", Type::named("AdmissionRequest")),
            ("namespaceObject", Type::named("Namespace")),
            ("authorizer", Type::named("authorizer")),
        ];
        let none = Self { variables: None, is_of_templates: false, release: RELEASE };
        variables.into_iter().fold(none, |environment, (name, of)| environment.declare(name, of))
    }

    /// Adds a variable, in the place of one with its name. A type may be written as
    /// `map<string,list<int>>`.
    #[must_use]
    pub fn with(self, name: &str, of: impl Into<TypeDef>) -> Self {
        self.declare(name, (&of.into()).into())
    }

    /// Adds a field to the object that a variable is. Environments with more and more fields share them.
    #[must_use]
    pub fn with_field(self, variable: &str, field: &str, of: &TypeDef) -> Self {
        let Some(Type::Record(record)) = self.variable(variable) else { return self };
        let record = record.with(field, of.into());
        self.declare(variable, Type::Record(Arc::new(record)))
    }

    fn declare(mut self, name: &str, of: Type) -> Self {
        let before = self.variables.take();
        self.variables = Some(Arc::new(Declared { name: name.into(), of, before }));
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

    /// The variables, with their types, in no order.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, TypeDef)> {
        let mut known = HashSet::new();
        let last = self.declared().filter(move |declared| known.insert(&declared.name));
        last.map(|declared| (&*declared.name, (&declared.of).into()))
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.declared().find(|declared| *declared.name == *name).map(|declared| &declared.of)
    }

    /// All that were declared, the last one first.
    fn declared(&self) -> impl Iterator<Item = &Declared> {
        iter::successors(self.variables.as_deref(), |declared| declared.before.as_deref())
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
