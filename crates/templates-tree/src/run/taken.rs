//! Steps that are taken: once for each item of `forEach`, if `when` holds.

use injectd_cel::{TypeDef, Typed};
use injectd_templates::{
    ForEach, Step, Template, limits::MAX_ITEMS, object::Existing, structure::Structure,
};
use serde_json::Value;

use super::Stop;
use crate::{
    lazy::Lazy,
    scope::{Failure, Scope},
    trace::Overlay,
};

/// A step that is taken, with what its expressions see.
#[derive(Debug)]
pub(crate) struct Taken<'s> {
    pub(crate) template: &'s Template,
    pub(crate) step: &'s Step,
    pub(crate) scope: Scope<'s>,
}

impl Taken<'_> {
    /// What the rule with an overlay does with what it meets.
    fn existing_of_rule(&self, overlay: &Structure) -> Option<Existing> {
        let mut rules = self.step.rules.iter();
        rules.find(|rule| std::ptr::eq(&raw const rule.overlay, overlay))?.existing
    }

    /// Records a finished overlay: of the step, or of a rule for a container in a list of the pod.
    pub(super) fn trace(
        &self,
        structure: &Structure,
        filled: &Value,
        container: Option<[&str; 2]>,
    ) {
        let Some(trace) = self.scope.base.trace else { return };
        let existing = match container {
            None => self.step.existing,
            Some(_) => self.existing_of_rule(structure),
        };
        let overlay = Overlay { step: self.step, structure, filled, existing };
        match container {
            None => trace.overlay(self.template, &overlay),
            Some(container) => trace.rule(self.template, &overlay, container),
        }
    }
}

/// An item of `forEach`, with its key and index.
struct Item<'s> {
    step: &'s Step,
    bound: Option<[Typed; 3]>,
}

/// What is done with the steps that are taken.
pub(super) fn with<R>(
    template: &Template,
    scope: &Scope<'_>,
    then: impl FnOnce(&[Taken<'_>]) -> Result<R, Stop>,
) -> Result<R, Stop> {
    let mut items = Vec::new();
    for step in &template.steps {
        match &step.for_each {
            None => items.push(Item { step, bound: None }),
            Some(each) => {
                let bound = self::items(each, scope)?.into_iter();
                items.extend(bound.map(|bound| Item { step, bound: Some(bound) }));
            }
        }
    }
    let scopes: Vec<_> = items.iter().map(|item| item.scope(scope)).collect();
    let lazies: Vec<_> = items.iter().zip(&scopes).map(|(item, scope)| item.lazy(scope)).collect();
    let mut taken = Vec::new();
    for ((item, scope), lazy) in items.iter().zip(&scopes).zip(&lazies) {
        let mut scope = scope.clone();
        if let Some(lazy) = lazy {
            scope.variables = Some(lazy);
        }
        let holds = item.step.when.as_ref().map(|when| scope.holds(when)).transpose()?;
        if holds != Some(false) {
            taken.push(Taken { template, step: item.step, scope });
        }
    }
    then(&taken)
}

impl<'s> Item<'s> {
    fn scope(&'s self, around: &Scope<'s>) -> Scope<'s> {
        match &self.bound {
            None => around.clone(),
            Some([item, key, index]) => {
                let scope = around.with("item", item.datum()).with("key", key.datum());
                scope.with("index", index.datum())
            }
        }
    }

    fn lazy(&'s self, scope: &Scope<'s>) -> Option<Lazy<'s>> {
        let each = self.step.for_each.as_ref()?;
        (!each.variables.is_empty()).then(|| Lazy::new(&each.variables, scope.clone()))
    }
}

/// The items of a `forEach`: of a list in its order, of a map by key.
fn items(each: &ForEach, scope: &Scope<'_>) -> Result<Vec<[Typed; 3]>, Failure> {
    let of = match &each.items.of {
        TypeDef::List(of) | TypeDef::Map(of) => &**of,
        _ => &TypeDef::Dyn,
    };
    let entries: Vec<(Value, Value)> = match scope.value(&each.items)? {
        Some(Value::Array(items)) => {
            items.into_iter().enumerate().map(|(at, item)| (Value::from(at), item)).collect()
        }
        Some(Value::Object(fields)) => {
            let mut fields: Vec<_> = fields.into_iter().collect();
            // Items decide the order of containers, and maps have no order of their own.
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            fields.into_iter().map(|(key, value)| (Value::from(key), value)).collect()
        }
        _ => return Err(Failure::of(&each.items, "expected a list or a map, found another value")),
    };
    if entries.len() > MAX_ITEMS {
        let text = format!(
            "found {} items, expected at most {MAX_ITEMS}: give the pod fewer, or divide them among steps",
            entries.len()
        );
        return Err(Failure::of(&each.items, text));
    }
    let bound = entries.iter().enumerate().map(|(at, (key, value))| {
        let plain = |value| Typed::of(&TypeDef::Dyn, Some(value));
        [Typed::of(of, Some(value)), plain(key), plain(&Value::from(at))]
    });
    Ok(bound.collect())
}
