//! Operators: logic, comparisons and membership.

use super::{
    Step,
    eval::{Walk, fails_null, is_true, known},
    facts::{Atom, Text},
    path::{Path, join},
    value::{Abs, List, Res, Stop, hash, key, made},
};
use crate::ast::{Call, Id, Literal};

impl<'w> Walk<'w> {
    /// `&&` or `||`: a value that decides is the result, also beside one that fails.
    pub(super) fn logic(&mut self, call: &'w Call, decides: bool) -> Res {
        let mut fails = None;
        for term in &call.arguments {
            let found = self.eval(*term).and_then(|value| self.truth(&value));
            match found {
                Ok(value) if value == decides => return Ok(known(decides)),
                Ok(_) => {}
                Err(stop @ Stop::Fails(..)) => {
                    fails.get_or_insert(stop);
                }
                Err(stop) => return Err(stop),
            }
        }
        fails.map_or(Ok(known(!decides)), Err)
    }

    pub(super) fn not_strictly_false(&mut self, of: Id) -> Res {
        match self.eval(of).and_then(|value| self.truth(&value)) {
            Ok(value) => Ok(known(value)),
            Err(Stop::Fails(..)) => Ok(known(true)),
            Err(stop) => Err(stop),
        }
    }

    pub(super) fn conditional(&mut self, condition: Id, yes: Id, no: Id) -> Res {
        let condition = self.eval(condition)?;
        let branch = if self.truth(&condition)? { yes } else { no };
        self.eval(branch)
    }

    pub(super) fn equal(&mut self, one: &Abs, other: &Abs) -> Result<bool, Stop> {
        self.spend(1)?;
        match (one, other) {
            (Abs::NullType, other) | (other, Abs::NullType) => Ok(is_null_type(other)),
            (Abs::List(_) | Abs::Map(_), _) | (_, Abs::List(_) | Abs::Map(_)) => {
                self.equal_made(one, other)
            }
            (Abs::Literal(one), Abs::Literal(other)) => Ok(is_same(one, other)),
            (
                Abs::Null(_) | Abs::Literal(Literal::Null),
                Abs::Null(_) | Abs::Literal(Literal::Null),
            ) => Ok(true),
            (Abs::Null(_) | Abs::Literal(Literal::Null), _)
            | (_, Abs::Null(_) | Abs::Literal(Literal::Null)) => Ok(false),
            (Abs::Place(path), Abs::Literal(literal))
            | (Abs::Literal(literal), Abs::Place(path)) => self.has_value(path, literal),
            // A key of a map, or an element of a list of texts.
            (Abs::Each(path), Abs::Literal(Literal::Text(text)))
            | (Abs::Literal(Literal::Text(text)), Abs::Each(path)) => {
                self.is_there(&join(path, Step::Field((&**text).into())))
            }
            (Abs::Size(list), Abs::Literal(Literal::Int(size)))
            | (Abs::Literal(Literal::Int(size)), Abs::Size(list)) => {
                self.compare(list, "==", *size)
            }
            (Abs::Least(list), Abs::Literal(Literal::Int(size)))
            | (Abs::Literal(Literal::Int(size)), Abs::Least(list)) => {
                self.at_least(list, "==", *size)
            }
            _ => self.same(one, other),
        }
    }

    /// Whether values are equal of which nothing else is known.
    pub(super) fn same(&self, one: &Abs, other: &Abs) -> Result<bool, Stop> {
        let (one, other) = (hash(one), hash(other));
        let made = made(("==", one.min(other), one.max(other)));
        if one == other { Ok(true) } else { self.decide(Atom::True(made)) }
    }

    fn has_value(&self, path: &Path, literal: &Literal) -> Result<bool, Stop> {
        match literal {
            Literal::Bool(value) => Ok(self.decide(is_true(path))? == *value),
            literal => self.decide(Atom::Equal(path.clone(), Text::of(literal))),
        }
    }

    /// `in`. The second value is a list or a map.
    pub(super) fn is_in(&mut self, id: Id, element: &Abs, of: &Abs) -> Res {
        match of {
            Abs::List(list) => self.is_one_of(element, &list.items).map(known),
            Abs::Map(map) => {
                let keys: Vec<_> = map.entries.iter().map(|(key, _)| key.clone()).collect();
                self.is_one_of(element, &keys).map(known)
            }
            Abs::Null(path) => fails_null(path, id),
            Abs::Place(path) => {
                let is_in = match element {
                    Abs::Each(of) if of == path => true,
                    element => self.is_there(&join(path, key(element)))?,
                };
                Ok(known(is_in))
            }
            of => Ok(Abs::Other(made(("in", hash(element), hash(of))))),
        }
    }

    fn is_one_of(&mut self, element: &Abs, items: &[Abs]) -> Result<bool, Stop> {
        for item in items {
            if self.equal(element, item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `<`, `<=`, `>` and `>=`.
    pub(super) fn ordered(
        &mut self,
        id: Id,
        operator: &'static str,
        one: &Abs,
        other: &Abs,
    ) -> Res {
        match (one, other) {
            (Abs::Null(path), _) | (_, Abs::Null(path)) => fails_null(path, id),
            (Abs::Literal(Literal::Int(one)), Abs::Literal(Literal::Int(other))) => {
                Ok(known(holds(operator, *one, *other)))
            }
            (Abs::Size(list), Abs::Literal(Literal::Int(size))) => {
                self.compare(list, operator, *size).map(known)
            }
            (Abs::Literal(Literal::Int(size)), Abs::Size(list)) => {
                self.compare(list, turned(operator), *size).map(known)
            }
            (Abs::Least(list), Abs::Literal(Literal::Int(size))) => {
                self.at_least(list, operator, *size).map(known)
            }
            (Abs::Literal(Literal::Int(size)), Abs::Least(list)) => {
                self.at_least(list, turned(operator), *size).map(known)
            }
            _ => Ok(Abs::Other(made((operator, hash(one), hash(other))))),
        }
    }

    /// Whether a list is assumed not to have an element.
    fn lacks(&self, element: Path) -> bool {
        self.facts.answer(&Atom::Present(element)) == Some(false)
    }

    /// Compares the size of a list that has as many elements as are known, or more.
    fn at_least(&self, list: &List, operator: &'static str, size: i64) -> Result<bool, Stop> {
        let least = i64::try_from(list.items.len()).unwrap_or(i64::MAX);
        let candidates = [size.saturating_sub(1), size, size.saturating_add(1)];
        let first = holds(operator, least, size);
        let longer = candidates.into_iter().filter(|count| *count >= least);
        let lacks =
            |index: i64| list.behind(index.unsigned_abs()).all(|element| self.lacks(element));
        let mut longer = possible(lacks, longer);
        if longer.all(|count| holds(operator, count, size) == first) {
            return Ok(first);
        }
        self.decide(Atom::Sized(list.from.clone(), made((list.made, operator, size))))
    }

    /// Compares the size of a list that has elements or none.
    fn compare(&mut self, list: &Path, operator: &'static str, size: i64) -> Result<bool, Stop> {
        let holds = |count: i64| holds(operator, count, size);
        if !self.is_there(&join(list, Step::Element))? {
            return Ok(holds(0));
        }
        // Whether it holds is the same for all sizes on one side of the number.
        let candidates = [1, size.saturating_sub(1), size, size.saturating_add(1)];
        let candidates = candidates.into_iter().filter(|count| *count >= 1);
        let lacks = |index: i64| self.lacks(join(list, Step::Index(index.unsigned_abs())));
        let mut candidates = possible(lacks, candidates);
        let first = holds(1);
        if candidates.all(|count| holds(count) == first) {
            return Ok(first);
        }
        self.decide(Atom::Sized(vec![list.clone()], made((operator, size))))
    }
}

/// Sizes that a list may have: at most the index of an element that is not there.
fn possible(
    lacks: impl Fn(i64) -> bool,
    sizes: impl Iterator<Item = i64> + Clone,
) -> impl Iterator<Item = i64> {
    let max = sizes.clone().filter(|index| lacks(*index)).min().unwrap_or(i64::MAX);
    sizes.filter(move |count| *count <= max)
}

/// Whether a type is that of null: nothing but its name and the type of null itself.
fn is_null_type(of: &Abs) -> bool {
    match of {
        Abs::NullType => true,
        Abs::Place(path) => matches!(&**path, [Step::Field(name)] if &**name == "null_type"),
        _ => false,
    }
}

/// The operator that says the same when both sides change places.
fn turned(operator: &str) -> &'static str {
    match operator {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        _ => "<=",
    }
}

fn holds(operator: &str, one: i64, other: i64) -> bool {
    match operator {
        "==" => one == other,
        "<" => one < other,
        "<=" => one <= other,
        ">" => one > other,
        _ => one >= other,
    }
}

/// The place that stands for a list of which only this is known: how it is made.
pub(super) fn place_of(made: u64) -> Path {
    [Step::Any(made)].into()
}

/// Whether literals are equal: numbers of all types are compared with each other.
fn is_same(one: &Literal, other: &Literal) -> bool {
    use Literal::{Int, Uint};
    match (one, other) {
        (Int(int), Uint(uint)) | (Uint(uint), Int(int)) => u64::try_from(*int) == Ok(*uint),
        (one, other) => one == other,
    }
}
