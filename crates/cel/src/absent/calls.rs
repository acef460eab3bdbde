//! Calls of operators and functions.

use std::sync::Arc;

use super::{
    Lack,
    eval::{Walk, fails_null, known},
    path::join,
    value::{Abs, Res, Stop, hash, key, made},
};
use crate::ast::{Call, Id, Literal};

impl<'w> Walk<'w> {
    pub(super) fn call(&mut self, id: Id, call: &'w Call) -> Res {
        let name = call.function.strip_prefix('.').unwrap_or(&call.function);
        match (name, call.target, &*call.arguments) {
            ("_&&_", None, _) => self.logic(call, false),
            ("_||_", None, _) => self.logic(call, true),
            ("@not_strictly_false", None, [of]) => self.not_strictly_false(*of),
            ("_?_:_", None, [condition, yes, no]) => self.conditional(*condition, *yes, *no),
            ("or" | "orValue", Some(target), [other]) => {
                let target = self.eval(target)?;
                self.optional_or(name, &target, *other)
            }
            _ => self.strict(id, name, call),
        }
    }

    /// A call of which all arguments are evaluated: it fails if one of them does.
    fn strict(&mut self, id: Id, name: &'w str, call: &'w Call) -> Res {
        let nodes = call.target.iter().chain(&call.arguments);
        let values = nodes.map(|node| self.eval(*node)).collect::<Result<Vec<_>, _>>()?;
        match (name, &*values) {
            ("!_", [of]) => Ok(known(!self.truth(of)?)),
            ("_==_", [one, other]) => self.equal(one, other).map(known),
            ("_!=_", [one, other]) => self.equal(one, other).map(|equal| known(!equal)),
            ("_<_", [one, other]) => self.ordered(id, "<", one, other),
            ("_<=_", [one, other]) => self.ordered(id, "<=", one, other),
            ("_>_", [one, other]) => self.ordered(id, ">", one, other),
            ("_>=_", [one, other]) => self.ordered(id, ">=", one, other),
            ("@in", [element, of]) => self.is_in(id, element, of),
            ("_[_]", [of, index]) => self.index(id, of, index),
            ("_[?_]" | "_?._", [of, index]) => self.optional_member(of, index),
            ("size", [of]) => size(id, of),
            ("dyn", [of]) | ("string", [of @ (Abs::Place(_) | Abs::Literal(Literal::Text(_)))]) => {
                Ok(of.clone())
            }
            (name, values) => match self.of_lists(id, name, values)? {
                Some(value) => Ok(value),
                None => function(id, name, call, values),
            },
        }
    }

    fn index(&mut self, id: Id, of: &Abs, index: &Abs) -> Res {
        match (of, index) {
            (Abs::Place(map), Abs::Each(keys)) if map == keys => {
                Ok(Abs::Place(join(map, key(index))))
            }
            _ => self.member(id, of, index),
        }
    }

    fn optional_or(&mut self, name: &str, target: &Abs, other: Id) -> Res {
        match target {
            Abs::Optional(None) => self.eval(other),
            Abs::Optional(Some(value)) if name == "orValue" => Ok((**value).clone()),
            Abs::Optional(Some(_)) => Ok(target.clone()),
            target => Ok(Abs::Other(made((name, hash(target), other.index())))),
        }
    }
}

fn size(id: Id, of: &Abs) -> Res {
    match of {
        Abs::Null(path) => fails_null(path, id),
        Abs::Place(path) => Ok(Abs::Size(path.clone())),
        Abs::List(list) if list.is_open() => Ok(Abs::Least(list.clone())),
        Abs::List(list) => Ok(Abs::int(list.items.len())),
        Abs::Map(map) => Ok(Abs::int(map.entries.len())),
        other => Ok(Abs::Other(made(("size", hash(other))))),
    }
}

/// A function whose arguments do not fail.
fn function(id: Id, name: &str, call: &Call, values: &[Abs]) -> Res {
    match (name, values) {
        ("hasValue", [Abs::Optional(value)]) => Ok(known(value.is_some())),
        ("value", [Abs::Optional(Some(value))]) => Ok((**value).clone()),
        ("value", [Abs::Optional(None)]) => Err(Stop::Fails(Lack::NoValue, id)),
        ("none", [_]) if call.arguments.is_empty() => Ok(Abs::Optional(None)),
        ("optional.none", []) => Ok(Abs::Optional(None)),
        ("of", [_, value]) | ("optional.of", [value]) => {
            Ok(Abs::Optional(Some(Arc::new(value.clone()))))
        }
        ("type", [Abs::Null(_) | Abs::Literal(Literal::Null)]) => Ok(Abs::NullType),
        // No other function takes null for a text, a number, a list or a map.
        (_, [Abs::Null(path), ..]) => fails_null(path, id),
        (name, [_, Abs::Null(path)]) if name.starts_with('_') => fails_null(path, id),
        (_, values) => {
            let values: Vec<_> = values.iter().map(hash).collect();
            Ok(Abs::Other(made((name, values))))
        }
    }
}
