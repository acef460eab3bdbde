//! The values as a person reads them: the path of each in the values of the chart, and its text.

#![expect(clippy::disallowed_types, reason = "not part of a review")]

use serde_json::{Map, Value};

use super::EnvVar;

/// The paths and texts of values, in the order of `values!`.
pub(crate) type Shown = Vec<(String, String)>;

/// A field of the values that can be shown.
pub(crate) trait Show {
    /// Adds the field, whose path this is.
    fn show(&self, path: &str, shown: &mut Shown);
}

/// The path of a key in a section; empty for the root.
pub(crate) fn join(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") }
}

macro_rules! shown_as_text {
    ($($type:ty)*) => {$(
        impl Show for $type {
            fn show(&self, path: &str, shown: &mut Shown) {
                shown.push((path.to_owned(), self.to_string()));
            }
        }
    )*};
}

shown_as_text! { String bool i64 u64 f64 }

impl<T: Show> Show for Option<T> {
    fn show(&self, path: &str, shown: &mut Shown) {
        if let Some(value) = self {
            value.show(path, shown);
        }
    }
}

impl Show for Vec<String> {
    fn show(&self, path: &str, shown: &mut Shown) {
        self.join(",").show(path, shown);
    }
}

impl Show for Vec<(String, String)> {
    fn show(&self, path: &str, shown: &mut Shown) {
        for (key, value) in self {
            value.show(&join(path, key), shown);
        }
    }
}

/// Not shown: variables have no single text.
impl Show for Vec<EnvVar> {
    fn show(&self, _: &str, _: &mut Shown) {}
}

impl Show for Map<String, Value> {
    fn show(&self, path: &str, shown: &mut Shown) {
        for (key, value) in self {
            shown.push((join(path, key), value.to_string()));
        }
    }
}
