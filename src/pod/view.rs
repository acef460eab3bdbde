//! Reading JSON into borrowed views: the macro that makes them, and types of single fields.
//!
//! Go's decoder reads `null` as the zero value everywhere, so every type here does; serde's derive
//! does not, and it refuses repeated keys besides.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Deref};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor},
};

/// Defines a view `Name<'a>`: `field: Type = "jsonKey"`.
macro_rules! view {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $key:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Default, Clone)]
        $vis struct $name<'a> {
            $($(#[$doc])* pub(crate) $field: $type,)*
            pub(crate) borrowed: std::marker::PhantomData<&'a str>,
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct View<'a>(std::marker::PhantomData<&'a str>);

                impl<'de: 'a, 'a> serde::de::Visitor<'de> for View<'a> {
                    type Value = $name<'a>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
                        Ok($name::default())
                    }

                    fn visit_map<A>(self, mut members: A) -> Result<Self::Value, A::Error>
                    where
                        A: serde::de::MapAccess<'de>,
                    {
                        let mut view = $name::default();
                        while let Some(key) = members.next_key::<$crate::pod::Text<'de>>()? {
                            match &*key {
                                $($key => view.$field = members.next_value()?,)*
                                _ => {
                                    members.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(view)
                    }
                }

                from.deserialize_any(View(std::marker::PhantomData))
            }
        }
    };
}
pub(crate) use view;

/// A string, borrowed where it holds no escapes. Empty when absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

/// A 32-bit integer; 0 when absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Integer(pub i32);

/// Kubernetes' `IntOrString`; the integer 0 when absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntegerOrName<'a> {
    /// A number.
    Integer(i32),
    /// A name, or a number written as a string.
    Name(Text<'a>),
}

/// Whether a field holds anything but Go's zero value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Presence(pub bool);

/// A visitor that makes a `T`.
pub(super) struct Make<T>(pub(super) PhantomData<T>);

fn expected<T, E: Error>(found: Unexpected<'_>, expected: &str) -> Result<T, E> {
    Err(E::invalid_type(found, &expected))
}

// === impl Text ===

impl Text<'_> {
    /// A text of its own.
    #[must_use]
    pub fn owned(text: &str) -> Text<'static> {
        Text(Cow::Owned(text.to_owned()))
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Make(PhantomData::<Text<'a>>))
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Make<Text<'a>> {
    type Value = Text<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Text::default())
    }
}

// === impl Integer ===

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<i32>::deserialize(from)?.unwrap_or_default()))
    }
}

// === impl IntegerOrName ===

impl Default for IntegerOrName<'_> {
    fn default() -> Self {
        Self::Integer(0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for IntegerOrName<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Make(PhantomData::<IntegerOrName<'a>>))
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Make<IntegerOrName<'a>> {
    type Value = IntegerOrName<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or a string")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        match i32::try_from(number) {
            Ok(number) => Ok(IntegerOrName::Integer(number)),
            Err(_) => expected(Unexpected::Signed(number), "a 32-bit integer"),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        match i32::try_from(number) {
            Ok(number) => Ok(IntegerOrName::Integer(number)),
            Err(_) => expected(Unexpected::Unsigned(number), "a 32-bit integer"),
        }
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(IntegerOrName::Name(Text(Cow::Borrowed(text))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(IntegerOrName::Name(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(IntegerOrName::default())
    }
}

// === impl Presence ===

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Make(PhantomData::<Presence>))
    }
}

impl<'de> Visitor<'de> for Make<Presence> {
    type Value = Presence;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Presence(false))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Presence(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Presence(number != 0))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Presence(number != 0))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Presence(true))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Presence(!text.is_empty()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Presence(true))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Presence(true))
    }
}
