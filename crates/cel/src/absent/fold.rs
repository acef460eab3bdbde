//! Loops of macros: over the elements of a list that is written, or over one element or none.

use super::{
    Lack, Step,
    eval::Walk,
    facts::Atom,
    operators::place_of,
    path::join,
    value::{Abs, Res, Stop, hash, made},
};
use crate::ast::{Fold, Id};

/// The values of the variables of a step.
type Values = (Abs, Option<Abs>);

impl<'w> Walk<'w> {
    pub(super) fn fold(&mut self, id: Id, fold: &'w Fold) -> Res {
        let range = self.eval(fold.range)?;
        let steps = self.steps(id, fold, &range)?;
        let start = self.kept(fold.start)?;
        let outside = self.scope.len();
        self.scope.push((&fold.accumulator, start));
        let looped = self.iterate(fold, steps, outside);
        self.scope.truncate(outside + 1);
        let result = looped.and_then(|()| self.eval(fold.result));
        self.scope.truncate(outside);
        let from = match range {
            Abs::List(list) => list.from.clone(),
            Abs::Map(_) => Vec::new(),
            Abs::Place(path) => vec![path],
            other => vec![place_of(hash(&other))],
        };
        match result {
            Ok(Abs::List(list)) if !from.is_empty() => Ok(Abs::list(list.items.clone(), &from)),
            result => result,
        }
    }

    /// A value that fails only where it is used.
    fn kept(&mut self, id: Id) -> Result<Res, Stop> {
        match self.eval(id) {
            Ok(value) => Ok(Ok(value)),
            Err(stop @ Stop::Fails(..)) => Ok(Err(stop)),
            Err(stop) => Err(stop),
        }
    }

    fn steps(&mut self, id: Id, fold: &Fold, range: &Abs) -> Result<Vec<Values>, Stop> {
        let has_second = fold.second.is_some();
        match range {
            Abs::List(list) => {
                self.spend(list.items.len())?;
                let values = list.items.iter().cloned().enumerate().map(|(at, item)| {
                    if has_second { (Abs::int(at), Some(item)) } else { (item, None) }
                });
                Ok(values.collect())
            }
            Abs::Map(map) => {
                self.spend(map.entries.len())?;
                let entries = map.entries.iter().cloned();
                Ok(entries.map(|(key, value)| (key, has_second.then_some(value))).collect())
            }
            Abs::Null(path) => Err(Stop::Fails(Lack::Null(path.clone()), id)),
            Abs::Place(path) => {
                let element = join(path, Step::Element);
                let second = has_second.then(|| Abs::Place(element.clone()));
                let is_there = self.is_there(&element)?;
                Ok(is_there.then(|| (Abs::Each(path.clone()), second)).into_iter().collect())
            }
            other => {
                let of = hash(other);
                let second = has_second.then(|| Abs::Other(made((of, "second"))));
                let is_there = self.decide(Atom::True(made((of, "has elements"))))?;
                let first = Abs::Other(made((of, "element")));
                Ok(is_there.then_some((first, second)).into_iter().collect())
            }
        }
    }

    fn iterate(&mut self, fold: &'w Fold, steps: Vec<Values>, outside: usize) -> Result<(), Stop> {
        for (first, second) in steps {
            self.scope.truncate(outside + 1);
            self.scope.push((&fold.variable, Ok(first)));
            if let (Some(name), Some(value)) = (&fold.second, second) {
                self.scope.push((name, Ok(value)));
            }
            let condition = self.kept(fold.condition)?;
            if let Ok(condition) = condition
                && !self.truth(&condition)?
            {
                break;
            }
            let value = self.kept(fold.step)?;
            self.scope[outside].1 = value;
        }
        Ok(())
    }
}
