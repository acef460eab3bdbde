//! Loops of macros.

use super::{Evaluator, Fault, Res, Slot, Slotted, Val};
use crate::ast::Fold;

/// The values of the variables for a step.
struct Values<'d> {
    first: Res<Val<'d>>,
    second: Option<Res<Val<'d>>>,
}

impl<'d> Evaluator<'d> {
    pub(super) fn fold(&mut self, fold: &'d Fold) -> Res<Val<'d>> {
        let range = self.eval(fold.range)?;
        let outside = self.scope.len();
        let start = Slotted::Lazy { start: fold.start, outside };
        self.scope.push(Slot { name: &fold.accumulator, value: start });
        let looped = self.iterate(fold, &range, outside);
        // The variables of the loop are not there for the result.
        self.scope.truncate(outside + 1);
        let result = looped.and_then(|()| self.eval(fold.result));
        self.scope.truncate(outside);
        result
    }

    fn iterate(&mut self, fold: &'d Fold, range: &Val<'d>, outside: usize) -> Res<()> {
        match (range, &fold.second) {
            (Val::List(list), second) => {
                for (index, item) in list.iter().enumerate() {
                    let index = Val::Int(i64::try_from(index).unwrap_or(i64::MAX));
                    let values = match second {
                        Some(_) => Values { first: Ok(index), second: Some(item) },
                        None => Values { first: item, second: None },
                    };
                    if !self.step(fold, values, outside)? {
                        break;
                    }
                }
            }
            (Val::Map(map), None) => {
                for key in map.keys(&mut self.work)? {
                    let values = Values { first: Ok(key), second: None };
                    if !self.step(fold, values, outside)? {
                        break;
                    }
                }
            }
            (Val::Map(map), Some(_)) => {
                for (key, value) in map.entries(&mut self.work)? {
                    let values = Values { first: Ok(key), second: Some(value) };
                    if !self.step(fold, values, outside)? {
                        break;
                    }
                }
            }
            _ => return Fault::error("expected a list or a map"),
        }
        Ok(())
    }

    /// Does one step; `false` if it is not done, because the loop ends before it.
    fn step(&mut self, fold: &'d Fold, values: Values<'d>, outside: usize) -> Res<bool> {
        let Values { first, second } = values;
        self.scope.truncate(outside + 1);
        self.scope.push(Slot { name: &fold.variable, value: Slotted::Value(first) });
        if let (Some(name), Some(value)) = (&fold.second, second) {
            self.scope.push(Slot { name, value: Slotted::Value(value) });
        }
        match self.eval(fold.condition) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(end) if end.is_end() => return Err(end),
            _ => {}
        }
        let value = self.eval(fold.step);
        if let Err(end) = &value
            && end.is_end()
        {
            return Err(end.clone());
        }
        self.scope[outside].value = Slotted::Value(value);
        Ok(true)
    }
}
