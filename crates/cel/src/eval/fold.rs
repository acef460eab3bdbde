//! Loops of macros.

use super::{Evaluator, Fault, NODE_BYTES, Node, Res, Slot, Slotted, Val};
use crate::ast::Fold;

/// A loop.
#[derive(Clone, Copy)]
struct Loop<'d> {
    fold: &'d Fold,
    /// Of `exists` and `all`, the value that ends it.
    ends_at: Option<bool>,
    /// How many variables there are outside.
    outside: usize,
}

/// The values of the variables for a step.
struct Values<'d> {
    first: Res<Val<'d>>,
    second: Option<Res<Val<'d>>>,
}

impl<'d> Evaluator<'d> {
    /// A loop, and the value that ends it if it is `exists` or `all`.
    pub(super) fn fold(&mut self, fold: &'d Fold, ends_at: Option<bool>) -> Res<Val<'d>> {
        let range = self.eval(fold.range)?;
        let outside = self.scope.len();
        let start = Slotted::Lazy { start: fold.start, outside };
        self.scope.push(Slot { name: &fold.accumulator, value: start });
        let looped = self.iterate(Loop { fold, ends_at, outside }, &range);
        // The variables of the loop are not there for the result.
        self.scope.truncate(outside + 1);
        let result = looped.and_then(|()| self.eval(fold.result));
        self.scope.truncate(outside);
        result
    }

    fn iterate(&mut self, of: Loop<'d>, range: &Val<'d>) -> Res<()> {
        match (range, &of.fold.second) {
            (Val::List(list), second) => {
                for (index, item) in list.iter().enumerate() {
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
        let Loop { fold, ends_at, outside } = of;
        let Values { first, second } = values;
        self.set(outside + 1, &fold.variable, first);
        if let (Some(name), Some(value)) = (&fold.second, second) {
            self.set(outside + 2, name, value);
        }
        if let Some(ends_at) = ends_at
            && let Some(is_done) = self.quantify(of, ends_at)
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
    fn so_far(&mut self, outside: usize, value: Res<Val<'d>>) -> Res<()> {
        if let Err(end) = &value
            && end.is_end()
        {
            return Err(end.clone());
        }
        self.scope[outside].value = Slotted::Value(value);
        Ok(())
    }

    /// A step of `exists` or `all` without its operators, whose costs are counted here; `None` if an earlier
    /// step has failed, or the costs are not left.
    fn quantify(&mut self, of: Loop<'d>, ends_at: bool) -> Option<Res<bool>> {
        let Loop { fold, outside, .. } = of;
        let (so_far, start_nodes) = match self.scope[outside].value {
            Slotted::Lazy { .. } => (!ends_at, 1),
            Slotted::Value(Ok(Val::Bool(so_far))) => (so_far, 0),
            Slotted::Value(_) => return None,
        };
        let Node::Call(step) = self.ast.node(fold.step) else { return None };
        let [_, element] = *step.arguments else { return None };
        // `@not_strictly_false(!@result)`, where `all` has no `!`, and the variable counts twice.
        let (condition_nodes, condition_units) = if ends_at { (4, 3) } else { (3, 2) };
        // `@result || …`.
        let (step_nodes, step_units) = if so_far == ends_at { (0, 0) } else { (3, 1) };
        let nodes = start_nodes + condition_nodes + step_nodes;
        if !self.work.pay(condition_units + step_units, nodes * NODE_BYTES) {
            return None;
        }
        if so_far == ends_at {
            return Some(Ok(false));
        }
        let value = match self.eval(element) {
            Ok(Val::Bool(value)) => Ok(Val::Bool(value)),
            Ok(_) => Fault::overload(),
            Err(fault) => Err(fault),
        };
        Some(self.so_far(outside, value).map(|()| true))
    }
}
