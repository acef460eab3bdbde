//! An excerpt of a JSON text: what is read of it, and nothing else.

use std::collections::BTreeSet;

use injectd_core::json::{self, ReadError, Reader};

use crate::{
    named::has_twice,
    reads::{Pattern, Reads},
};

/// The end of a member in place of entries that are not read.
const UNREAD: &str = r#":"\u0000""#;
/// The key of an entry's name.
const NAME: &str = "name";

/// An excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// JSON. Values stand in the order of the text.
    pub text: Vec<u8>,
    /// Whether the text has a name that a template may write, or entries that have no names of their own: then an
    /// excerpt does not say enough.
    pub has_own_name: bool,
}

/// Copies what is read of a text that holds one value. A list of which only some entries might matter, and
/// none is there, has one entry without a meaning instead of those that it has.
///
/// # Errors
/// The text is not JSON where it is read; parts that are not read are not checked.
pub fn excerpt(text: &str, reads: &Reads) -> Result<Excerpt, ReadError> {
    let excerpt = Excerpt { text: Vec::with_capacity(USUAL_BYTES), has_own_name: false };
    let mut walk = Walk { excerpt, names: Vec::new() };
    walk.value(&mut Reader::new(text), reads)?;
    Ok(walk.excerpt)
}

/// Bytes of most excerpts.
const USUAL_BYTES: usize = 1 << 10;

struct Walk<'a> {
    excerpt: Excerpt,
    /// Names of entries of the list that is being read, as they are written.
    names: Vec<&'a str>,
}

type Result<T, E = ReadError> = std::result::Result<T, E>;

impl<'a> Walk<'a> {
    fn push(&mut self, byte: u8) {
        self.excerpt.text.push(byte);
    }

    /// A comma, unless it is the first of a list.
    fn comma(&mut self, is_first: &mut bool) {
        if !std::mem::replace(is_first, false) {
            self.push(b',');
        }
    }

    fn value(&mut self, reader: &mut Reader<'a>, reads: &Reads) -> Result<()> {
        if reads.whole {
            return self.whole(reader, reads);
        }
        if reader.is_object() {
            return self.object(reader, reads);
        }
        if reader.is_list() {
            return self.list(reader, reads);
        }
        self.whole(reader, reads)
    }

    fn whole(&mut self, reader: &mut Reader<'a>, reads: &Reads) -> Result<()> {
        let begin = reader.at_value();
        reader.skip()?;
        let raw = reader.since(&begin);
        self.excerpt.has_own_name |= has(raw, reads.own_names());
        if reads.is_name && raw.starts_with('"') {
            self.names.push(raw);
        }
        self.excerpt.text.extend_from_slice(raw.as_bytes());
        Ok(())
    }

    fn object(&mut self, reader: &mut Reader<'a>, reads: &Reads) -> Result<()> {
        self.push(b'{');
        let mut is_first = true;
        reader.object(|reader, key| {
            let Some(reads) = reads.of_member(&key) else { return reader.skip() };
            self.comma(&mut is_first);
            json::write_string(&mut self.excerpt.text, &key);
            self.push(b':');
            self.value(reader, reads)
        })?;
        self.push(b'}');
        Ok(())
    }

    fn list(&mut self, reader: &mut Reader<'a>, reads: &Reads) -> Result<()> {
        if !reads.entries().is_empty() {
            return self.entries(reader, reads);
        }
        let Some(each) = &reads.each else {
            self.excerpt.text.extend_from_slice(b"[]");
            return reader.skip();
        };
        self.push(b'[');
        let mut is_first = true;
        let before = self.names.len();
        let mut count = 0;
        reader.list(|reader| {
            count += 1;
            self.comma(&mut is_first);
            self.value(reader, each)
        })?;
        self.push(b']');
        if reads.has_names {
            let names = &self.names[before..];
            self.excerpt.has_own_name |= names.len() != count || has_twice(names);
            self.names.truncate(before);
        }
        Ok(())
    }

    /// A list of entries: all of it, or whether it is empty.
    fn entries(&mut self, reader: &mut Reader<'a>, reads: &Reads) -> Result<()> {
        let begin = reader.clone();
        let (mut is_empty, mut is_met) = (true, false);
        reader.list(|reader| {
            is_empty = false;
            if is_met { reader.skip() } else { entry(reader, reads).map(|met| is_met = met) }
        })?;
        if is_met || is_empty {
            self.excerpt.text.extend_from_slice(reader.since(&begin).as_bytes());
            return Ok(());
        }
        self.excerpt.text.extend_from_slice(b"[{");
        let keys: BTreeSet<_> = reads.entries().iter().map(|(key, _)| *key).chain([NAME]).collect();
        let mut is_first = true;
        for key in keys {
            self.comma(&mut is_first);
            json::write_string(&mut self.excerpt.text, key);
            self.excerpt.text.extend_from_slice(UNREAD.as_bytes());
        }
        self.excerpt.text.extend_from_slice(b"}]");
        Ok(())
    }
}

/// Whether an entry of a list is one that is looked for.
fn entry(reader: &mut Reader<'_>, reads: &Reads) -> Result<bool> {
    if !reader.is_object() {
        reader.skip()?;
        return Ok(true);
    }
    let mut is_met = false;
    reader.object(|reader, key| {
        let begin = reader.at_value();
        reader.skip()?;
        let raw = reader.since(&begin);
        is_met |= reads.entries().iter().any(|(of, pattern)| *of == key && is(raw, pattern));
        Ok(())
    })?;
    Ok(is_met)
}

fn has<'p>(raw: &str, patterns: impl IntoIterator<Item = &'p Pattern>) -> bool {
    patterns.into_iter().any(|pattern| is(raw, pattern))
}

/// Whether a value is such a text. One with escapes, and another value, may be.
fn is(raw: &str, pattern: &Pattern) -> bool {
    match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        Some(text) => text.contains('\\') || pattern.matches(text),
        None => true,
    }
}
