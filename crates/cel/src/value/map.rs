//! Maps.

use std::{borrow::Cow, collections::HashMap, rc::Rc};

use super::{Fault, Res, Text, Val};
use crate::{
    data::{Fields, Place, Source},
    work::Work,
};

/// A map of the data or of the expression, or one that was made.
#[derive(Debug, Clone)]
pub(crate) enum Map<'d> {
    Data(&'d dyn Fields),
    At(&'d dyn Source, Place),
    Made(Rc<Made<'d>>),
}

/// A map that was made: entries in their order, and their places if they are more than [`FEW`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Made<'d> {
    entries: Vec<(Val<'d>, Val<'d>)>,
    places: HashMap<Key<'d>, usize>,
}

/// Entries that are compared one by one: a table of hashes costs more.
const FEW: usize = 8;

/// A key. Numbers that are equal are the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key<'d> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a number that is not whole, or too large for an integer.
    Double(u64),
    Text(Text<'d>),
}

impl<'d> Key<'d> {
    /// The key that a value is. The bytes of a text are counted: the search reads them.
    fn of(value: &Val<'d>, work: &mut Work) -> Res<Self> {
        Ok(match value {
            Val::Null => Self::Null,
            Val::Bool(value) => Self::Bool(*value),
            Val::Int(value) => Self::Int(*value),
            Val::Uint(value) => i64::try_from(*value).map_or(Self::Uint(*value), Self::Int),
            Val::Double(value) => number(*value),
            Val::Text(text) => {
                work.spend(text.len())?;
                Self::Text(text.clone())
            }
            _ => return Fault::error("unsupported key type"),
        })
    }

    /// The key of an entry.
    fn known(value: &Val<'d>) -> Option<Self> {
        Self::of(value, &mut Work::default()).ok()
    }

    /// Whether the key of an entry is this one.
    fn is(&self, value: &Val<'d>) -> bool {
        match (self, value) {
            (Self::Text(key), Val::Text(text)) => key == text,
            (Self::Text(_), _) | (_, Val::Text(_)) => false,
            _ => Self::known(value).as_ref() == Some(self),
        }
    }
}

/// A number as a key.
fn number<'d>(value: f64) -> Key<'d> {
    // 2^63 and 2^64 are exact.
    const INT: f64 = 9_223_372_036_854_775_808.0;
    const UINT: f64 = 18_446_744_073_709_551_616.0;
    if value.fract() != 0.0 {
        return Key::Double(value.to_bits());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    if (-INT..INT).contains(&value) {
        Key::Int(value as i64)
    } else if (INT..UINT).contains(&value) {
        Key::Uint(value as u64)
    } else {
        Key::Double(value.to_bits())
    }
}

impl<'d> Map<'d> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Data(fields) => fields.count(),
            Self::At(source, at) => source.count(*at),
            Self::Made(made) => made.entries.len(),
        }
    }

    /// The value of a key; `None` if there is none.
    pub(crate) fn get(&self, key: &Val<'d>, work: &mut Work) -> Res<Option<Val<'d>>> {
        // The usual key needs no copy.
        if let (Self::At(source, at), Val::Text(name)) = (self, key) {
            work.spend(name.len())?;
            return source.field(*at, name).map(Val::of).transpose();
        }
        match (self, Key::of(key, work)?) {
            (Self::Data(fields), Key::Text(name)) => fields.get(&name).map(Val::of).transpose(),
            (Self::Made(made), key) => {
                Ok(made.place(&key).map(|place| made.entries[place].1.clone()))
            }
            _ => Ok(None),
        }
    }

    /// Whether it has a key; what no map has as one is not an error.
    pub(crate) fn has(&self, key: &Val<'d>, work: &mut Work) -> Res<bool> {
        let may_be_key = matches!(
            key,
            Val::Null | Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Text(_)
        );
        Ok(may_be_key && self.get(key, work)?.is_some())
    }

    /// The keys in their order. They are counted.
    pub(crate) fn keys(&self, work: &mut Work) -> Res<Vec<Val<'d>>> {
        work.spend_items(self.len())?;
        Ok(match self {
            Self::Data(fields) => {
                fields.entries().map(|(key, _)| Val::Text(Text::Borrowed(key))).collect()
            }
            Self::At(source, at) => {
                source.fields(*at).into_iter().map(|(key, _)| key_of(key)).collect()
            }
            Self::Made(made) => made.entries.iter().map(|(key, _)| key.clone()).collect(),
        })
    }

    /// The entries in their order. They are counted.
    pub(crate) fn entries(&self, work: &mut Work) -> Res<Vec<Entry<'d>>> {
        work.spend_items(self.len().saturating_mul(2))?;
        Ok(match self {
            Self::Data(fields) => {
                let entry = |(key, value)| (Val::Text(Text::Borrowed(key)), Val::of(value));
                fields.entries().map(entry).collect()
            }
            Self::At(source, at) => {
                let entry = |(key, value)| (key_of(key), Val::of(value));
                source.fields(*at).into_iter().map(entry).collect()
            }
            Self::Made(made) => {
                made.entries.iter().map(|(key, value)| (key.clone(), Ok(value.clone()))).collect()
            }
        })
    }
}

fn key_of(key: Cow<'_, str>) -> Val<'_> {
    match key {
        Cow::Borrowed(key) => Val::Text(Text::Borrowed(key)),
        Cow::Owned(key) => Val::text(key),
    }
}

/// A key and its value, or why that is not known.
type Entry<'d> = (Val<'d>, Res<Val<'d>>);

impl<'d> Made<'d> {
    /// The entries of a map.
    ///
    /// # Errors
    /// They are more than may be copied.
    pub(crate) fn of(map: &Map<'d>, work: &mut Work) -> Res<Self> {
        let mut made = Self::default();
        for (key, value) in map.entries(work)? {
            made.insert(key, value?, work)?;
        }
        Ok(made)
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// It cannot be a key, or there is more to read than is allowed.
    pub(crate) fn insert(&mut self, key: Val<'d>, value: Val<'d>, work: &mut Work) -> Res<bool> {
        let place = Key::of(&key, work)?;
        if let Some(found) = self.place(&place) {
            self.entries[found].1 = value;
            return Ok(false);
        }
        if self.entries.len() >= FEW {
            if self.places.is_empty() {
                let keys = self.entries.iter().enumerate();
                let keys = keys.filter_map(|(place, (key, _))| Some((Key::known(key)?, place)));
                self.places.extend(keys);
            }
            self.places.insert(place, self.entries.len());
        }
        self.entries.push((key, value));
        Ok(true)
    }

    fn place(&self, key: &Key<'d>) -> Option<usize> {
        if self.places.is_empty() {
            self.entries.iter().position(|(known, _)| key.is(known))
        } else {
            self.places.get(key).copied()
        }
    }
}
