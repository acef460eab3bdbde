//! What is known of a value.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    Lack,
    facts::{Atom, Text},
    path::{Path, Step, join},
};
use crate::ast::{Id, Literal};

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Abs {
    Literal(Literal),
    /// Something that is there.
    Place(Path),
    /// Something that is null.
    Null(Path),
    /// The type of null.
    NullType,
    /// A key of the map, or an element of the list.
    Each(Path),
    /// The number of elements.
    Size(Path),
    /// The number of elements of a list that is made of others: as many as are known, or more.
    Least(Arc<List>),
    /// A list that the condition makes.
    List(Arc<List>),
    /// A map that the condition makes.
    Map(Arc<Map>),
    Optional(Option<Arc<Self>>),
    /// Anything, by how it is made.
    Other(u64),
}

/// Elements, and how they are made.
#[derive(Debug)]
pub(super) struct List {
    pub(super) items: Vec<Abs>,
    /// Lists and maps of which it is made, if it may have more elements because they may.
    pub(super) from: Vec<Path>,
    pub(super) made: u64,
}

/// Entries, and how they are made.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) entries: Vec<(Abs, Abs)>,
    made: u64,
}

/// Why an evaluation does not go on.
#[derive(Debug, Clone)]
pub(super) enum Stop {
    /// It depends on this.
    Choice(Atom),
    /// It fails, at this node.
    Fails(Lack, Id),
    /// Too much was evaluated.
    Work,
}

pub(super) type Res = Result<Abs, Stop>;

impl List {
    /// Whether it may have more elements.
    pub(super) fn is_open(&self) -> bool {
        !self.from.is_empty()
    }

    /// The elements of other lists of which one must be there if an element behind those that are known
    /// is.
    pub(super) fn behind(&self, index: u64) -> impl Iterator<Item = Path> {
        let known = u64::try_from(self.items.len()).unwrap_or(u64::MAX);
        let step = Step::Index(index.saturating_sub(known).saturating_add(1));
        self.from.iter().map(move |from| join(from, step.clone()))
    }
}

impl Abs {
    pub(super) fn list(items: Vec<Self>, from: &[Path]) -> Self {
        // None is none, however long the other list is.
        let from = if items.is_empty() { Vec::new() } else { from.to_vec() };
        let made = made(("list", &from, items.iter().map(hash).collect::<Vec<_>>()));
        Self::List(Arc::new(List { items, from, made }))
    }

    pub(super) fn map(entries: Vec<(Self, Self)>) -> Self {
        let of = entries.iter().map(|(key, value)| (hash(key), hash(value)));
        let made = made(("map", of.collect::<Vec<_>>()));
        Self::Map(Arc::new(Map { entries, made }))
    }

    pub(super) fn int(number: usize) -> Self {
        Self::Literal(Literal::Int(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Literal(Literal::Text(text.into()))
    }
}

/// How something is made, in short: two that differ have the same one by accident only.
pub(super) fn made(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// How a value is made.
pub(super) fn hash(value: &Abs) -> u64 {
    match value {
        Abs::Literal(literal) => made(("literal", Text::of(literal))),
        Abs::Place(path) => made(("place", path)),
        Abs::Null(path) => made(("null", path)),
        Abs::NullType => made("null type"),
        Abs::Each(path) => made(("each", path)),
        Abs::Size(path) => made(("size", path)),
        Abs::Least(list) => made(("least", list.made)),
        Abs::List(list) => list.made,
        Abs::Map(map) => map.made,
        Abs::Optional(value) => made(("optional", value.as_deref().map(hash))),
        Abs::Other(made) => *made,
    }
}

/// The step that a key makes.
pub(super) fn key(key: &Abs) -> Step {
    match key {
        Abs::Literal(Literal::Text(text)) => Step::Field((&**text).into()),
        Abs::Literal(Literal::Int(0) | Literal::Uint(0)) => Step::Element,
        Abs::Literal(Literal::Int(index)) => Step::Index(index.unsigned_abs()),
        Abs::Literal(Literal::Uint(index)) => Step::Index(*index),
        other => Step::Any(hash(other)),
    }
}
