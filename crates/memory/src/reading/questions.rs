//! What is asked of an object: a reading, compiled once for many objects.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use injectd_core::json::{Node, Shape};
use memchr::memmem::Finder;

use super::{MAX_KEY_BYTES, NAME, Reading, Unusual, write_text};

/// The questions of a reading.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    whole: bool,
    truth: bool,
    members: Members,
    alike: Box<[Finder<'static>]>,
    items: Option<Box<Questions>>,
    names: Option<Arc<BTreeSet<Box<str>>>>,
}

/// Questions by the key of a member. An object has few keys that are read, and many others.
#[derive(Debug, Default)]
struct Members {
    /// A bit for each length of a key, modulo the number of bits: most other keys have other lengths.
    lengths: u64,
    /// The shorter keys first; in the order of texts among those of one length.
    entries: Box<[(Box<str>, Questions)]>,
}

// === impl Questions ===

impl Questions {
    /// The questions of a reading.
    pub(crate) fn of(reading: &Reading) -> Self {
        let Reading { whole, truth, .. } = *reading;
        Self {
            whole,
            truth,
            members: Members::of(reading.members()),
            alike: reading.alike.iter().map(Finder::new).collect(),
            items: reading.items().map(|items| Box::new(Self::of(items))),
            names: reading.names.clone(),
        }
    }

    /// About how many bytes of memory they take, besides themselves and what they share with the reading.
    pub(crate) fn bytes(&self) -> usize {
        let members = self.members.entries.iter();
        let member = |(key, questions): &(Box<str>, Self)| key.len() + questions.bytes();
        let items = |items: &Self| size_of::<Self>() + items.bytes();
        size_of_val(&*self.members.entries)
            + members.map(member).sum::<usize>()
            + self.items.as_deref().map_or(0, items)
    }

    /// Writes what a value answers. Two values with the same answers are the same to an evaluation
    /// that reads no more.
    ///
    /// # Errors
    /// The value has a shape that the reading does not foresee.
    pub(crate) fn answer(&self, value: Node<'_, '_>, out: &mut Vec<u8>) -> Result<(), Unusual> {
        if out.len() > MAX_KEY_BYTES {
            return Err(Unusual);
        }
        if self.whole {
            return write_bounded(out, value.raw());
        }
        match value.shape() {
            Shape::Null => out.push(b'n'),
            // An evaluation that goes through the items of a list goes through the keys of an object.
            Shape::Object if self.items.is_some() => return Err(Unusual),
            Shape::Object => self.answer_members(value, out)?,
            Shape::List => self.answer_items(value, out)?,
            _ if self.truth || self.items.is_some() => return write_bounded(out, value.raw()),
            Shape::Bool | Shape::Number | Shape::Text | Shape::Escaped => out.push(b's'),
        }
        Ok(())
    }

    /// Whether a key has one of the texts in it for which a member is read.
    fn is_alike(&self, key: &str) -> bool {
        self.alike.iter().any(|part| part.find(key.as_bytes()).is_some())
    }

    fn answer_members(&self, value: Node<'_, '_>, out: &mut Vec<u8>) -> Result<(), Unusual> {
        out.push(b'{');
        if self.truth {
            out.push(if value.is_empty() { b'0' } else { b'+' });
        }
        for (key, member) in value.indexed() {
            if key.shape() == Shape::Escaped {
                return Err(Unusual);
            }
            let key = key.written();
            if self.is_alike(key) {
                write_bounded(out, key)?;
                write_bounded(out, member.raw())?;
            } else if let Some(questions) = self.members.get(key) {
                write_bounded(out, key)?;
                questions.answer(member, out)?;
            }
        }
        out.push(b'}');
        Ok(())
    }

    fn answer_items(&self, value: Node<'_, '_>, out: &mut Vec<u8>) -> Result<(), Unusual> {
        out.push(b'[');
        if self.truth {
            out.push(if value.is_empty() { b'0' } else { b'+' });
        }
        // No evaluation sees items that are not indexed.
        if (self.names.is_some() || self.items.is_some()) && !value.is_complete() {
            return Err(Unusual);
        }
        if let Some(names) = &self.names {
            let found = names_of(value)?;
            if found.iter().any(|name| names.contains(&**name)) {
                return write_bounded(out, value.raw());
            }
            out.push(if found.is_empty() { b'0' } else { b'+' });
        }
        if let Some(questions) = &self.items {
            for item in value.items() {
                questions.answer(item, out)?;
            }
        }
        out.push(b']');
        Ok(())
    }
}

/// Writes a text, unless the key would be too long with it.
#[inline]
fn write_bounded(out: &mut Vec<u8>, text: &str) -> Result<(), Unusual> {
    if out.len() + text.len() > MAX_KEY_BYTES {
        return Err(Unusual);
    }
    write_text(out, text);
    Ok(())
}

/// The names of a list's items, sorted. The merge denies an item without a name, and moves items that
/// share one.
fn names_of<'a>(list: Node<'_, 'a>) -> Result<Vec<Cow<'a, str>>, Unusual> {
    let name = |item: Node<'_, 'a>| item.get(NAME).and_then(Node::text).ok_or(Unusual);
    let mut names = list.items().map(name).collect::<Result<Vec<_>, _>>()?;
    names.sort_unstable();
    if names.is_sorted_by(|name, next| name < next) { Ok(names) } else { Err(Unusual) }
}

// === impl Members ===

impl Members {
    fn of<'r>(readings: impl Iterator<Item = (&'r str, &'r Reading)>) -> Self {
        let question = |(key, reading): (&str, &Reading)| (key.into(), Questions::of(reading));
        let mut entries: Vec<(Box<str>, Questions)> = readings.map(question).collect();
        entries.sort_unstable_by(|(key, _), (other, _)| order(key).cmp(&order(other)));
        let lengths = entries.iter().fold(0, |lengths, (key, _)| lengths | length_bit(key));
        Self { lengths, entries: entries.into() }
    }

    #[inline]
    fn get(&self, key: &str) -> Option<&Questions> {
        if self.lengths & length_bit(key) == 0 {
            return None;
        }
        let order_of = |(known, _): &(Box<str>, Questions)| order(known).cmp(&order(key));
        let place = self.entries.binary_search_by(order_of).ok()?;
        Some(&self.entries[place].1)
    }
}

/// Texts of other lengths are not compared.
fn order(key: &str) -> (usize, &[u8]) {
    (key.len(), key.as_bytes())
}

fn length_bit(key: &str) -> u64 {
    1 << (key.len() % u64::BITS as usize)
}
