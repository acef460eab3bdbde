//! Slices. They do not change: Go's template functions copy them, except for `sortAlpha`, which
//! here sorts a copy.

use std::{ops::Deref, sync::Arc};

use super::{Element, Value, nested::drop_all};

/// A slice of Go.
#[derive(Clone, Debug)]
pub struct List {
    element: Element,
    /// `None`: a nil slice.
    items: Option<Arc<Vec<Value>>>,
}

impl List {
    /// `[]interface {}`.
    #[must_use]
    pub fn new(items: Vec<Value>) -> Self {
        Self::of(Element::Any, items)
    }

    /// A slice of this type. All items must have it.
    #[must_use]
    pub fn of(element: Element, items: Vec<Value>) -> Self {
        Self { element, items: Some(Arc::new(items)) }
    }

    /// A nil slice of this type.
    #[must_use]
    pub fn nil(element: Element) -> Self {
        Self { element, items: None }
    }

    /// The type of its items.
    #[must_use]
    pub fn element(&self) -> Element {
        self.element
    }

    /// Whether it is a nil slice, which also has no items.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.items.is_none()
    }

    /// Where the items are: the same for clones.
    pub(crate) fn identity(&self) -> usize {
        self.as_ptr().addr()
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        self.items.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        drop_all(self.take());
    }
}

impl List {
    /// The items, if no other list has them.
    pub(super) fn take(&mut self) -> Vec<Value> {
        self.items.take().and_then(Arc::into_inner).unwrap_or_default()
    }
}
