//! Evaluates expressions whose data is known in part.

use std::sync::Arc;

use super::{
    Facts, Lack, Path, Presence, Step, Work, World,
    facts::{Atom, Text},
    path::join,
    value::{Abs, Res, Stop, hash, key, made},
};
use crate::ast::{Ast, Entry, Id, Item, Literal, Node};

/// An evaluation.
pub(super) struct Walk<'w> {
    pub(super) ast: &'w Ast,
    world: &'w dyn World,
    pub(super) facts: &'w Facts,
    work: &'w mut Work,
    /// Variables of macros, the innermost last.
    pub(super) scope: Vec<(&'w str, Res)>,
}

impl<'w> Walk<'w> {
    pub(super) fn new(
        ast: &'w Ast,
        world: &'w dyn World,
        facts: &'w Facts,
        work: &'w mut Work,
    ) -> Self {
        Self { ast, world, facts, work, scope: Vec::new() }
    }

    pub(super) fn eval(&mut self, id: Id) -> Res {
        self.spend(1)?;
        match self.ast.node(id) {
            Node::Literal(literal) => Ok(Abs::Literal(literal.clone())),
            Node::Ident(name) => self.variable(name),
            Node::Select { operand, field } => {
                let base = self.eval(*operand)?;
                self.member(id, &base, &Abs::text(field))
            }
            Node::Has { operand, field } => {
                let base = self.eval(*operand)?;
                self.has(&base, field)
            }
            Node::Call(call) => self.call(id, call),
            Node::Fold(fold) => self.fold(id, fold),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Message(values) => {
                values.iter().try_for_each(|value| self.eval(*value).map(drop))?;
                Ok(Abs::Other(made((id.index(), "message"))))
            }
        }
    }

    /// Counts what is evaluated or made.
    pub(super) fn spend(&mut self, count: usize) -> Result<(), Stop> {
        if self.work.take(count) { Ok(()) } else { Err(Stop::Work) }
    }

    fn variable(&mut self, name: &'w str) -> Res {
        let (name, is_global) = name.strip_prefix('.').map_or((name, false), |name| (name, true));
        let local = self.scope.iter().rev().find(|(known, _)| *known == name);
        if let Some((_, value)) = local.filter(|_| !is_global) {
            return value.clone();
        }
        let path: Path = [Step::Field(name.into())].into();
        match self.world.presence(&path, self.facts) {
            Presence::Null => Ok(Abs::Null(path)),
            _ => Ok(Abs::Place(path)),
        }
    }

    fn list(&mut self, items: &'w [Item]) -> Res {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(item.value)?;
            match value {
                Abs::Optional(value) if item.is_optional => {
                    values.extend(value.map(|value| (*value).clone()));
                }
                value => values.push(value),
            }
        }
        Ok(Abs::list(values, &[]))
    }

    fn map(&mut self, entries: &'w [Entry]) -> Res {
        let mut values = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.eval(entry.key)?;
            match self.eval(entry.value)? {
                Abs::Optional(value) if entry.is_optional => {
                    values.extend(value.map(|value| (key, (*value).clone())));
                }
                value => values.push((key, value)),
            }
        }
        Ok(Abs::map(values))
    }

    /// What is at a path whose last step may lead nowhere. What is not known is asked only for a guard.
    pub(super) fn reach(&self, path: &Path, is_guard: bool) -> Result<Option<Abs>, Stop> {
        let there = |is_there: bool| is_there.then(|| self.value(path));
        let atom = Atom::Present(path.clone());
        let presence = self.world.presence(path, self.facts);
        if matches!(presence, Presence::Open | Presence::Maybe)
            && let Some(answer) = self.implied(path)
        {
            return Ok(there(answer));
        }
        match presence {
            Presence::Always => Ok(there(true)),
            Presence::Text(text) => Ok(Some(Abs::Literal(Literal::Text(text.into())))),
            Presence::Null => Ok(Some(Abs::Null(path.clone()))),
            Presence::Nullable => {
                let is_null = self.decide(Atom::Null(path.clone()))?;
                Ok(Some(if is_null { Abs::Null(path.clone()) } else { self.value(path) }))
            }
            Presence::Never => Ok(None),
            Presence::Open if !is_guard => Ok(there(self.facts.answer(&atom) != Some(false))),
            Presence::Open | Presence::Maybe => {
                let answer = self.facts.answer(&atom).ok_or(Stop::Choice(atom))?;
                Ok(there(answer))
            }
        }
    }

    /// What follows for an element from the others: an empty map has none, and one that has another is
    /// not empty.
    fn implied(&self, path: &Path) -> Option<bool> {
        let (last, of) = path.split_last()?;
        if *last == Step::Element {
            return self.facts.is_inhabited(of).then_some(true);
        }
        let element: Path = of.iter().cloned().chain([Step::Element]).collect();
        (self.facts.answer(&Atom::Present(element)) == Some(false)).then_some(false)
    }

    fn value(&self, path: &Path) -> Abs {
        match self.facts.value(path) {
            Some(literal) => Abs::Literal(literal.clone()),
            None => Abs::Place(path.clone()),
        }
    }

    pub(super) fn is_there(&self, path: &Path) -> Result<bool, Stop> {
        self.reach(path, true).map(|found| found.is_some())
    }

    /// A field, or what is at a key or an index.
    pub(super) fn member(&mut self, id: Id, base: &Abs, at: &Abs) -> Res {
        let path = match base {
            Abs::Optional(None) => return Ok(Abs::Optional(None)),
            Abs::Optional(Some(value)) => return self.optional_member(value, at),
            Abs::Null(path) => return fails_null(path, id),
            Abs::Place(path) => path.clone(),
            Abs::Each(path) => join(path, Step::Element),
            Abs::List(_) | Abs::Map(_) => {
                let found = self.picked(base, at)?;
                return found.ok_or(Stop::Fails(Lack::Made(key(at)), id));
            }
            other => return Ok(Abs::Other(made((hash(other), key(at))))),
        };
        let step = key(at);
        // A list that is as long as a comparison says has more than one element.
        if matches!(step, Step::Index(_)) && self.facts.is_sized(&path) {
            return Ok(Abs::Place(join(&path, step)));
        }
        let path = join(&path, step);
        match self.reach(&path, false)? {
            Some(value) => Ok(value),
            None => Err(Stop::Fails(Lack::Absent(path), id)),
        }
    }

    /// `.?` and `[?…]`.
    pub(super) fn optional_member(&mut self, base: &Abs, at: &Abs) -> Res {
        let path = match base {
            Abs::Optional(None) | Abs::Null(_) | Abs::Literal(Literal::Null) => {
                return Ok(Abs::Optional(None));
            }
            Abs::Optional(Some(value)) => return self.optional_member(value, at),
            Abs::Place(path) => path.clone(),
            Abs::Each(path) => join(path, Step::Element),
            Abs::List(_) | Abs::Map(_) => {
                return Ok(Abs::Optional(self.picked(base, at)?.map(Arc::new)));
            }
            other => {
                let key = made((hash(other), key(at), "?"));
                let is_there = self.decide(Atom::True(key))?;
                return Ok(Abs::Optional(is_there.then(|| Arc::new(Abs::Other(key)))));
            }
        };
        let found = self.reach(&join(&path, key(at)), true)?;
        Ok(Abs::Optional(found.map(Arc::new)))
    }

    fn has(&mut self, base: &Abs, field: &'w str) -> Res {
        let found = match self.optional_member(base, &Abs::text(field))? {
            Abs::Optional(found) => found.is_some(),
            _ => true,
        };
        Ok(known(found))
    }

    /// The answer to a question, if it is assumed.
    pub(super) fn decide(&self, atom: Atom) -> Result<bool, Stop> {
        self.facts.answer(&atom).ok_or(Stop::Choice(atom))
    }

    /// Whether a value is true.
    pub(super) fn truth(&self, value: &Abs) -> Result<bool, Stop> {
        match value {
            Abs::Literal(Literal::Bool(value)) => Ok(*value),
            Abs::Place(path) => self.decide(is_true(path)),
            other => self.decide(Atom::True(hash(other))),
        }
    }
}

/// That a place is true.
pub(super) fn is_true(path: &Path) -> Atom {
    Atom::Equal(path.clone(), Text::of(&Literal::Bool(true)))
}

/// What is read from null fails.
pub(super) fn fails_null(path: &Path, id: Id) -> Res {
    Err(Stop::Fails(Lack::Null(path.clone()), id))
}

pub(super) fn known(value: bool) -> Abs {
    Abs::Literal(Literal::Bool(value))
}
