//! Lists that are sorted, without repetitions, and hardly longer than what is in them.

use std::ops::Deref;

/// A sorted list in which each value is once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sorted<T>(Vec<T>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for Sorted<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Ord + Clone> Sorted<T> {
    /// Adds a value.
    pub(super) fn add(&mut self, value: T) {
        if let Err(at) = self.0.binary_search(&value) {
            insert(&mut self.0, at, value);
        }
    }

    /// Adds the values of another list.
    pub(super) fn extend(&mut self, others: &[T]) {
        let missing = others.iter().filter(|value| self.0.binary_search(value).is_err());
        let missing: Vec<_> = missing.cloned().collect();
        if !missing.is_empty() {
            self.0.reserve_exact(missing.len());
            self.0.extend(missing);
            // Two sorted lists: linear.
            self.0.sort();
        }
    }
}

/// Inserts a value. Short lists have no room for more, long ones room for a quarter.
pub(super) fn insert<T>(list: &mut Vec<T>, at: usize, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(1 + list.len() / 4);
    }
    list.insert(at, value);
}
