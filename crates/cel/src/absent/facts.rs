//! Answers to what a result depends on, in the order in which they were needed.

use std::collections::HashMap;

use super::path::{Path, Step};
use crate::ast::Literal;

/// A question with two answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    /// Something is there, if what is before it is there.
    Present(Path),
    /// Something that is there is null.
    Null(Path),
    /// Something has this value.
    Equal(Path, Text),
    /// A list, or one that is made of lists, is compared with a size, by how the comparison is made.
    Sized(Vec<Path>, u64),
    /// An expression is true, by how it is made.
    True(u64),
}

/// A literal as it is compared: texts and numbers are not the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    Text(Box<str>),
    Other(String),
}

/// What is assumed.
#[derive(Debug, Default)]
pub struct Facts {
    answers: HashMap<Atom, bool>,
    /// Values of what is equal to one.
    values: HashMap<Path, Literal>,
    /// Lists of which a size is assumed, and how often.
    sized: HashMap<Path, usize>,
    /// Maps and lists of which an element is assumed, and how many.
    inhabited: HashMap<Box<[Step]>, usize>,
}

/// Assumptions in their order, so that the last one can be turned.
#[derive(Debug, Default)]
pub(super) struct Trail {
    order: Vec<Atom>,
    facts: Facts,
}

impl Text {
    pub(super) fn of(literal: &Literal) -> Self {
        match literal {
            Literal::Text(text) => Self::Text(text.clone()),
            other => Self::Other(format!("{other:?}")),
        }
    }
}

impl Facts {
    pub(super) fn answer(&self, atom: &Atom) -> Option<bool> {
        self.answers.get(atom).copied()
    }

    pub(super) fn value(&self, path: &Path) -> Option<&Literal> {
        self.values.get(path)
    }

    /// The text that something is assumed to have.
    #[must_use]
    pub fn text(&self, path: &Path) -> Option<&str> {
        match self.values.get(path)? {
            Literal::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_sized(&self, list: &Path) -> bool {
        self.sized.get(list).is_some_and(|count| *count > 0)
    }

    /// Whether something in a map or list is assumed to be there.
    pub(super) fn is_inhabited(&self, of: &[Step]) -> bool {
        self.inhabited.get(of).is_some_and(|count| *count > 0)
    }

    fn set(&mut self, atom: &Atom, answer: Option<bool>) {
        if let Atom::Present(path) = atom
            && let Some((_, of)) = path.split_last()
        {
            let count = |answer: Option<bool>| usize::from(answer == Some(true));
            let before = count(self.answer(atom));
            let all = self.inhabited.entry(of.into()).or_default();
            *all = (*all + count(answer)).saturating_sub(before);
        }
        match (atom, answer) {
            (Atom::Equal(path, Text::Text(text)), Some(true)) => {
                self.values.insert(path.clone(), Literal::Text(text.clone()));
            }
            (Atom::Equal(path, _), _) => {
                self.values.remove(path);
            }
            (Atom::Sized(paths, _), Some(_)) if !self.answers.contains_key(atom) => {
                for path in paths {
                    *self.sized.entry(path.clone()).or_default() += 1;
                }
            }
            (Atom::Sized(paths, _), None) => {
                for path in paths {
                    if let Some(count) = self.sized.get_mut(path) {
                        *count = count.saturating_sub(1);
                    }
                }
            }
            _ => {}
        }
        match answer {
            Some(answer) => self.answers.insert(atom.clone(), answer),
            None => self.answers.remove(atom),
        };
    }
}

impl Trail {
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn assume(&mut self, atom: Atom, answer: bool) {
        self.facts.set(&atom, Some(answer));
        self.order.push(atom);
    }

    /// Goes on to the next answers, above those that stay; `false` if there are no more.
    pub(super) fn next(&mut self, floor: usize) -> bool {
        while self.order.len() > floor {
            let Some(last) = self.order.pop() else { return false };
            if self.facts.answer(&last) == Some(false) {
                self.assume(last, true);
                return true;
            }
            self.facts.set(&last, None);
        }
        false
    }

    /// Forgets the answers above those that stay.
    pub(super) fn cut(&mut self, floor: usize) {
        for atom in self.order.drain(floor..) {
            self.facts.set(&atom, None);
        }
    }
}
