//! The macro that declares the values, and how each type of field is read: as upstream's structs.

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use serde_json::{Map, Value};

use super::{Result, ValuesError, tree::Section};
use crate::{
    linkerd::{
        env_var::{self, EnvVar, Scalars},
        release::Delta,
    },
    yaml::scalar,
};

/// Declares sections of the values, and how they are read: the fields in the order of the rows. The
/// module [`super`] describes the words of a row.
macro_rules! values {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {$(
            $(#[$doc:meta])*
            $field:ident: $type:ty
                = $($key:literal $(as $narrow:ident)?)? $(by $($read:ident)::+)?
                $(since $since:ident)? $(until $until:ident)? $(or $default:expr)?,
        )*}
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {$(
            $(#[doc = concat!("`", $key, "`.")])?
            $(#[$doc])*
            pub $field: $type,
        )*}

        impl $name {
            fn of(section: &Section<'_>) -> Result<Self> {
                Ok(Self {$(
                    $field: {
                        $(let section = section.since(Delta::$since);)?
                        $(let section = section.until(Delta::$until);)?
                        $(let value = section.read($key)?; $(let value = $narrow::into(value);)?)?
                        $(let value = $($read)::+(&section)?;)?
                        $(let value = Option::unwrap_or_else(value, || $default);)?
                        value
                    },
                )*})
            }
        }

        impl Field for $name {
            fn read(parent: &Section<'_>, key: &str) -> Result<Self> {
                Self::of(&parent.required(key)?)
            }
        }

        impl Show for $name {
            fn show(&self, path: &str, shown: &mut Shown) {
                $($(self.$field.show(&crate::linkerd::values::show::join(path, $key), shown);)?)*
            }
        }
    )*};
}
pub(super) use values;

/// A type of field. Missing scalars and lists are zero or empty; a missing section is an error.
pub(crate) trait Field: Sized {
    /// Reads the value of a key.
    fn read(section: &Section<'_>, key: &str) -> Result<Self>;
}

impl Section<'_> {
    /// The value at a path: keys of nested sections, joined with dots.
    pub(super) fn read<T: Field>(&self, path: &str) -> Result<T> {
        match path.split_once('.') {
            Some((key, rest)) => self.section(key)?.read(rest),
            None => T::read(self, path),
        }
    }
}

/// A type of field for a single value.
trait Scalar: Default {
    const EXPECTED: &str;

    /// Converts a value as Go's YAML libraries do.
    fn of(value: &Value) -> Option<Self>;
}

impl<T: Scalar> Field for T {
    fn read(section: &Section<'_>, key: &str) -> Result<Self> {
        match section.get(key) {
            None => Ok(T::default()),
            Some(value) => T::of(value).ok_or_else(|| section.mismatch(key, T::EXPECTED, value)),
        }
    }
}

impl Scalar for String {
    const EXPECTED: &str = "a string";

    fn of(value: &Value) -> Option<Self> {
        scalar(value)
    }
}

impl Scalar for bool {
    const EXPECTED: &str = "a boolean";

    fn of(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Scalar for i64 {
    const EXPECTED: &str = "an integer";

    /// Accepts `2102.0`.
    fn of(value: &Value) -> Option<Self> {
        value.as_i64().or_else(|| {
            let number = value.as_f64()?;
            // Go writes larger numbers with an exponent, which its integers do not read.
            let whole = number.fract() == 0.0 && number.abs() < 1e21;
            whole.then(|| format!("{number:.0}").parse().ok())?
        })
    }
}

impl Scalar for u64 {
    const EXPECTED: &str = "an integer of 0 or more";

    fn of(value: &Value) -> Option<Self> {
        value.as_u64().or_else(|| i64::of(value)?.try_into().ok())
    }
}

impl Scalar for f64 {
    const EXPECTED: &str = "a number";

    fn of(value: &Value) -> Option<Self> {
        value.as_f64()
    }
}

impl Field for i32 {
    fn read(section: &Section<'_>, key: &str) -> Result<Self> {
        let number = i64::read(section, key)?;
        number.try_into().map_err(|_| {
            let found = section.get(key).unwrap_or(&Value::Null);
            section.mismatch(key, "a 32-bit integer", found)
        })
    }
}

/// `None` if the key is missing.
impl<T: Field> Field for Option<T> {
    fn read(section: &Section<'_>, key: &str) -> Result<Self> {
        section.has(key).then(|| T::read(section, key)).transpose()
    }
}

/// A map with any content; `None` if empty.
impl Field for Option<Map<String, Value>> {
    fn read(section: &Section<'_>, key: &str) -> Result<Self> {
        Ok(section.section(key)?.map.filter(|map| !map.is_empty()).cloned())
    }
}

impl Field for Vec<String> {
    fn read(section: &Section<'_>, key: &str) -> Result<Self> {
        let item_of = |item: &Value| match item {
            Value::Null => Ok(String::new()),
            item => scalar(item).ok_or_else(|| section.mismatch(key, "a list of strings", item)),
        };
        section.list(key)?.iter().map(item_of).collect()
    }
}

/// A map of strings, sorted by key.
impl Field for Vec<(String, String)> {
    fn read(section: &Section<'_>, key: &str) -> Result<Self> {
        let map = section.section(key)?;
        let mut entries = Vec::new();
        for (key, _) in map.entries() {
            entries.push((key.clone(), String::read(&map, key)?));
        }
        entries.sort();
        Ok(entries)
    }
}

impl Field for Vec<EnvVar> {
    fn read(section: &Section<'_>, key: &str) -> Result<Self> {
        let list = section.list(key)?;
        env_var::read_list(list, Scalars::Coerced, section.release).map_err(|at| {
            ValuesError::Type {
                key: section.path_of(key),
                expected: "a list of environment variables",
                found: format!("an invalid one: {at}"),
            }
        })
    }
}

/// Reads `identity.serviceAccountTokenProjection`.
pub(super) fn token_projection(root: &Section<'_>) -> Result<Option<bool>> {
    let identity = root.optional("identity")?;
    identity.map(|identity| identity.read("serviceAccountTokenProjection")).transpose()
}

/// Reads the switch of `proxy.tracing`, which was renamed.
pub(super) fn tracing_enabled(tracing: &Section<'_>) -> Result<bool> {
    let is_renamed = tracing.release.has(Delta::TracingEnabled);
    tracing.read(if is_renamed { "enabled" } else { "enable" })
}

/// For fields that are not in the YAML.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a row's function")]
pub(super) fn unset<T: Default>(_: &Section<'_>) -> Result<T> {
    Ok(T::default())
}
