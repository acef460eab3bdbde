//! Merges two lists whose elements have a key.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    Base,
    arrange::{Placed, arrange},
    directives::{ListPatch, is_deletion, no_merge_key},
    fields::{ListType, Types},
    lists::Element,
    merge_maps, taken,
};
use crate::{
    error::MergeError,
    key::{Key, Positions},
    schema::Kind,
};

/// Go: the part of `mergeSlice` for objects.
pub(super) fn merge(
    base: Vec<Value>,
    patch: Vec<Value>,
    key: &'static str,
    list: ListType,
    reading: Base,
) -> Result<Vec<Element>, MergeError> {
    let keys = Keys::new(key, list, reading);
    let patch = ListPatch::new(patch, key)?;
    let mut merging = Merging::new(&keys, base, &patch)?;
    if patch.replaces {
        merging.elements = patch.elements.into_iter().map(Element::of_patch).collect();
        merging.index(&keys)?;
    } else {
        for element in patch.elements {
            merging.add(&keys, element, Types(list.element), reading)?;
        }
    }
    let place = |item: Element| {
        let key = keys.required(&item.value, item.is_new)?;
        let in_base = merging.first.get(&key).filter(|at| *at < merging.base_length);
        let is_deletion = is_deletion(&item.value);
        Ok(Placed { in_patch: merging.in_patch.get(&key), in_base, is_deletion, item })
    };
    let placed = merging.elements.into_iter().map(place).collect::<Result<_, _>>()?;
    Ok(arrange(placed))
}

/// Reads the keys of elements.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) name: &'static str,
    in_base: KeysInBase,
}

/// How keys of the base are read.
#[derive(Debug)]
enum KeysInBase {
    AsTheyAre,
    /// Go writes an empty key, also where there was none.
    Written(Key),
    /// Go does not write an empty key.
    Omitted(Key),
}

impl Keys {
    pub(super) fn new(name: &'static str, list: ListType, reading: Base) -> Self {
        let field = Types(list.element).find(name).filter(|_| reading == Base::Pod);
        let empty =
            field.and_then(|field| Some((field, Key::new(&taken::zero(&field.kind)).ok()?)));
        let in_base = match empty {
            None => KeysInBase::AsTheyAre,
            Some((field, empty)) if field.written => KeysInBase::Written(empty),
            Some((_, empty)) => KeysInBase::Omitted(empty),
        };
        Self { name, in_base }
    }

    fn get(&self, element: &Value, is_new: bool) -> Result<Option<Key>, MergeError> {
        let key = element.get(self.name);
        if is_new {
            return key.map(Key::new).transpose();
        }
        match &self.in_base {
            KeysInBase::AsTheyAre => key.map(Key::new).transpose(),
            KeysInBase::Written(empty) => {
                key.filter(|key| !key.is_null()).map_or(Ok(empty.clone()), Key::new).map(Some)
            }
            KeysInBase::Omitted(empty) => {
                let key = key.filter(|key| !key.is_null()).map(Key::new).transpose()?;
                Ok(key.filter(|key| key != empty))
            }
        }
    }

    /// The key of an element, which must have one.
    pub(super) fn required(&self, element: &Value, is_new: bool) -> Result<Key, MergeError> {
        self.get(element, is_new)?.ok_or_else(|| no_merge_key(element, self.name))
    }
}

/// A list while elements of the patch are merged into it.
#[derive(Debug, Default)]
struct Merging {
    elements: Vec<Element>,
    /// How many elements come from the base.
    base_length: usize,
    /// The first element of each key.
    first: Positions,
    /// The first element of each key in the patch.
    in_patch: Positions,
    patch_length: usize,
}

impl Merging {
    fn new(keys: &Keys, base: Vec<Value>, patch: &ListPatch) -> Result<Self, MergeError> {
        let mut merging = Self::default();
        for value in base {
            // The index reads the keys, too.
            let key = if patch.deleted.is_empty() { None } else { keys.get(&value, false)? };
            if key.is_none_or(|key| !patch.deleted.contains(&key)) {
                merging.elements.push(Element::of_base(value));
            }
        }
        merging.index(keys)?;
        Ok(merging)
    }

    /// Makes the elements the base.
    fn index(&mut self, keys: &Keys) -> Result<(), MergeError> {
        self.first = Positions::default();
        self.base_length = self.elements.len();
        for (at, element) in self.elements.iter().enumerate() {
            if let Some(key) = keys.get(&element.value, element.is_new)? {
                self.first.add(key, at);
            }
        }
        Ok(())
    }

    /// Merges an element of the patch with the first of its key, or appends it.
    ///
    /// Go: `mergeSliceWithoutSpecialElements`.
    fn add(
        &mut self,
        keys: &Keys,
        value: Value,
        types: Types,
        reading: Base,
    ) -> Result<(), MergeError> {
        let key = keys.required(&value, true)?;
        self.in_patch.add(key.clone(), self.patch_length);
        self.patch_length += 1;
        let Some(same) = self.first.get(&key).and_then(|at| self.elements.get_mut(at)) else {
            self.first.add(key, self.elements.len());
            self.elements.push(Element::of_patch(value));
            return Ok(());
        };
        // A null in a list of the Pod is an empty element.
        if same.value.is_null() {
            same.value = Value::Object(Map::new());
        }
        // What comes from the patch is JSON until the whole list is merged.
        let reading = if same.is_new { Base::Json } else { reading };
        match (&mut same.value, value) {
            (Value::Object(base), Value::Object(patch)) => merge_maps(base, patch, types, reading),
            _ => Ok(()),
        }
    }
}

/// Whether a list of a patch changes nothing in the list of the base: the base has all of its elements,
/// in their order, and they hold only texts.
pub(super) fn repeats(base: &[Value], patch: &[Value], key: &str, element: &Kind) -> bool {
    let Some(names) = patch.iter().map(|patch| text_of(patch, key)).collect::<Option<HashSet<_>>>()
    else {
        return false;
    };
    let mut rest = patch.iter();
    let mut seen = HashSet::with_capacity(base.len());
    // An element may move that shares its key with another, or that is to be deleted.
    let own = |value| text_of(value, key).filter(|_| !is_deletion(value));
    let stays = |value| match own(value).filter(|name| seen.insert(*name)) {
        Some(name) if names.contains(name) => {
            rest.next().is_some_and(|patch| repeats_texts(value, patch, element))
        }
        name => name.is_some(),
    };
    names.len() == patch.len() && base.iter().all(stays) && rest.next().is_none()
}

fn text_of<'v>(element: &'v Value, key: &str) -> Option<&'v str> {
    element.get(key).and_then(Value::as_str)
}

fn repeats_texts(base: &Value, patch: &Value, kind: &Kind) -> bool {
    let (Value::Object(base), Value::Object(patch)) = (base, patch) else { return false };
    let Some(fields) = kind.as_struct() else { return false };
    patch.iter().all(|(key, value)| {
        value.is_string() && base.get(key) == Some(value) && fields.field(key).is_some()
    })
}
