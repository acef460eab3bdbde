//! Lists.

use std::rc::Rc;

use super::{Res, Val};
use crate::data::{Datum, Items, Place, Source};

/// A list of the data or of the expression, or one that was made.
#[derive(Debug, Clone)]
pub(crate) enum List<'d> {
    Data(&'d dyn Items),
    At(&'d dyn Source, Place),
    Made(Rc<Vec<Val<'d>>>),
}

impl<'d> List<'d> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Data(items) => items.count(),
            Self::At(source, at) => source.count(*at),
            Self::Made(items) => items.len(),
        }
    }

    /// An element; `None` beyond the last one.
    pub(crate) fn get(&self, index: usize) -> Option<Res<Val<'d>>> {
        match self {
            Self::Data(items) => items.get(index).map(Val::of),
            Self::At(source, at) => source.item(*at, index).map(Val::of),
            Self::Made(items) => items.get(index).cloned().map(Ok),
        }
    }

    pub(crate) fn iter(&self) -> Elements<'_, 'd> {
        // A source goes through its elements from the first one.
        let in_turn = match self {
            Self::At(source, at) => Some(source.items(*at)),
            Self::Data(_) | Self::Made(_) => None,
        };
        Elements { list: self, in_turn, index: 0 }
    }

    /// The elements of a list of the data in turn.
    pub(crate) fn data(&self) -> Option<Box<dyn Iterator<Item = Datum<'d>> + 'd>> {
        match *self {
            Self::At(source, at) => Some(source.items(at)),
            Self::Data(items) => Some(Box::new((0..items.count()).map_while(|at| items.get(at)))),
            Self::Made(_) => None,
        }
    }

    /// All elements.
    pub(crate) fn to_vec(&self) -> Res<Vec<Val<'d>>> {
        match self {
            Self::Data(_) | Self::At(..) => self.iter().collect(),
            Self::Made(items) => Ok(items.to_vec()),
        }
    }
}

/// The elements of a list.
pub(crate) struct Elements<'l, 'd> {
    list: &'l List<'d>,
    in_turn: Option<Box<dyn Iterator<Item = Datum<'d>> + 'd>>,
    index: usize,
}

impl<'d> Iterator for Elements<'_, 'd> {
    type Item = Res<Val<'d>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(in_turn) = &mut self.in_turn {
            return in_turn.next().map(Val::of);
        }
        let found = self.list.get(self.index)?;
        self.index += 1;
        Some(found)
    }
}
