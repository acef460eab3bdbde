//! Lists.

use std::rc::Rc;

use super::{Res, Val};
use crate::data::Items;

/// A list of the data or of the expression, or one that was made.
#[derive(Debug, Clone)]
pub(crate) enum List<'d> {
    Data(&'d dyn Items),
    Made(Rc<Vec<Val<'d>>>),
}

impl<'d> List<'d> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Data(items) => items.count(),
            Self::Made(items) => items.len(),
        }
    }

    /// An element; `None` beyond the last one.
    pub(crate) fn get(&self, index: usize) -> Option<Res<Val<'d>>> {
        match self {
            Self::Data(items) => items.get(index).map(Val::of),
            Self::Made(items) => items.get(index).cloned().map(Ok),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Res<Val<'d>>> {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// All elements.
    pub(crate) fn to_vec(&self) -> Res<Vec<Val<'d>>> {
        match self {
            Self::Data(_) => self.iter().collect(),
            Self::Made(items) => Ok(items.to_vec()),
        }
    }
}
