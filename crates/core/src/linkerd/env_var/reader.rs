//! Reads variables from any deserializer, without a tree, as Go's decoder does.
//!
//! A wrong type is a value, not a deserializer error: the rest of the text must still be checked,
//! and a later member of the object may replace the wrong one.

#![expect(clippy::disallowed_types, reason = "a scalar on its way into text")]

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The value, or `None` for `null`. The error is a wrong type and its place.
pub(super) type Found<T> = Result<Option<T>, String>;

/// A type of value. Values that the shape does not accept have a wrong type.
pub(super) trait Shape<'de>: Copy {
    /// The type of the result.
    type Out;
    /// The expected type, for the error text.
    const NOUN: &'static str;

    fn string(self, _: Cow<'de, str>) -> Option<Self::Out> {
        None
    }

    /// A boolean or a number.
    fn other_scalar(self, _: &Value) -> Option<Self::Out> {
        None
    }

    fn list<A: SeqAccess<'de>>(self, items: A) -> Result<Found<Self::Out>, A::Error> {
        drain(items)?;
        Ok(Err(wrong::<Self>()))
    }

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Found<Self::Out>, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Err(wrong::<Self>()))
    }
}

fn wrong<'de, S: Shape<'de>>() -> String {
    [" is not ", S::NOUN].concat()
}

pub(super) fn drain<'de, A: SeqAccess<'de>>(mut items: A) -> Result<(), A::Error> {
    while items.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Reads a value as a shape.
#[derive(Clone, Copy)]
pub(super) struct Typed<S>(pub(super) S);

impl<'de, S: Shape<'de>> DeserializeSeed<'de> for Typed<S> {
    type Value = Found<S::Out>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de, S: Shape<'de>> Visitor<'de> for Typed<S> {
    type Value = Found<S::Out>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(S::NOUN)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Ok(None))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(accepted::<S>(self.0.string(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(accepted::<S>(self.0.string(Cow::Owned(text.to_owned()))))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(accepted::<S>(self.0.other_scalar(&flag.into())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(accepted::<S>(self.0.other_scalar(&number.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(accepted::<S>(self.0.other_scalar(&number.into())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(accepted::<S>(self.0.other_scalar(&number.into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        self.0.list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        self.0.object(members)
    }
}

fn accepted<'de, S: Shape<'de>>(value: Option<S::Out>) -> Found<S::Out> {
    value.map(Some).ok_or_else(wrong::<S>)
}

// === impl Names ===

/// Finds the effective member of each name: the exact spelling, else the first spelling in another
/// case. Of repeated members with one spelling, the last wins.
pub(super) struct Names<'de, const N: usize>([Name<'de>; N]);

#[derive(Default)]
struct Name<'de> {
    name: &'static str,
    spelling: Option<Cow<'de, str>>,
}

impl<'de, const N: usize> Names<'de, N> {
    pub(super) fn new(names: impl IntoIterator<Item = &'static str>) -> Self {
        let mut names = names.into_iter();
        Self([(); N].map(|()| Name { name: names.next().unwrap_or_default(), spelling: None }))
    }

    /// Skips other members up to the value of a member that may be effective. Returns its index.
    pub(super) fn next<A: MapAccess<'de>>(
        &mut self,
        members: &mut A,
    ) -> Result<Option<usize>, A::Error> {
        while let Some(key) = members.next_key_seed(Key)? {
            match self.place(key) {
                Some(place) => return Ok(Some(place)),
                None => members.next_value::<IgnoredAny>()?,
            };
        }
        Ok(None)
    }

    fn place(&mut self, key: Cow<'de, str>) -> Option<usize> {
        let place = self.0.iter().position(|known| known.name.eq_ignore_ascii_case(&key))?;
        let Name { name, spelling } = &mut self.0[place];
        let counts = key == *name || spelling.as_ref().is_none_or(|spelling| *spelling == key);
        if !counts || name.is_empty() {
            return None;
        }
        *spelling = Some(key);
        Some(place)
    }
}

/// Reads a key.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
