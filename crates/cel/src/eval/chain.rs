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
    plan::{Link, Op},
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

/// What a chain costs.
#[derive(Default)]
struct Cost {
    units: u64,
    bytes: usize,
}

impl<'d> Evaluator<'d> {
    /// The value of a chain; `None` if it is no usual one.
    #[inline]
    pub(super) fn chain(&mut self, id: Id) -> Option<State<'d>> {
        if self.facts[id.index()].link != Link::Constant {
            return None;
        }
        let mut cost = Cost::default();
        let state = match self.follow(id, &mut cost)? {
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
        let (is_equal, size) = match (one, other) {
            (Datum::Text(one), Datum::Text(other)) => {
                // The texts are read to count their characters, and once more to compare them.
                let least = one.len().min(other.len());
                cost.bytes += one.len() + other.len() + least;
                (one == other, cost::characters(one).min(cost::characters(other)))
            }
            (Datum::Bool(one), Datum::Bool(other)) => (one == other, 1),
            (Datum::Int(one), Datum::Int(other)) => (one == other, 1),
            _ => return None,
        };
        cost.units += cost::tenths(size, 1);
        cost.bytes += size_of::<Val<'_>>();
        self.work.pay(cost.units, cost.bytes).then_some(is_equal)
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
            return match self.follow(id, cost)? {
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
        match (self.follow(target, cost)?, self.ast.node(*other)) {
            (Reached::Present(value), _) => Some(value),
            (Reached::Absent, Node::Literal(literal)) => {
                cost.bytes += NODE_BYTES;
                Some(literal.into())
            }
            _ => None,
        }
    }

    fn follow(&self, id: Id, cost: &mut Cost) -> Option<Reached<'d>> {
        cost.bytes += NODE_BYTES;
        match self.ast.node(id) {
            Node::Ident(name) => self.start(id, name).map(Reached::Plain),
            Node::Select { operand, field } => {
                let base = self.follow(*operand, cost)?;
                linked(base, Key::Name(field), false, cost)
            }
            Node::Call(call) => {
                let [operand, key] = *call.arguments else { return None };
                let key = match self.ast.node(key) {
                    Node::Literal(Literal::Text(text)) => Key::Name(text),
                    Node::Literal(Literal::Int(index)) => Key::Index(*index),
                    _ => return None,
                };
                let base = self.follow(operand, cost)?;
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
