//! Fields of borrowed views: the macro that defines a view, and the types of single fields.
//!
//! Go's decoder reads `null` as the zero value everywhere, so every type here does.

use std::{borrow::Cow, ops::Deref};

use crate::json::{Read, ReadError, Reader};

mod list;

pub use list::List;

/// Defines a view `Name<'a>`: `pub field: Type = "jsonKey"`. `Name<O: View<'a>>` has a
/// parameter for the view of an object.
macro_rules! view {
    ($(#[$meta:meta])* $vis:vis struct $name:ident $(<$object:ident: $bound:path>)? {
        $($(#[$doc:meta])* $field_vis:vis $field:ident: $type:ty = $key:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        $vis struct $name<'a $(, $object)?> {
            $($(#[$doc])* $field_vis $field: $type,)*
            pub(crate) borrowed: std::marker::PhantomData<&'a str>,
        }

        impl<'a $(, $object: $bound)?> $name<'a $(, $object)?> {
            /// Reads the value of a member if the view has that field, and returns whether it has.
            /// `seen` has a bit for each field.
            pub(crate) fn member(
                &mut self,
                reader: &mut $crate::json::Reader<'a>,
                key: &str,
                seen: &mut u32,
            ) -> Result<bool, $crate::json::ReadError> {
                #[expect(non_camel_case_types, reason = "named after the fields")]
                enum Bit { $($field),* }
                match key {
                    $($key => {
                        let is_first = *seen & (1 << Bit::$field as u32) == 0;
                        *seen |= 1 << Bit::$field as u32;
                        reader.member(&mut self.$field, key, is_first)?;
                    })*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }

        impl<'a $(, $object: $bound)?> $crate::json::Read<'a>
            for $name<'a $(, $object)?>
        {
            fn read(
                &mut self,
                reader: &mut $crate::json::Reader<'a>,
            ) -> Result<(), $crate::json::ReadError> {
                let mut seen = 0;
                reader.object(|reader, key| {
                    if self.member(reader, &key, &mut seen)? { Ok(()) } else { reader.skip() }
                })?;
                Ok(())
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

/// Whether a field has another value than Go's zero value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Presence(pub bool);

/// Whether a list has any items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HasItems(pub bool);

/// A value of any type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Anything;

// === impl Text ===

impl Text<'_> {
    /// An owned text.
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

impl<'a> Read<'a> for Text<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        self.0 = reader.string()?.unwrap_or_default();
        Ok(())
    }
}

// === impl Integer ===

impl<'a> Read<'a> for Integer {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        self.0 = reader.integer()?.unwrap_or_default();
        Ok(())
    }
}

// === impl IntegerOrName ===

impl Default for IntegerOrName<'_> {
    fn default() -> Self {
        Self::Integer(0)
    }
}

impl<'a> Read<'a> for IntegerOrName<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        *self = if reader.is_string() {
            Self::Name(Text(reader.string()?.unwrap_or_default()))
        } else {
            Self::Integer(reader.integer()?.unwrap_or_default())
        };
        Ok(())
    }
}

// === impl Presence, HasItems, Anything, bool ===

impl<'a> Read<'a> for Presence {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        self.0 = reader.is_set()?;
        Ok(())
    }
}

impl<'a> Read<'a> for HasItems {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        self.0 = reader.has_items()?;
        Ok(())
    }
}

impl<'a> Read<'a> for Anything {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        reader.skip()
    }
}

impl<'a> Read<'a> for bool {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        *self = reader.boolean()?.unwrap_or_default();
        Ok(())
    }
}
