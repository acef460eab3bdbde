//! Lists and maps that conditions make: literals, what macros and functions make of lists, and what is
//! read from them.
//!
//! Not for lists that are made of texts and numbers, such as by `split`: how long they are depends on
//! values.

use std::sync::Arc;

use super::{
    Lack, Step,
    eval::Walk,
    facts::Atom,
    path::{Path, join},
    value::{Abs, List, Map, Stop, hash, made},
};
use crate::ast::{Id, Literal};

/// The end of a slice up to which its elements are looked at.
// A slice of a million elements is short to write, and each of them would be a path to follow.
const MAX_SLICE: i64 = 64;

type Maybe = Result<Option<Abs>, Stop>;

impl Walk<'_> {
    /// A function of lists, maps or optionals whose result is followed; `None` for others.
    pub(super) fn of_lists(&mut self, id: Id, name: &str, values: &[Abs]) -> Maybe {
        match (name, values) {
            (
                "_+_" | "_-_",
                [Abs::Literal(Literal::Int(one)), Abs::Literal(Literal::Int(other))],
            ) => {
                let result =
                    if name == "_+_" { one.checked_add(*other) } else { one.checked_sub(*other) };
                Ok(result.map(|result| Abs::Literal(Literal::Int(result))))
            }
            // Two places may be texts or numbers, too: then no expression reads an element.
            ("_+_", [one @ (Abs::List(_) | Abs::Place(_)), other]) => {
                self.joined([one, other], &[])
            }
            ("reverse" | "sort" | "distinct" | "@sortByAssociatedKeys", [of, ..]) => {
                self.ordered_anew(name, of)
            }
            ("slice", [of, Abs::Literal(Literal::Int(from)), Abs::Literal(Literal::Int(to))]) => {
                self.slice(id, of, *from, *to)
            }
            ("first", [of @ (Abs::List(_) | Abs::Place(_))]) => {
                self.optional_member(of, &Abs::int(0)).map(Some)
            }
            ("last", [Abs::List(list)]) => {
                Ok(Some(Abs::Optional(list.items.last().cloned().map(Arc::new))))
            }
            // The only element that is known.
            ("last", [of @ Abs::Place(_)]) => self.optional_member(of, &Abs::int(0)).map(Some),
            ("min" | "max", [of @ (Abs::List(_) | Abs::Place(_))]) => {
                match self.member(id, of, &Abs::int(0)) {
                    Err(Stop::Fails(Lack::Made(_), id)) => Err(Stop::Fails(Lack::Least, id)),
                    found => found.map(|_| None),
                }
            }
            ("flatten", [Abs::List(list)] | [Abs::List(list), Abs::Literal(Literal::Int(1))]) => {
                self.joined(&list.items, &list.from)
            }
            ("unwrapOpt" | "optional.unwrap", [Abs::List(list)])
            | ("unwrap", [_, Abs::List(list)]) => Ok(unwrapped(list)),
            ("optional.ofNonZeroValue", [of]) | ("ofNonZeroValue", [_, of]) => {
                let is_zero = self.is_zero(of)?;
                Ok(Some(Abs::Optional((!is_zero).then(|| Arc::new(of.clone())))))
            }
            ("cel.@mapInsert", [Abs::Map(map), more @ ..]) => self.inserted(map, more),
            _ => Ok(None),
        }
    }

    /// The elements of lists; of one in the data, one or none is known. There may be more lists, because
    /// that of which they are made may have more elements.
    fn joined<'l>(&mut self, lists: impl IntoIterator<Item = &'l Abs>, more: &[Path]) -> Maybe {
        let (mut items, mut from) = (Vec::new(), more.to_vec());
        let mut add = |path: &Path| {
            if !from.contains(path) {
                from.push(path.clone());
            }
        };
        for list in lists {
            match list {
                Abs::List(list) => {
                    self.spend(list.items.len())?;
                    items.extend(list.items.iter().cloned());
                    list.from.iter().for_each(&mut add);
                }
                Abs::Place(path) => {
                    let element = self.reach(&join(path, Step::Element), true)?;
                    if let Some(element) = element {
                        items.push(element);
                        add(path);
                    }
                }
                _ => return Ok(None),
            }
        }
        self.spend(items.len())?;
        Ok(Some(Abs::list(items, &from)))
    }

    /// The same elements in another order, or each once.
    fn ordered_anew(&mut self, name: &str, of: &Abs) -> Maybe {
        let list = match of {
            Abs::Place(_) => return Ok(Some(of.clone())),
            Abs::List(list) if list.items.len() < 2 => return Ok(Some(of.clone())),
            Abs::List(list) if name != "distinct" => list,
            // How many remain is not known.
            _ => return Ok(None),
        };
        self.spend(list.items.len())?;
        let items = list.items.iter();
        if name == "reverse" {
            return Ok(Some(Abs::list(items.rev().cloned().collect(), &list.from)));
        }
        let of = hash(of);
        let items = items.enumerate().map(|(index, _)| Abs::Other(made((name, of, index))));
        Ok(Some(Abs::list(items.collect(), &list.from)))
    }

    /// A part of a list: it fails if the list is shorter.
    fn slice(&mut self, id: Id, of: &Abs, from: i64, to: i64) -> Maybe {
        if !(0..=to).contains(&from)
            || to > MAX_SLICE
            || !matches!(of, Abs::List(_) | Abs::Place(_))
        {
            return Ok(None);
        }
        if to > 0 {
            self.member(id, of, &Abs::Literal(Literal::Int(to - 1)))?;
        }
        let items = (from..to).map(|at| self.member(id, of, &Abs::Literal(Literal::Int(at))));
        Ok(Some(Abs::list(items.collect::<Result<_, _>>()?, &[])))
    }

    /// Whether a value is the zero of its type.
    fn is_zero(&mut self, of: &Abs) -> Result<bool, Stop> {
        match of {
            Abs::Null(_) => Ok(true),
            Abs::List(list) => Ok(list.items.is_empty()),
            Abs::Map(map) => Ok(map.entries.is_empty()),
            other => self.decide(Atom::True(made(("is zero", hash(other))))),
        }
    }

    /// A map with one more entry, or with those of another map.
    fn inserted(&mut self, map: &Map, more: &[Abs]) -> Maybe {
        self.spend(map.entries.len())?;
        let mut entries = map.entries.clone();
        match more {
            [Abs::Map(more)] => entries.extend(more.entries.iter().cloned()),
            [key, value] => entries.push((key.clone(), value.clone())),
            _ => return Ok(None),
        }
        Ok(Some(Abs::map(entries)))
    }

    /// What is at an index of a list or at a key of a map; `None` if nothing is.
    pub(super) fn picked(&mut self, of: &Abs, at: &Abs) -> Maybe {
        match of {
            Abs::List(list) => Ok(match index(at) {
                Some(index) if index < list.items.len() => list.items.get(index).cloned(),
                Some(index) if list.is_open() => self
                    .is_longer(list, index)?
                    .then(|| Abs::Other(made(("[]", hash(of), hash(at))))),
                Some(_) => None,
                // Which index it is depends on values.
                None => {
                    (!list.items.is_empty()).then(|| Abs::Other(made(("[]", hash(of), hash(at)))))
                }
            }),
            Abs::Map(map) => {
                for (key, value) in &map.entries {
                    if self.equal(key, at)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Whether a list that may have more elements than are known has one at an index. It has if a
    /// comparison says how long it is, or how long one is of which it is made.
    fn is_longer(&self, list: &List, index: usize) -> Result<bool, Stop> {
        if list.from.iter().any(|from| self.facts.is_sized(from)) {
            return Ok(true);
        }
        let index = u64::try_from(index).unwrap_or(u64::MAX);
        for element in list.behind(index) {
            if self.decide(Atom::Present(element))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a list or a map that is made is equal to another value.
    pub(super) fn equal_made(&mut self, left: &Abs, right: &Abs) -> Result<bool, Stop> {
        if hash(left) == hash(right) {
            return Ok(true);
        }
        match (left, right) {
            (Abs::List(one), Abs::List(other)) => {
                let pairs = one.items.iter().zip(&other.items);
                if one.items.len() != other.items.len() || one.is_open() || other.is_open() {
                    let can_be = (one.items.len() >= other.items.len() || one.is_open())
                        && (other.items.len() >= one.items.len() || other.is_open());
                    return if can_be { self.same(left, right) } else { Ok(false) };
                }
                for (one, other) in pairs {
                    if !self.equal(one, other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Abs::Map(one), Abs::Map(other)) if one.entries.len() != other.entries.len() => {
                Ok(false)
            }
            (made @ (Abs::List(_) | Abs::Map(_)), Abs::Place(path))
            | (Abs::Place(path), made @ (Abs::List(_) | Abs::Map(_))) => {
                let has_element = self.is_there(&join(path, Step::Element))?;
                match (has_element, is_empty(made)) {
                    (true, false) => self.same(left, right),
                    (has_element, is_empty) => Ok(!has_element && is_empty),
                }
            }
            _ => self.same(left, right),
        }
    }
}

fn is_empty(of: &Abs) -> bool {
    match of {
        Abs::List(list) => list.items.is_empty(),
        Abs::Map(map) => map.entries.is_empty(),
        _ => false,
    }
}

/// The values of optionals that have one.
fn unwrapped(list: &List) -> Option<Abs> {
    let values = list.items.iter().map(|item| match item {
        Abs::Optional(value) => Some(value.as_deref().cloned()),
        _ => None,
    });
    let values: Option<Vec<_>> = values.collect();
    values.map(|values| Abs::list(values.into_iter().flatten().collect(), &list.from))
}

/// The index that a literal is.
fn index(at: &Abs) -> Option<usize> {
    match at {
        // No list has an element before the first.
        Abs::Literal(Literal::Int(index)) => Some(usize::try_from(*index).unwrap_or(usize::MAX)),
        Abs::Literal(Literal::Uint(index)) => Some(usize::try_from(*index).unwrap_or(usize::MAX)),
        _ => None,
    }
}
