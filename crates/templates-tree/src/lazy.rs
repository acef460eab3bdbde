//! Variables of a template: each is evaluated when it is first read.

use std::sync::OnceLock;

use injectd_cel::{Datum, Fields, TypeDef, Typed};
use injectd_templates::Variable;

use crate::{fill, scope::Scope};

/// A variable's value; `None` if it is a structure that is absent.
type Found = Result<Option<Typed>, String>;

/// Variables of a template, or of an item of `forEach`: each is evaluated when it is first read.
#[derive(Debug)]
pub(crate) struct Lazy<'s> {
    variables: &'s [Variable],
    cells: Vec<OnceLock<Found>>,
    /// What they see, with the variables around them.
    scope: Scope<'s>,
}

impl<'s> Lazy<'s> {
    pub(crate) fn new(variables: &'s [Variable], scope: Scope<'s>) -> Self {
        let cells = variables.iter().map(|_| OnceLock::new()).collect();
        Self { variables, cells, scope }
    }

    fn found(&self, at: usize) -> &Found {
        let evaluated = || {
            let variable = &self.variables[at];
            let scope = Scope { variables: Some(self), ..self.scope.clone() };
            let of = variable.value.type_of();
            match fill::structure(&variable.value, &scope) {
                Ok(None) if !matches!(of, TypeDef::Optional(_)) => Ok(None),
                Ok(value) => Ok(Some(Typed::of(&of, value.as_ref()))),
                Err(failure) => Err(format!("{}: {}", failure.field, failure.text)),
            }
        };
        self.cells[at].get_or_init(evaluated)
    }
}

impl Fields for Lazy<'_> {
    fn count(&self) -> usize {
        self.variables.len() + self.scope.variables.map_or(0, Fields::count)
    }

    fn get(&self, name: &str) -> Option<Datum<'_>> {
        let Some(at) = self.variables.iter().position(|variable| variable.name == name) else {
            return self.scope.variables.and_then(|around| around.get(name));
        };
        match self.found(at) {
            Ok(value) => value.as_ref().map(Typed::datum),
            Err(text) => Some(Datum::Failed(text)),
        }
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Datum<'_>)> + '_> {
        let around = self.scope.variables.into_iter().flat_map(Fields::entries);
        let own = self.variables.iter();
        let own = own.filter_map(|one| Some((one.name.as_str(), self.get(&one.name)?)));
        Box::new(around.chain(own))
    }
}
