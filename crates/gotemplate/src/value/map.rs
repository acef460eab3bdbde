//! Maps: those of the data, which do not change, and those of a template, which `set` changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use super::{Element, Value, nested::drop_all};
use crate::text::Text;

/// The entries of a map in the order of their keys, which is the order of `range`.
pub type Entries = BTreeMap<Text, Value>;

static EMPTY: LazyLock<Arc<Entries>> = LazyLock::new(Arc::default);

/// A map of Go with strings as keys. Clones are the same map.
#[derive(Clone, Debug)]
pub struct Map {
    key: &'static str,
    element: Element,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Nil,
    Frozen(Arc<Entries>),
    /// Who reads takes the entries of that moment, so that no lock is held meanwhile.
    Live(Arc<Mutex<Arc<Entries>>>),
}

impl Map {
    /// A `map[string]interface {}` that can change.
    #[must_use]
    pub fn new(entries: Entries) -> Self {
        let content = Content::Live(Arc::new(Mutex::new(Arc::new(entries))));
        Self { key: "string", element: Element::Any, content }
    }

    /// A `map[string]interface {}` of the data. A template that changes maps gets a copy of it.
    #[must_use]
    pub fn frozen(entries: Entries) -> Self {
        Self::of("string", Element::Any, entries)
    }

    /// A `map[string]string`.
    #[must_use]
    pub fn of_texts(texts: impl IntoIterator<Item = (Text, Text)>) -> Self {
        let entries = texts.into_iter().map(|(key, text)| (key, Value::Text(text))).collect();
        Self::of("string", Element::Text, entries)
    }

    /// A map of the data: the names of the type of its keys, the type of its values, the entries.
    #[must_use]
    pub fn of(key: &'static str, element: Element, entries: Entries) -> Self {
        Self { key, element, content: Content::Frozen(Arc::new(entries)) }
    }

    /// A nil map with strings as keys.
    #[must_use]
    pub fn nil(element: Element) -> Self {
        Self { key: "string", element, content: Content::Nil }
    }

    /// The type of its values.
    #[must_use]
    pub fn element(&self) -> Element {
        self.element
    }

    /// Whether its keys have the type `string` and no other name.
    #[must_use]
    pub fn has_plain_keys(&self) -> bool {
        self.key == "string"
    }

    pub(crate) fn type_name(&self) -> String {
        format!("map[{}]{}", self.key, self.element.name())
    }

    /// The name of the type of its keys.
    pub(crate) fn key_name(&self) -> &'static str {
        self.key
    }

    /// The entries at this moment.
    #[must_use]
    pub fn entries(&self) -> Arc<Entries> {
        match &self.content {
            Content::Nil => Arc::clone(&EMPTY),
            Content::Frozen(entries) => Arc::clone(entries),
            Content::Live(live) => Arc::clone(&live.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        match &self.content {
            Content::Frozen(entries) => entries.get(key).cloned(),
            _ => self.entries().get(key).cloned(),
        }
    }

    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is a nil map, which also has no entries.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        matches!(self.content, Content::Nil)
    }

    pub(crate) fn is_frozen(&self) -> bool {
        matches!(self.content, Content::Frozen(_))
    }

    /// Where the entries are: the same for clones, another for each map that lives.
    pub(crate) fn identity(&self) -> usize {
        match &self.content {
            Content::Nil => 0,
            Content::Frozen(entries) => Arc::as_ptr(entries).addr(),
            Content::Live(live) => Arc::as_ptr(live).addr(),
        }
    }

    /// Changes the entries.
    ///
    /// # Errors
    /// A nil map, one of the data, or a change that would put the map into itself. The texts are
    /// those of Go where it has one.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Entries)) -> Result<(), String> {
        match &self.content {
            Content::Nil => Err("assignment to entry in nil map".to_owned()),
            Content::Frozen(_) => Err("this map cannot be changed".to_owned()),
            Content::Live(live) => {
                let mut entries = live.lock().unwrap_or_else(PoisonError::into_inner);
                change(Arc::make_mut(&mut entries));
                Ok(())
            }
        }
    }

    /// Sets a key; see [`Map::change`]. Returns how many values it looked through.
    pub(crate) fn set(&self, key: Text, value: Value) -> Result<usize, String> {
        // Go allows it, and then prints until its stack is full.
        let Some(looked_through) = self.look_through(&value) else {
            return Err("a map cannot contain itself".to_owned());
        };
        self.change(|entries| drop(entries.insert(key, value)))?;
        Ok(looked_through)
    }

    /// The number of values in a value; `None` if the map is one of them.
    fn look_through(&self, value: &Value) -> Option<usize> {
        let mut seen = BTreeSet::new();
        let mut values = vec![value.clone()];
        let mut count = 0;
        while let Some(value) = values.pop() {
            count += 1;
            match &value {
                Value::Map(map) if map.identity() == self.identity() => return None,
                Value::Map(map) if seen.insert(map.identity()) => {
                    values.extend(map.entries().values().cloned());
                }
                Value::List(list) if seen.insert(list.identity()) => {
                    values.extend(list.iter().cloned());
                }
                _ => {}
            }
        }
        Some(count)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // In a loop: a value that is nested deeply would take the whole stack when it is dropped by
        // recursion.
        drop_all(self.take());
    }
}

impl Map {
    /// The values, if no other map has them.
    pub(super) fn take(&mut self) -> Vec<Value> {
        let entries = match std::mem::replace(&mut self.content, Content::Nil) {
            Content::Nil => return Vec::new(),
            Content::Frozen(entries) => Some(entries),
            Content::Live(live) => Arc::into_inner(live)
                .map(|live| live.into_inner().unwrap_or_else(PoisonError::into_inner)),
        };
        let entries = entries.and_then(Arc::into_inner).unwrap_or_default();
        entries.into_values().collect()
    }
}
