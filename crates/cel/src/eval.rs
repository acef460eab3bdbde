//! Evaluates expressions, as cel-go 0.26 does with the options of Kubernetes, and counts what it costs.
//!
//! The depth of the recursion is that of the expression. Every node that is evaluated counts as work,
//! so that an evaluation ends also where it costs nothing.

use std::slice;

use smallvec::SmallVec;

use super::{
    ast::{ACCUMULATOR, Ast, Call as CallNode, Entry, Id, Item, Node, OWN_CONTAINERS, TAKEN_PORTS},
    check::{TYPE_NAMES, Type},
    cost,
    data::Variables,
    functions::{Call, map_insert, math_add},
    plan::{Facts, Link, Op, Plan, Planned},
    value::{Fault, Made, Map, Res, Val},
    work::Work,
};

mod attribute;
mod chain;
mod fold;
mod logic;
mod quantifier;

/// Units for making a list or a map (`ListCreateBaseCost`, `MapCreateBaseCost`).
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
/// Bytes that the evaluation of a node counts as, so that four million of them are allowed. Expressions
/// within the limit of costs have fewer.
const NODE_BYTES: usize = 32;
/// Variables of macros, and arguments of calls, that need no allocation.
// A macro has an accumulator and a variable, and most stand in no other one.
const USUAL_SLOTS: usize = 2;
const USUAL_ARGUMENTS: usize = 4;

/// An evaluation.
pub(super) struct Evaluator<'d> {
    pub(super) ast: &'d Ast,
    pub(super) plans: &'d [Plan],
    pub(super) facts: &'d [Facts],
    pub(super) data: &'d dyn Variables,
    /// Variables of macros, the innermost last.
    pub(super) scope: SmallVec<[Slot<'d>; USUAL_SLOTS]>,
    /// Arguments of the calls that are being made, those of the innermost last.
    pub(super) arguments: SmallVec<[Val<'d>; USUAL_ARGUMENTS]>,
    pub(super) work: Work,
}

/// A variable of a macro.
pub(super) struct Slot<'d> {
    name: &'d str,
    value: Slotted<'d>,
}

enum Slotted<'d> {
    Value(Res<Val<'d>>),
    /// It gets its value when it is read for the first time: that of a node in the scope outside.
    Lazy {
        start: Id,
        outside: usize,
    },
}

impl<'d> Evaluator<'d> {
    /// Evaluates a node.
    ///
    /// # Errors
    /// It has no value.
    pub(super) fn eval(&mut self, id: Id) -> Res<Val<'d>> {
        self.work.spend(NODE_BYTES)?;
        match &self.plans[id.index()] {
            Plan::Constant(constant) => return Val::of((&**constant).into()),
            Plan::Free => return self.free(id),
            Plan::Type(name) => return Ok(Val::Type(name)),
            Plan::Node | Plan::Call(_) | Plan::Quantifier(_) => {}
        }
        match self.ast.node(id) {
            Node::Literal(literal) => Ok(literal.into()),
            Node::Ident(name) => self.ident(id, name),
            Node::Select { .. } => self.attribute(id),
            Node::Has { operand, field } => self.has(*operand, field),
            Node::Call(call) => self.call(id, call),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Message(_) => Fault::unknown("messages are not known here"),
            Node::Fold(fold) => self.fold(id, fold),
        }
    }

    /// Evaluates what is constant, at no cost.
    fn free(&mut self, id: Id) -> Res<Val<'d>> {
        let cost = self.work.cost();
        let found = match self.ast.node(id) {
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Call(call) if &*call.function == "@in" => Ok(Val::Bool(false)),
            Node::Call(call) => self.converted(call),
            _ => Fault::overload(),
        };
        self.work.restore(cost);
        found
    }

    fn converted(&mut self, call: &'d CallNode) -> Res<Val<'d>> {
        let [argument] = *call.arguments else { return Fault::overload() };
        let argument = self.eval(argument)?;
        match super::functions::find(&call.function) {
            Some(run) => run(&mut Call { arguments: &[argument], work: &mut self.work }),
            None => Fault::overload(),
        }
    }

    fn ident(&mut self, id: Id, name: &'d str) -> Res<Val<'d>> {
        if self.is_type(id, name) {
            return self.variable(name);
        }
        self.attribute(id)
    }

    fn is_type(&self, id: Id, name: &str) -> bool {
        self.facts[id.index()].link == Link::Type
            && !self.scope.iter().any(|slot| slot.name == name)
    }

    /// A variable of a macro or of the data.
    fn variable(&mut self, name: &'d str) -> Res<Val<'d>> {
        let (name, is_global) = name.strip_prefix('.').map_or((name, false), |name| (name, true));
        let slot = self.scope.iter().rposition(|slot| slot.name == name).filter(|_| !is_global);
        if let Some(slot) = slot {
            return self.slot(slot);
        }
        match self.data.get(name) {
            Some(value) => Val::of(value),
            None if [OWN_CONTAINERS, TAKEN_PORTS].contains(&name) => Ok(Val::list(Vec::new())),
            None => match TYPE_NAMES.iter().find(|known| **known == name) {
                Some(name) => Ok(Val::Type(name)),
                None => Fault::unknown(format!("{name} is not known here")),
            },
        }
    }

    fn slot(&mut self, slot: usize) -> Res<Val<'d>> {
        match self.scope[slot].value {
            Slotted::Value(ref value) => value.clone(),
            Slotted::Lazy { start, outside } => {
                let inner: SmallVec<[_; USUAL_SLOTS]> = self.scope.drain(outside..).collect();
                let value = self.eval(start);
                self.scope.extend(inner);
                self.scope[slot].value = Slotted::Value(value.clone());
                value
            }
        }
    }

    fn call(&mut self, id: Id, call: &'d CallNode) -> Res<Val<'d>> {
        let plans = self.plans;
        let Plan::Call(planned) = &plans[id.index()] else { return Fault::overload() };
        match planned.op {
            Op::And => self.logic(call, false),
            Op::Or => self.logic(call, true),
            Op::Conditional | Op::Index | Op::OptionalIndex => self.attribute(id),
            Op::NotStrictlyFalse => self.not_strictly_false(call),
            Op::OptionalOr | Op::OptionalOrValue => {
                self.optional_or(call, planned.op == Op::OptionalOrValue)
            }
            Op::Equal | Op::NotEqual => match self.equal_scalars(call) {
                Some(is_equal) => Ok(Val::Bool(is_equal == (planned.op == Op::Equal))),
                None => self.function(call, planned),
            },
            Op::Sum | Op::Insert | Op::Function => self.function(call, planned),
        }
    }

    fn function(&mut self, call: &'d CallNode, planned: &'d Planned) -> Res<Val<'d>> {
        let first = self.arguments.len();
        let evaluated = self.arguments(call, planned);
        let result = evaluated.and_then(|()| self.run(planned, first));
        self.arguments.truncate(first);
        result
    }

    /// Calls a function with the arguments from a place on.
    fn run(&mut self, planned: &Planned, first: usize) -> Res<Val<'d>> {
        let Self { arguments, work, .. } = self;
        cost::charge(planned.rule, &arguments[first..], work)?;
        let Some(run) = planned.run else {
            // Authorizers are unknown, so that only other values get here.
            return Fault::overload();
        };
        let item = planned.item.and_then(Type::name);
        if let (Some(item), Some(Val::List(list))) = (item, arguments.get(first)) {
            match list.get(0).transpose()? {
                Some(first) if first.type_name() != item => return Fault::overload(),
                None if planned.is_sum => return Ok(Val::zero(item)),
                _ => {}
            }
        }
        // What macros add to is extended in place.
        let result = match planned.op {
            Op::Sum => match (arguments.pop(), arguments.pop()) {
                (Some(other), Some(one)) => math_add(one, other, work),
                _ => Fault::overload(),
            },
            Op::Insert => map_insert(arguments.drain(first..).collect(), work),
            _ => run(&mut Call { arguments: &arguments[first..], work }),
        };
        cost::charge_result(planned.rule, &result, work)?;
        result
    }

    /// Evaluates the arguments. Both of an operator are evaluated also if the first one fails; the
    /// call costs if all were evaluated.
    fn arguments(&mut self, call: &'d CallNode, planned: &Planned) -> Res<()> {
        let first = self.arguments.len();
        let mut fault = None;
        let target = call.target.as_ref().filter(|_| planned.has_target);
        let mut nodes = target.map(slice::from_ref).unwrap_or_default().iter();
        let mut rest = call.arguments.iter();
        while let Some(node) = nodes.next().or_else(|| rest.next()) {
            let value = match self.argument(planned.op, *node) {
                Ok(value) => value,
                Err(end) if end.is_end() => return Err(end),
                Err(found) => {
                    if planned.is_variadic && rest.len() > 0 {
                        return Err(fault.unwrap_or(found));
                    }
                    fault = fault.or(Some(found));
                    // Errors have the size of a scalar.
                    Val::Null
                }
            };
            self.arguments.push(value);
        }
        let Some(fault) = fault else { return Ok(()) };
        cost::charge(planned.rule, &self.arguments[first..], &mut self.work)?;
        let result = Err(fault);
        cost::charge_result(planned.rule, &result, &mut self.work)?;
        result.map(drop)
    }

    /// The accumulator that a macro adds to is taken out of its variable: the sum replaces it.
    fn argument(&mut self, op: Op, node: Id) -> Res<Val<'d>> {
        let value = self.eval(node)?;
        if matches!(op, Op::Sum | Op::Insert)
            && self.ast.node(node).as_ident() == Some(ACCUMULATOR)
            && let Some(slot) = self.scope.iter().rposition(|slot| slot.name == ACCUMULATOR)
        {
            self.scope[slot].value = Slotted::Value(Ok(Val::Null));
        }
        Ok(value)
    }

    fn list(&mut self, items: &'d [Item]) -> Res<Val<'d>> {
        let found = self.items(items);
        self.work.charge(LIST_COST)?;
        found.map(Val::list)
    }

    fn items(&mut self, items: &'d [Item]) -> Res<Vec<Val<'d>>> {
        self.work.spend_items(items.len())?;
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(item.value)?;
            values.extend(included(value, item.is_optional)?);
        }
        Ok(values)
    }

    fn map(&mut self, entries: &'d [Entry]) -> Res<Val<'d>> {
        let found = self.entries(entries);
        self.work.charge(MAP_COST)?;
        found.map(|made| Val::Map(Map::Made(std::rc::Rc::new(made))))
    }

    fn entries(&mut self, entries: &'d [Entry]) -> Res<Made<'d>> {
        self.work.spend_items(entries.len().saturating_mul(2))?;
        let mut made = Made::default();
        for entry in entries {
            let key = self.eval(entry.key)?;
            let value = self.eval(entry.value)?;
            if let Some(value) = included(value, entry.is_optional)? {
                made.insert(key, value, &mut self.work)?;
            }
        }
        Ok(made)
    }
}

/// An element of a list or a value of a map, if it is there.
fn included(value: Val<'_>, is_optional: bool) -> Res<Option<Val<'_>>> {
    match value {
        value if !is_optional => Ok(Some(value)),
        Val::Optional(value) => Ok(value.map(|value| (*value).clone())),
        _ => Fault::error("an optional entry has a value that is not optional"),
    }
}
