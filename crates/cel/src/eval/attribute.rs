//! Variables with fields and elements, which cost together (`interpreter/attributes.go` of cel-go).

use super::{Evaluator, Fault, Id, Node, Res, Val};
use crate::{
    limits::shortened,
    plan::{Link, Op, Plan, is_free},
    value::Text,
    work::Work,
};

/// What is reached in a chain of fields and elements.
pub(super) enum State<'d> {
    Plain(Val<'d>),
    /// Behind an optional field; what follows is optional as well.
    Present(Val<'d>),
    /// An optional field that is not there: nothing follows.
    Absent,
}

impl<'d> Evaluator<'d> {
    /// The value of a chain. It costs a unit, besides its links; a conditional costs only its parts.
    pub(super) fn attribute(&mut self, id: Id) -> Res<Val<'d>> {
        self.attribute_state(id).map(State::value)
    }

    fn attribute_state(&mut self, id: Id) -> Res<State<'d>> {
        if let Some(state) = self.chain(id, 1) {
            return Ok(state);
        }
        let found = self.resolve_slowly(id);
        let is_end = matches!(&found, Err(fault) if fault.is_end());
        if !is_end && !self.facts[id.index()].has_conditional_root {
            self.work.charge(1)?;
        }
        found
    }

    /// What is in an optional. A value of another type is plain.
    pub(super) fn optional(&mut self, id: Id) -> Res<State<'d>> {
        if self.facts[id.index()].link != Link::Constant {
            return self.eval(id).map(|value| State::Plain(value).opened());
        }
        self.work.spend(super::NODE_BYTES)?;
        self.attribute_state(id).map(State::opened)
    }

    /// `has(…)`: as the field, but without the unit.
    pub(super) fn has(&mut self, operand: Id, field: &'d str) -> Res<Val<'d>> {
        let base = self.base(operand)?;
        let key = Val::Text(Text::Borrowed(field));
        let found = match base.opened() {
            State::Absent => Ok(false),
            State::Plain(value) => {
                let found = member(&value, &key, true, &mut self.work);
                self.work.charge(1)?;
                found.map(|found| found.is_some())
            }
            State::Present(value) => {
                let found = member(&value, &key, true, &mut self.work)?.is_some();
                if found {
                    self.work.charge(1)?;
                }
                Ok(found)
            }
        };
        if self.facts[operand.index()].has_conditional_root {
            self.work.refund();
        }
        found.map(Val::Bool)
    }

    fn is_attribute(&self, id: Id) -> bool {
        match self.ast.node(id) {
            Node::Ident(name) => !self.is_type(id, name),
            _ => matches!(self.facts[id.index()].link, Link::Any | Link::Constant),
        }
    }

    /// What a chain goes on from, or the branch of a conditional.
    fn base(&mut self, id: Id) -> Res<State<'d>> {
        if self.is_attribute(id) { self.resolve(id) } else { self.eval(id).map(State::Plain) }
    }

    fn resolve(&mut self, id: Id) -> Res<State<'d>> {
        match self.chain(id, 0) {
            Some(state) => Ok(state),
            None => self.resolve_slowly(id),
        }
    }

    /// What a link goes on from.
    fn operand(&mut self, of: Id, operand: Id) -> Res<State<'d>> {
        // A chain that was followed already has something unusual.
        if self.facts[of.index()].link == Link::Constant {
            return self.resolve_slowly(operand);
        }
        self.base(operand)
    }

    fn resolve_slowly(&mut self, id: Id) -> Res<State<'d>> {
        self.work.spend(super::NODE_BYTES)?;
        match self.ast.node(id) {
            Node::Ident(name) => self.variable(name).map(State::Plain),
            Node::Select { operand, field } => {
                let base = self.operand(id, *operand)?;
                self.qualify(base, false, |_| Ok(Val::Text(Text::Borrowed(field))))
            }
            Node::Call(call) => match (self.op(id), &*call.arguments) {
                (Some(Op::Conditional), [condition, yes, no]) => match self.eval(*condition)? {
                    Val::Bool(true) => self.base(*yes),
                    Val::Bool(false) => self.base(*no),
                    _ => Fault::overload(),
                },
                (Some(op), [operand, index]) => {
                    let base = self.operand(id, *operand)?;
                    let (is_optional, index) = (op != Op::Index, *index);
                    self.qualify(base, is_optional, |evaluator| evaluator.index(index))
                }
                _ => Fault::overload(),
            },
            _ => Fault::overload(),
        }
    }

    pub(super) fn op(&self, id: Id) -> Option<Op> {
        match &self.plans[id.index()] {
            Plan::Call(planned) => Some(planned.op),
            _ => None,
        }
    }

    /// The value of an index.
    fn index(&mut self, id: Id) -> Res<Val<'d>> {
        if is_free(self.ast, self.plans, id) {
            return self.eval(id);
        }
        let key = self.base(id)?.value();
        if !key.is_qualifier() {
            return Fault::error(format!("a {} is not a key", key.type_name()));
        }
        Ok(key)
    }

    fn qualify(
        &mut self,
        base: State<'d>,
        is_optional: bool,
        key: impl FnOnce(&mut Self) -> Res<Val<'d>>,
    ) -> Res<State<'d>> {
        let base = base.opened();
        let is_optional = is_optional || matches!(base, State::Present(_));
        let (State::Plain(value) | State::Present(value)) = base else { return Ok(State::Absent) };
        let found = key(self).and_then(|key| member(&value, &key, is_optional, &mut self.work));
        match found {
            Err(end) if end.is_end() => Err(end),
            Ok(None) => Ok(State::Absent),
            Err(fault) if is_optional => Err(fault),
            found => {
                self.work.charge(1)?;
                let found = found?;
                let value = found.map_or_else(|| Fault::error("no such key"), Ok)?;
                Ok(if is_optional { State::Present(value) } else { State::Plain(value) })
            }
        }
    }
}

impl<'d> State<'d> {
    fn value(self) -> Val<'d> {
        match self {
            Self::Plain(value) => value,
            Self::Present(value) => Val::some(value),
            Self::Absent => Val::Optional(None),
        }
    }

    /// A chain goes on from what is in an optional value.
    fn opened(self) -> Self {
        match self {
            Self::Plain(Val::Optional(Some(value))) => Self::Present((*value).clone()),
            Self::Plain(Val::Optional(None)) => Self::Absent,
            other => other,
        }
    }
}

/// A field or an element; `None` if it is optional and not there.
fn member<'d>(
    of: &Val<'d>,
    key: &Val<'d>,
    is_optional: bool,
    work: &mut Work,
) -> Res<Option<Val<'d>>> {
    let found = match of {
        Val::Map(map) => map.get(key, work)?,
        Val::List(list) => match place(key)? {
            Some(place) => list.get(place).transpose()?,
            None => None,
        },
        _ => None,
    };
    match (found, key) {
        (None, _) if is_optional => Ok(None),
        (None, Val::Text(name)) => Fault::error(format!("no such key: {}", shortened(name))),
        (None, Val::Int(index)) => Fault::error(format!("no such key or element: {index}")),
        (None, _) => Fault::error("no such key or element"),
        (found, _) => Ok(found),
    }
}

/// The place that an index means; `None` for one that no list has.
#[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
fn place(key: &Val<'_>) -> Res<Option<usize>> {
    match key {
        Val::Int(index) => Ok(usize::try_from(*index).ok()),
        Val::Uint(index) => Ok(usize::try_from(*index).ok()),
        // Lists are shorter than 2^53.
        Val::Double(index) if index.fract() == 0.0 && index.abs() < 9e15 => {
            Ok(usize::try_from(*index as i64).ok())
        }
        _ => Fault::error("invalid index of a list"),
    }
}
