//! The values of an object that an evaluation has seen, and what it has read of each.

use std::collections::BTreeMap;

use crate::reading::Reading;

/// The values, each with a number, from 0. `K` is what the evaluator knows of a value, such as its type.
#[derive(Debug)]
pub struct Places<K>(Vec<Place<K>>);

/// A value of the object, and what was read of it.
#[derive(Debug)]
pub struct Place<K> {
    /// What the evaluator knows of it.
    pub kind: K,
    whole: bool,
    truth: bool,
    count: bool,
    /// Its members by the names that the evaluator has for them.
    members: BTreeMap<Box<str>, Member>,
    /// The place of all items of a list.
    item: Option<usize>,
}

/// A member: its key in JSON, and its place.
#[derive(Debug)]
struct Member {
    key: Box<str>,
    place: usize,
}

impl<K> Place<K> {
    /// All of the value is read.
    pub fn read_whole(&mut self) {
        self.whole = true;
    }

    /// It is read whether a list or an object is empty; all of another value.
    pub fn read_truth(&mut self) {
        self.truth = true;
    }

    /// It is read how many items a list has.
    pub fn read_count(&mut self) {
        self.count = true;
    }

    /// Whether all of the value is read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The places of its members, by their keys in JSON.
    pub fn members(&self) -> impl Iterator<Item = (&str, usize)> {
        self.members.values().map(|Member { key, place }| (&**key, *place))
    }

    /// The place of all items of a list, if it was seen.
    #[must_use]
    pub fn item(&self) -> Option<usize> {
        self.item
    }
}

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K> Places<K> {
    /// A new place that is in no other.
    pub fn add(&mut self, kind: K) -> usize {
        let members = BTreeMap::new();
        self.0.push(Place { kind, whole: false, truth: false, count: false, members, item: None });
        self.0.len() - 1
    }

    /// The place with a number.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&Place<K>> {
        self.0.get(place)
    }

    /// The same, to record what is read of it.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut Place<K>> {
        self.0.get_mut(place)
    }

    /// The place of a member, if it was seen.
    #[must_use]
    pub fn member(&self, of: usize, name: &str) -> Option<usize> {
        Some(self.get(of)?.members.get(name)?.place)
    }

    /// The place of a member that was not seen, with its key in JSON.
    pub fn add_member(&mut self, of: usize, name: &str, key: Box<str>, kind: K) -> usize {
        let place = self.add(kind);
        if let Some(of) = self.get_mut(of) {
            of.members.insert(name.into(), Member { key, place });
        }
        place
    }

    /// The place of all items of a list.
    pub fn item(&mut self, of: usize, kind: K) -> usize {
        // All items share one place: a record with one for each item would grow with the object,
        // and would serve only objects with as many items.
        if let Some(known) = self.get(of).and_then(|place| place.item) {
            return known;
        }
        let item = self.add(kind);
        if let Some(of) = self.get_mut(of) {
            of.item = Some(item);
        }
        item
    }

    /// Adds what was read of a place, and of those in it.
    pub fn add_to(&self, place: usize, reading: &mut Reading) {
        let Some(place) = self.get(place) else { return };
        if place.whole || reading.is_whole() {
            // Whatever was read inside is in the whole value: to list it would only make keys
            // longer.
            return reading.read_whole();
        }
        if place.truth {
            reading.read_truth();
        }
        if place.count {
            reading.read_count();
        }
        for Member { key, place } in place.members.values() {
            self.add_to(*place, reading.member(key));
        }
        if let Some(item) = place.item {
            self.add_to(item, reading.item());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_of_places_is_read_of_the_object() {
        let mut places = Places::default();
        let root = places.add("root");
        let list = places.add_member(root, "Items", "items".into(), "list");
        let item = places.item(list, "item");
        assert_eq!((places.item(list, "other"), places.member(root, "Items")), (item, Some(list)));
        places.get_mut(item).expect("an item").read_whole();
        places.get_mut(list).expect("a list").read_count();
        let mut reading = Reading::default();
        places.add_to(root, &mut reading);
        let mut expected = Reading::default();
        expected.member("items").item().read_whole();
        assert_eq!(reading, expected);
        places.get_mut(root).expect("a root").read_whole();
        places.add_to(root, &mut reading);
        assert!(reading.is_whole());
    }
}
