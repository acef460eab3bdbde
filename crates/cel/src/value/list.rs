//! Lists.

use std::rc::Rc;

use super::{Res, Val};
use crate::data::{Items, Place, Source};

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

    pub(crate) fn iter(&self) -> impl Iterator<Item = Res<Val<'d>>> {
        // A source goes through its elements from the first one.
        let (in_turn, count) = match self {
            Self::At(source, at) => (Some(source.items(*at).map(Val::of)), 0),
            Self::Data(_) | Self::Made(_) => (None, self.len()),
        };
        let by_index = (0..count).map_while(|index| self.get(index));
        in_turn.into_iter().flatten().chain(by_index)
    }

    /// All elements.
    pub(crate) fn to_vec(&self) -> Res<Vec<Val<'d>>> {
        match self {
            Self::Data(_) | Self::At(..) => self.iter().collect(),
            Self::Made(items) => Ok(items.to_vec()),
        }
    }
}
