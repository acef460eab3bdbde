//! What is read of an object, and what an object answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use injectd_core::json::Wanted;

mod questions;

pub(crate) use questions::Questions;

/// The key of an item's name.
const NAME: &str = "name";

/// Bytes of a key. The answer for an object with a longer one is not kept: the keys of most pods have a
/// few kilobytes.
pub(crate) const MAX_KEY_BYTES: usize = 64 << 10;

/// What is read of a value.
///
/// Of every value that is read at all, it is read whether it is there and whether it is null, an
/// object, a list or another value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Reading {
    /// All of it.
    whole: bool,
    /// Of a list or an object, whether it is empty; all of another value.
    truth: bool,
    /// Of an object, its members of these keys, in the order in which the object has them.
    // Sorted, so that readings can be hashed: equal ones are kept once, whichever evaluation read
    // first.
    members: BTreeMap<Box<str>, Reading>,
    /// Of an object, all of the members whose keys have one of these texts in them.
    alike: &'static [&'static str],
    /// Of a list, how many items it has and this of each.
    items: Option<Box<Reading>>,
    /// Of a list of named objects, whether it is empty. All of the list, if an item has one of these
    /// names.
    // Shared with the questions: there may be many.
    names: Option<Arc<BTreeSet<Box<str>>>>,
}

/// An object whose answers do not say enough: it is evaluated anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unusual;

impl Reading {
    /// Reads all of the value; what is read in it says nothing more.
    pub fn read_whole(&mut self) {
        *self = Self { whole: true, ..Self::default() };
    }

    /// Reads whether the value is true.
    pub fn read_truth(&mut self) {
        // A reading has one form only, since readings are compared: a whole value needs no flag.
        self.truth |= !self.whole;
    }

    /// Reads how many items a list has.
    pub fn read_count(&mut self) {
        if !self.whole {
            self.item();
        }
    }

    /// The reading of a member.
    #[expect(clippy::missing_panics_doc, reason = "the key is there")]
    pub fn member(&mut self, key: &str) -> &mut Self {
        if !self.members.contains_key(key) {
            self.members.insert(key.into(), Self::default());
        }
        self.members.get_mut(key).expect("the key must be there")
    }

    /// Whether it reads all of a member.
    #[must_use]
    pub fn member_is_whole(&self, key: &str) -> bool {
        self.whole || self.members.get(key).is_some_and(|reading| reading.whole)
    }

    /// The reading of the items of a list.
    pub fn item(&mut self) -> &mut Self {
        self.items.get_or_insert_default()
    }

    /// Whether it reads all of the value.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// What it reads of a member, if it reads that at all.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.members.get(key)
    }

    /// The members that it reads, by their keys.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.members.iter().map(|(key, reading)| (&**key, reading))
    }

    /// What it reads of each item of a list, if it reads the items.
    #[must_use]
    pub fn items(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// Wants the parts of a text that its answers need. All of a value is its text, without an index of what
    /// is in it.
    pub fn want(&self, wanted: &mut Wanted) {
        for (key, reading) in &self.members {
            reading.want(wanted.member(key));
        }
        if !self.alike.is_empty() {
            wanted.each();
        }
        if self.names.is_some() {
            wanted.each().member(NAME);
        }
        if let Some(items) = &self.items {
            items.want(wanted.each());
        }
    }

    /// Reads all of the members whose keys have one of these texts in them.
    pub fn read_alike(&mut self, parts: &'static [&'static str]) {
        self.alike = parts;
    }

    /// Reads whether a list has items, and all of it if one of them has one of these names.
    pub fn read_names(&mut self, names: impl IntoIterator<Item = Box<str>>) {
        Arc::make_mut(self.names.get_or_insert_default()).extend(names);
    }

    /// Reads all of these members.
    pub fn read_members<'k>(&mut self, keys: impl IntoIterator<Item = &'k str>) {
        for key in keys {
            self.member(key).read_whole();
        }
    }

    /// Whether it reads all that another reading reads.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let member = |(key, reading)| self.members.get(key).is_some_and(|own| own.covers(reading));
        let items = |items| self.items.as_ref().is_some_and(|own| own.covers(items));
        let names =
            |names: &Arc<BTreeSet<_>>| self.names.as_ref().is_some_and(|own| names.is_subset(own));
        if self.whole {
            return true;
        }
        // `alike` is not compared: only the reading of every object has it, and each other one
        // begins with a copy of that.
        !other.whole
            && (self.truth || !other.truth)
            && other.members.iter().all(member)
            && other.items.as_deref().is_none_or(items)
            && other.names.as_ref().is_none_or(names)
    }

    /// Reads what another reading reads.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.whole || other.whole {
            return self.read_whole();
        }
        self.truth |= other.truth;
        for (key, reading) in &other.members {
            self.member(key).add(reading);
        }
        if let Some(items) = &other.items {
            self.item().add(items);
        }
        if let Some(names) = &other.names {
            Arc::make_mut(self.names.get_or_insert_default()).extend(names.iter().cloned());
        }
    }

    /// How many values and names it reads.
    pub(crate) fn size(&self) -> usize {
        let members: usize = self.members.values().map(Self::size).sum();
        let items = self.items.as_ref().map_or(0, |items| items.size());
        1 + members + items + self.names.as_ref().map_or(0, |names| names.len())
    }

    /// About how many bytes of memory it takes, besides itself.
    pub(crate) fn bytes(&self) -> usize {
        let members = self.members.iter();
        let members: usize = members.map(|(key, reading)| key.len() + reading.bytes()).sum();
        let items = |items: &Self| size_of::<Self>() + items.bytes();
        let names = |names: &Arc<BTreeSet<Box<str>>>| {
            nodes::<Box<str>>(names.len()) + names.iter().map(|name| name.len()).sum::<usize>()
        };
        nodes::<(Box<str>, Self)>(self.members.len())
            + members
            + self.items.as_deref().map_or(0, items)
            + self.names.as_ref().map_or(0, names)
    }
}

/// About how many bytes a B-tree takes with so many entries. Its nodes have room for 11, and are half
/// full at least.
fn nodes<T>(count: usize) -> usize {
    count.div_ceil(6) * 11 * size_of::<T>()
}

/// A text with its length before it, so that texts after each other have one meaning.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    let mut head = [b'='; 9];
    head[1..].copy_from_slice(&text.len().to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use injectd_core::json::Tape;

    use super::*;

    fn answer(reading: &Reading, text: &str) -> Result<Vec<u8>, Unusual> {
        let (mut out, mut wanted) = (Vec::new(), Wanted::default());
        let questions = Questions::of(reading);
        let answered = questions.answer(Tape::of(text).expect("JSON").root(), &mut out);
        reading.want(&mut wanted);
        let (mut of_parts, parts) = (Vec::new(), wanted.parts());
        let tape = Tape::parts(text, &parts).expect("JSON");
        assert_eq!(questions.answer(tape.root(), &mut of_parts), answered);
        assert_eq!(of_parts, out, "an index of parts has the same answers");
        answered.map(|()| out)
    }

    fn is_alike(reading: &Reading, one: &str, other: &str) -> bool {
        let answer = |text| answer(reading, text).expect("an answer");
        answer(one) == answer(other)
    }

    #[test]
    fn texts_after_each_other_have_one_meaning() {
        let written = |texts: &[&str]| {
            let mut out = Vec::new();
            for text in texts {
                write_text(&mut out, text);
            }
            out
        };
        assert_ne!(written(&["a", "bc"]), written(&["ab", "c"]));
        assert_ne!(written(&["a="]), written(&["a", ""]));
    }

    #[test]
    fn values_differ_where_they_are_read_only() {
        let mut reading = Reading::default();
        reading.read_members(["a"]);
        reading.member("b").read_truth();
        reading.member("c").read_count();
        reading.read_alike(&["x"]);
        let value = r#"{"a":1,"b":[1],"c":[1],"d":1,"xy":1}"#;
        for alike in [
            r#"{"a":1,"b":[2,3],"c":[2],"d":2,"xy":1}"#,
            r#"{"a":1,"b":[2],"c":[5],"xy":1,"e":{}}"#,
        ] {
            assert!(is_alike(&reading, value, alike), "{alike}");
        }
        for other in [
            r#"{"a":2,"b":[1],"c":[1],"xy":1}"#,
            r#"{"a":1,"b":[],"c":[1],"xy":1}"#,
            r#"{"a":1,"b":[1],"c":[1,2],"xy":1}"#,
            r#"{"a":1,"b":[1],"c":[1],"xy":2}"#,
            r#"{"a":1,"b":[1],"c":null,"xy":1}"#,
            r#"{"b":[1],"a":1,"c":[1],"xy":1}"#,
        ] {
            assert!(!is_alike(&reading, value, other), "{other}");
        }
    }

    #[test]
    fn a_list_with_a_name_that_is_read_is_read_whole() {
        let mut reading = Reading::default();
        reading.read_names(["a".into()]);
        let list = |name: &str, value: u8| format!(r#"[{{"name":"{name}","v":{value}}}]"#);
        assert!(is_alike(&reading, &list("b", 1), &list("c", 2)));
        assert!(!is_alike(&reading, &list("b", 1), &list("a", 1)));
        assert!(!is_alike(&reading, &list("a", 1), &list("a", 2)));
        assert!(!is_alike(&reading, &list("b", 1), "[]"));
        for unusual in [r#"[{"v":1}]"#, r#"[{"name":"b"},{"name":"b"}]"#] {
            assert_eq!(answer(&reading, unusual), Err(Unusual), "{unusual}");
        }
    }

    #[test]
    fn values_of_other_shapes_do_not_share_an_answer() {
        let mut reading = Reading::default();
        reading.member("list").item().read_members(["a"]);
        assert_eq!(answer(&reading, r#"{"list":{"a":1}}"#), Err(Unusual));
        assert!(!is_alike(&reading, r#"{"list":"a"}"#, r#"{"list":"b"}"#));
        assert!(!is_alike(&reading, r#"{"list":[1]}"#, r#"{"list":[[]]}"#));
        assert_eq!(answer(&reading, r#"{"l\u0069st":[]}"#), Err(Unusual), "an escape");
    }

    #[test]
    fn a_reading_covers_what_was_added_to_it() {
        let (mut one, mut other) = (Reading::default(), Reading::default());
        one.member("a").item().read_members(["b"]);
        other.member("a").read_truth();
        other.member("c").read_names(["d".into()]);
        assert!(!one.covers(&other) && !other.covers(&one));
        let mut both = one.clone();
        both.add(&other);
        assert!(both.covers(&one) && both.covers(&other) && !one.covers(&both));
        assert_eq!((one.size(), both.size()), (4, 6));
        both.read_whole();
        assert!(both.covers(&one) && !one.covers(&both));
    }
}
