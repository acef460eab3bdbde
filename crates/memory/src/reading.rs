//! What is read of a pod, and what a pod answers.

#![expect(clippy::disallowed_types, reason = "patches are trees")]

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use injectd_core::json::{Node, Shape};
use injectd_merge::schema::{Kind, Merge, POD, Struct};
use serde_json::Value as Json;

use crate::process::tree::{CONTAINERS, INIT_CONTAINERS};

/// The key by which the items of a merged list are distinguished here.
const NAME: &str = "name";

/// Bytes of a key. A pod with a longer one is not kept.
pub(super) const MAX_KEY_BYTES: usize = 64 << 10;

/// What is read of a value.
///
/// Of every value that is read at all, it is read whether it is there and whether it is null, an
/// object, a list or another value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Reading {
    /// All of it.
    pub(super) whole: bool,
    /// Of a list or an object, whether it is empty; all of another value.
    pub(super) truth: bool,
    /// Of an object, its members of these keys, in the order in which the object has them.
    pub(super) members: BTreeMap<Box<str>, Reading>,
    /// Of an object, all of the members whose keys have one of these texts in them.
    pub(super) alike: &'static [&'static str],
    /// Of a list, how many items it has and this of each.
    pub(super) items: Option<Box<Reading>>,
    /// Of a list of named objects, whether it is empty. All of the list, if an item has one of these
    /// names.
    pub(super) names: Option<BTreeSet<Box<str>>>,
}

/// A pod whose answers do not say enough: it is evaluated anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unusual;

impl Reading {
    /// Reads all of the value; what is read in it says nothing more.
    pub(super) fn read_whole(&mut self) {
        *self = Self { whole: true, ..Self::default() };
    }

    /// Reads whether the value is true.
    pub(super) fn read_truth(&mut self) {
        self.truth |= !self.whole;
    }

    /// Reads how many items a list has.
    pub(super) fn read_count(&mut self) {
        if !self.whole {
            self.item();
        }
    }

    /// The reading of a member.
    pub(super) fn member(&mut self, key: &str) -> &mut Self {
        if !self.members.contains_key(key) {
            self.members.insert(key.into(), Self::default());
        }
        self.members.get_mut(key).expect("the key must be there")
    }

    /// Whether it reads all of a member.
    pub(super) fn member_is_whole(&self, key: &str) -> bool {
        self.whole || self.members.get(key).is_some_and(|reading| reading.whole)
    }

    /// The reading of the items of a list.
    pub(super) fn item(&mut self) -> &mut Self {
        self.items.get_or_insert_default()
    }

    /// Reads all of these members.
    pub(super) fn read_members<'k>(&mut self, keys: impl IntoIterator<Item = &'k str>) {
        for key in keys {
            self.member(key).read_whole();
        }
    }

    /// Whether it reads all that another reading reads.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let member = |(key, reading)| self.members.get(key).is_some_and(|own| own.covers(reading));
        let items = |items| self.items.as_ref().is_some_and(|own| own.covers(items));
        let names =
            |names: &BTreeSet<_>| self.names.as_ref().is_some_and(|own| names.is_subset(own));
        if self.whole {
            return true;
        }
        !other.whole
            && (self.truth || !other.truth)
            && other.members.iter().all(member)
            && other.items.as_deref().is_none_or(items)
            && other.names.as_ref().is_none_or(names)
    }

    /// Reads what another reading reads.
    pub(super) fn add(&mut self, other: &Self) {
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
            self.names.get_or_insert_default().extend(names.iter().cloned());
        }
    }

    /// How many values and names it reads.
    pub(super) fn size(&self) -> usize {
        let members: usize = self.members.values().map(Self::size).sum();
        let items = self.items.as_ref().map_or(0, |items| items.size());
        1 + members + items + self.names.as_ref().map_or(0, BTreeSet::len)
    }

    /// About how many bytes of memory it takes, besides itself.
    pub(super) fn bytes(&self) -> usize {
        let members = self.members.iter();
        let members: usize = members.map(|(key, reading)| key.len() + reading.bytes()).sum();
        let items = |items: &Self| size_of::<Self>() + items.bytes();
        let names = |names: &BTreeSet<Box<str>>| {
            nodes::<Box<str>>(names.len()) + names.iter().map(|name| name.len()).sum::<usize>()
        };
        nodes::<(Box<str>, Self)>(self.members.len())
            + members
            + self.items.as_deref().map_or(0, items)
            + self.names.as_ref().map_or(0, names)
    }

    /// Reads what laying a patch over a pod reads of the pod. What a directive reads is not known.
    pub(super) fn add_patch(&mut self, patch: &Json) {
        self.add_merged(patch, POD.as_struct());
    }

    fn add_merged(&mut self, patch: &Json, of: Option<&'static Struct>) {
        let Json::Object(members) = patch else { return self.read_whole() };
        for (key, value) in members {
            let field = of.and_then(|of| of.field_ignoring_case(key));
            let name = field.map_or(&**key, |field| field.name);
            let own = self.member(name);
            match (value, field.map(|field| (&field.kind, field.merge))) {
                (Json::Array(items), Some((Kind::List(_), Merge::ByKey(NAME)))) => {
                    let names = items.iter().filter_map(|item| item.get(NAME)?.as_str());
                    let names: BTreeSet<Box<str>> = names.map(Into::into).collect();
                    own.names.get_or_insert_default().extend(names.iter().cloned());
                    if name == INIT_CONTAINERS {
                        // A container of the pod may be the user's version of an init container.
                        let containers = self.member(CONTAINERS);
                        containers.names.get_or_insert_default().extend(names);
                    }
                }
                (value, kind) => own.add_merged(value, kind.and_then(|(kind, _)| kind.as_struct())),
            }
        }
    }

    /// Writes what a value answers. Two values with the same answers are the same to whoever reads
    /// no more.
    ///
    /// # Errors
    /// The value has a shape that the reading does not foresee.
    pub(super) fn answer(&self, value: Node<'_, '_>, out: &mut Vec<u8>) -> Result<(), Unusual> {
        if out.len() > MAX_KEY_BYTES || self.whole && value.raw().len() > MAX_KEY_BYTES {
            return Err(Unusual);
        }
        if self.whole {
            write_text(out, value.raw());
            return Ok(());
        }
        match value.shape() {
            Shape::Null => out.push(b'n'),
            Shape::Object => self.answer_members(value, out)?,
            Shape::List => self.answer_items(value, out)?,
            _ if self.truth => write_text(out, value.raw()),
            Shape::Bool | Shape::Number | Shape::Text | Shape::Escaped => out.push(b's'),
        }
        Ok(())
    }

    fn answer_members(&self, value: Node<'_, '_>, out: &mut Vec<u8>) -> Result<(), Unusual> {
        out.push(b'{');
        if self.truth {
            out.push(if value.members().next().is_some() { b'+' } else { b'0' });
        }
        for (key, member) in value.members() {
            if self.alike.iter().any(|part| key.contains(part)) {
                write_text(out, key);
                write_text(out, member.raw());
            } else if let Some(reading) = self.members.get(key) {
                write_text(out, key);
                reading.answer(member, out)?;
            }
        }
        out.push(b'}');
        Ok(())
    }

    fn answer_items(&self, value: Node<'_, '_>, out: &mut Vec<u8>) -> Result<(), Unusual> {
        out.push(b'[');
        if self.truth {
            out.push(if value.items().next().is_some() { b'+' } else { b'0' });
        }
        if let Some(names) = &self.names {
            let found = names_of(value)?;
            if found.iter().any(|name| names.contains(&**name)) {
                write_text(out, value.raw());
                return Ok(());
            }
            out.push(if found.is_empty() { b'0' } else { b'+' });
        }
        if let Some(reading) = &self.items {
            for item in value.items() {
                reading.answer(item, out)?;
            }
        }
        out.push(b']');
        Ok(())
    }
}

/// About how many bytes a B-tree takes with so many entries. Its nodes have room for 11, and are half
/// full at least.
fn nodes<T>(count: usize) -> usize {
    count.div_ceil(6) * 11 * size_of::<T>()
}

/// The names of a list's items, sorted. The merge denies an item without a name, and moves items that
/// share one.
fn names_of<'a>(list: Node<'_, 'a>) -> Result<Vec<Cow<'a, str>>, Unusual> {
    let name = |item: Node<'_, 'a>| item.get(NAME).and_then(Node::text).ok_or(Unusual);
    let mut names = list.items().map(name).collect::<Result<Vec<_>, _>>()?;
    names.sort_unstable();
    if names.is_sorted_by(|name, next| name < next) { Ok(names) } else { Err(Unusual) }
}

/// A text with its length before it, so that texts after each other have one meaning.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'=');
    out.extend_from_slice(&text.len().to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
