//! Loops of macros.

use super::{Evaluator, Fault, Id, Res, Slot, Slotted, Val};
use crate::{
    ast::Fold,
    plan::{Plan, Quantifier},
};

/// A loop.
#[derive(Clone, Copy)]
struct Loop<'d> {
    fold: &'d Fold,
    quantifier: Option<Quantifier>,
    /// How many variables there are outside.
    outside: usize,
}

/// The values of the variables for a step.
struct Values<'d> {
    first: Res<Val<'d>>,
    second: Option<Res<Val<'d>>>,
}

impl<'d> Evaluator<'d> {
    pub(super) fn fold(&mut self, id: Id, fold: &'d Fold) -> Res<Val<'d>> {
        let quantifier = match self.plans[id.index()] {
            Plan::Quantifier(quantifier) => Some(quantifier),
            _ => None,
        };
        let range = self.eval(fold.range)?;
        let outside = self.scope.len();
        let start = Slotted::Lazy { start: fold.start, outside };
        self.scope.push(Slot { name: &fold.accumulator, value: start });
        let looped = self.iterate(Loop { fold, quantifier, outside }, &range);
        // The variables of the loop are not there for the result.
        self.scope.truncate(outside + 1);
        let result = looped.and_then(|()| self.eval(fold.result));
        self.scope.truncate(outside);
        result
    }

    fn iterate(&mut self, of: Loop<'d>, range: &Val<'d>) -> Res<()> {
        match (range, &of.fold.second) {
            (Val::List(list), second) => {
                let taken = match of.quantifier {
                    Some(quantifier) => self.compare_each(quantifier, of.outside, list),
                    None => Some(0),
                };
                let Some(taken) = taken else { return Ok(()) };
                for (index, item) in list.iter().enumerate().skip(taken) {
                    let index = Val::Int(i64::try_from(index).unwrap_or(i64::MAX));
                    let values = match second {
                        Some(_) => Values { first: Ok(index), second: Some(item) },
                        None => Values { first: item, second: None },
                    };
                    if !self.step(of, values)? {
                        break;
                    }
                }
            }
            (Val::Map(map), None) => {
                for key in map.keys(&mut self.work)? {
                    let values = Values { first: Ok(key), second: None };
                    if !self.step(of, values)? {
                        break;
                    }
                }
            }
            (Val::Map(map), Some(_)) => {
                for (key, value) in map.entries(&mut self.work)? {
                    let values = Values { first: Ok(key), second: Some(value) };
                    if !self.step(of, values)? {
                        break;
                    }
                }
            }
            _ => return Fault::error("expected a list or a map"),
        }
        Ok(())
    }

    /// Does one step; `false` if it is not done, because the loop ends before it.
    fn step(&mut self, of: Loop<'d>, values: Values<'d>) -> Res<bool> {
        let Loop { fold, quantifier, outside } = of;
        let Values { first, second } = values;
        self.set(outside + 1, &fold.variable, first);
        if let (Some(name), Some(value)) = (&fold.second, second) {
            self.set(outside + 2, name, value);
        }
        if let Some(quantifier) = quantifier
            && let Some(is_done) = self.quantify(quantifier, outside)
        {
            return is_done;
        }
        match self.eval(fold.condition) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(end) if end.is_end() => return Err(end),
            _ => {}
        }
        let value = self.eval(fold.step);
        self.so_far(outside, value).map(|()| true)
    }

    /// Sets a variable of a loop, which is the next one in the first step.
    fn set(&mut self, place: usize, name: &'d str, value: Res<Val<'d>>) {
        let value = Slotted::Value(value);
        match self.scope.get_mut(place) {
            Some(slot) => slot.value = value,
            None => self.scope.push(Slot { name, value }),
        }
    }

    /// Sets the accumulator.
    pub(super) fn so_far(&mut self, outside: usize, value: Res<Val<'d>>) -> Res<()> {
        if let Err(end) = &value
            && end.is_end()
        {
            return Err(end.clone());
        }
        self.scope[outside].value = Slotted::Value(value);
        Ok(())
    }
}
