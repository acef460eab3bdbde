//! Lists of views.

use std::ops::Deref;

use smallvec::SmallVec;

use crate::json::{Read, ReadError, Reader};

/// Capacity of the first allocation of a list: most pods have fewer containers.
const HEAP_ITEMS: usize = 4;
/// Maximum length of a list: far more than any pod has, and far less than exhausts the memory.
const MAX_ITEMS: usize = 10_000;

/// A list that stores up to `N` items inline. Large items should use 0: a view is moved several
/// times while it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const N: usize>(Option<SmallVec<[T; N]>>);

// === impl List ===

impl<T, const N: usize> List<T, N> {
    /// Whether the list is present, empty or not.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.0.is_some()
    }

    /// The items.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        self
    }
}

impl<T, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<T: Default, const N: usize> List<T, N> {
    /// Reads the list: `read` gets the index of each item and reads the item.
    pub(crate) fn read_items<'a>(
        &mut self,
        reader: &mut Reader<'a>,
        mut read: impl FnMut(&mut T, usize, &mut Reader<'a>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut items = SmallVec::<[T; N]>::new();
        let is_there = reader.list(|reader| {
            let index = items.len();
            if index == MAX_ITEMS {
                return Err(reader.mismatch("a list of 10000 items at most"));
            }
            if index == items.capacity() {
                items.reserve(HEAP_ITEMS.max(index));
            }
            items.push(T::default());
            items.last_mut().map_or(Ok(()), |item| read(item, index, reader))
        })?;
        self.0 = is_there.then_some(items);
        Ok(())
    }
}

impl<'a, T: Read<'a>, const N: usize> Read<'a> for List<T, N> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        self.read_items(reader, |item, _, reader| item.read(reader))
    }
}
