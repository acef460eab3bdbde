//! Chains of fields and elements whose keys are written in the expression. The usual ones are followed
//! without a value for each link.
//!
//! What is found, and what it costs, is what [`super::attribute`] has. A chain with anything unusual, such
//! as a field that is missing, is left to it: nothing is counted then.

use super::{CallNode, Evaluator, Id, NODE_BYTES, Node, Slotted, Val, attribute::State};
use crate::{
    ast::Literal,
    cost,
    data::Datum,
    plan::{Comparison, Link, Op},
    value::{List, Map},
};

/// What is reached in a chain.
#[derive(Clone, Copy)]
enum Reached<'d> {
    Plain(Datum<'d>),
    Present(Datum<'d>),
    Absent,
}

/// A key of a link.
#[derive(Clone, Copy)]
enum Key<'d> {
    Name(&'d str),
    Index(i64),
}

/// What is counted for a part of an evaluation, before it is known whether it is a usual one.
#[derive(Default)]
pub(super) struct Cost {
    pub(super) units: u64,
    pub(super) bytes: usize,
}

impl<'d> Evaluator<'d> {
    /// The value of a chain, which costs so many units besides its links; `None` if it is no usual one.
    #[inline]
    pub(super) fn chain(&mut self, id: Id, units: u64) -> Option<State<'d>> {
        if self.facts[id.index()].link != Link::Constant {
            return None;
        }
        let mut cost = Cost { units, bytes: 0 };
        let state = match self.follow(id, None, &mut cost)? {
            Reached::Plain(value) => State::Plain(Val::of(value).ok()?),
            Reached::Present(value) => State::Present(Val::of(value).ok()?),
            Reached::Absent => State::Absent,
        };
        self.work.pay(cost.units, cost.bytes).then_some(state)
    }

    /// Whether two scalars are equal that are written in the expression, or at the end of usual chains;
    /// `None` if they are none.
    pub(super) fn equal_scalars(&mut self, call: &'d CallNode) -> Option<bool> {
        let [one, other] = *call.arguments else { return None };
        if !self.may_be_scalar(one) || !self.may_be_scalar(other) {
            return None;
        }
        let mut cost = Cost::default();
        let (one, other) = (self.scalar(one, &mut cost)?, self.scalar(other, &mut cost)?);
        let is_equal = equals(one, other, &mut cost)?;
        self.work.pay(cost.units, cost.bytes).then_some(is_equal)
    }

    /// What a comparison finds of an element: as [`Self::eval`] with the element as the variable that the
    /// chain begins with; `None` if its parts are no usual chain and scalar.
    pub(super) fn equals_literal(
        &self,
        comparison: Comparison,
        element: Datum<'d>,
        cost: &mut Cost,
    ) -> Option<bool> {
        let Comparison { chain, literal, is_equal } = comparison;
        let Node::Literal(literal) = self.ast.node(literal) else { return None };
        if self.facts[chain.index()].link != Link::Constant {
            return None;
        }
        // The comparison, the chain and the literal are nodes.
        cost.bytes += 3 * NODE_BYTES;
        cost.units += 1;
        let Reached::Plain(found) = self.follow(chain, Some(element), cost)? else { return None };
        equals(found, literal.into(), cost).map(|equals| equals == is_equal)
    }

    fn may_be_scalar(&self, id: Id) -> bool {
        let is_chain = |id: Id| self.facts[id.index()].link == Link::Constant;
        match self.ast.node(id) {
            Node::Literal(_) => true,
            Node::Call(call) => is_chain(id) || call.target.is_some_and(is_chain),
            _ => is_chain(id),
        }
    }

    /// The value of a literal or a chain.
    fn scalar(&self, id: Id, cost: &mut Cost) -> Option<Datum<'d>> {
        cost.bytes += NODE_BYTES;
        if self.facts[id.index()].link == Link::Constant {
            cost.units += 1;
            return match self.follow(id, None, cost)? {
                Reached::Plain(value) => Some(value),
                Reached::Present(_) | Reached::Absent => None,
            };
        }
        match self.ast.node(id) {
            Node::Literal(literal) => Some(literal.into()),
            Node::Call(call) if self.op(id) == Some(Op::OptionalOrValue) => {
                self.or_literal(call, cost)
            }
            _ => None,
        }
    }

    /// The value of a chain with an optional field, or the literal that stands for it.
    fn or_literal(&self, call: &'d CallNode, cost: &mut Cost) -> Option<Datum<'d>> {
        let (Some(target), [other]) = (call.target, &*call.arguments) else { return None };
        cost.bytes += NODE_BYTES;
        cost.units += 1;
        match (self.follow(target, None, cost)?, self.ast.node(*other)) {
            (Reached::Present(value), _) => Some(value),
            (Reached::Absent, Node::Literal(literal)) => {
                cost.bytes += NODE_BYTES;
                Some(literal.into())
            }
            _ => None,
        }
    }

    /// What a chain leads to, from this value of its variable if there is one.
    fn follow(&self, id: Id, from: Option<Datum<'d>>, cost: &mut Cost) -> Option<Reached<'d>> {
        cost.bytes += NODE_BYTES;
        match self.ast.node(id) {
            Node::Ident(name) => from.or_else(|| self.start(id, name)).map(Reached::Plain),
            Node::Select { operand, field } => {
                let base = match self.ast.node(*operand) {
                    // The beginning of most chains takes no call.
                    Node::Ident(name) => {
                        cost.bytes += NODE_BYTES;
                        Reached::Plain(from.or_else(|| self.start(*operand, name))?)
                    }
                    _ => self.follow(*operand, from, cost)?,
                };
                linked(base, Key::Name(field), false, cost)
            }
            Node::Call(call) => {
                let [operand, key] = *call.arguments else { return None };
                let key = match self.ast.node(key) {
                    Node::Literal(Literal::Text(text)) => Key::Name(text),
                    Node::Literal(Literal::Int(index)) => Key::Index(*index),
                    _ => return None,
                };
                let base = self.follow(operand, from, cost)?;
                if !matches!(base, Reached::Absent) {
                    // The key is a node.
                    cost.bytes += NODE_BYTES;
                }
                linked(base, key, self.facts[id.index()].is_optional, cost)
            }
            _ => None,
        }
    }

    /// A variable of a macro or of the data.
    fn start(&self, id: Id, name: &'d str) -> Option<Datum<'d>> {
        if self.facts[id.index()].link != Link::Local {
            return self.data.get(name);
        }
        let slot = self.scope.iter().rev().find(|slot| *slot.name == *name);
        let Some(slot) = slot else { return self.data.get(name) };
        match &slot.value {
            Slotted::Value(Ok(Val::Map(Map::At(source, at)))) => Some(Datum::MapAt(*source, *at)),
            Slotted::Value(Ok(Val::Map(Map::Data(fields)))) => Some(Datum::Map(*fields)),
            Slotted::Value(Ok(Val::List(List::At(source, at)))) => {
                Some(Datum::ListAt(*source, *at))
            }
            Slotted::Value(Ok(Val::List(List::Data(items)))) => Some(Datum::List(*items)),
            _ => None,
        }
    }
}

/// Whether two texts, flags or whole numbers are equal; `None` for values of other types, or of different ones.
fn equals(one: Datum<'_>, other: Datum<'_>, cost: &mut Cost) -> Option<bool> {
    let (is_equal, size) = match (one, other) {
        (Datum::Text(one), Datum::Text(other)) => {
            // The texts are read to count their characters, and once more to compare them.
            let least = one.len().min(other.len());
            cost.bytes += one.len() + other.len() + least;
            // Up to ten bytes and up to ten characters cost the same, and only no bytes are no characters.
            let size = match u64::try_from(least) {
                Ok(few @ ..=10) => few,
                _ => cost::characters(one).min(cost::characters(other)),
            };
            (one == other, size)
        }
        (Datum::Bool(one), Datum::Bool(other)) => (one == other, 1),
        (Datum::Int(one), Datum::Int(other)) => (one == other, 1),
        _ => return None,
    };
    cost.units += cost::tenths(size, 1);
    cost.bytes += size_of::<Val<'_>>();
    Some(is_equal)
}

/// What a link leads to.
fn linked<'d>(
    base: Reached<'d>,
    key: Key<'d>,
    is_optional: bool,
    cost: &mut Cost,
) -> Option<Reached<'d>> {
    let is_optional = is_optional || matches!(base, Reached::Present(_));
    let (Reached::Plain(of) | Reached::Present(of)) = base else { return Some(Reached::Absent) };
    let found = match (of, key) {
        (Datum::MapAt(source, at), Key::Name(name)) => {
            cost.bytes += name.len();
            source.field(at, name)
        }
        (Datum::Map(fields), Key::Name(name)) => {
            cost.bytes += name.len();
            fields.get(name)
        }
        (Datum::ListAt(source, at), Key::Index(index)) => {
            source.item(at, usize::try_from(index).ok()?)
        }
        (Datum::List(items), Key::Index(index)) => items.get(usize::try_from(index).ok()?),
        _ => return None,
    };
    match found {
        Some(value) if is_usual(&value) => {
            cost.units += 1;
            Some(if is_optional { Reached::Present(value) } else { Reached::Plain(value) })
        }
        None if is_optional => Some(Reached::Absent),
        _ => None,
    }
}

/// Whether it is a value of JSON.
fn is_usual(datum: &Datum<'_>) -> bool {
    !matches!(
        datum,
        Datum::Quantity(_)
            | Datum::Duration(_)
            | Datum::Absent
            | Datum::Present(_)
            | Datum::OptionalAt(..)
            | Datum::Failed(_)
            | Datum::Unknown(_)
    )
}
