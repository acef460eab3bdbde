//! Where values of the wrong type are.
//!
//! Not for the injector's errors, whose texts are Go's: [`super::check`].

use serde_json::Value;

use super::scalars;
use crate::schema::Kind;

/// A value of the wrong type.
#[derive(Debug, Clone, Copy)]
pub struct Misfit<'v> {
    /// The value.
    pub value: &'v Value,
    /// What its field holds.
    pub expected: &'v Kind,
}

/// The first values of the wrong type in a value of a kind, at most so many, each with its path, such as
/// `spec.containers[0].resources.limits`; `path` is that of the value itself.
///
/// As [`super::check`], but keys are exact, as for the API server, and `$patch` means nothing. The
/// recursion is as deep as the known fields.
#[must_use]
pub fn misfits<'v>(
    value: &'v Value,
    kind: &'v Kind,
    path: &str,
    most: usize,
) -> Vec<(String, Misfit<'v>)> {
    let mut found = Vec::new();
    Search { path: path.to_owned(), most, found: &mut found }.value(value, kind);
    found
}

struct Search<'f, 'v> {
    path: String,
    most: usize,
    found: &'f mut Vec<(String, Misfit<'v>)>,
}

impl<'v> Search<'_, 'v> {
    fn value(&mut self, value: &'v Value, kind: &'v Kind) {
        if self.found.len() >= self.most {
            return;
        }
        match (kind, value) {
            (Kind::Struct(fields), Value::Object(map)) => {
                for (key, value) in map {
                    if let Some(field) = fields.get().field(key) {
                        self.child(&member(&self.path, key), value, &field.kind);
                    }
                }
            }
            (Kind::Map(_, inner), Value::Object(map)) => {
                for (key, value) in map {
                    self.child(&member(&self.path, key), value, inner);
                }
            }
            (Kind::List(inner), Value::Array(list)) => {
                for (at, value) in list.iter().enumerate() {
                    self.child(&format!("{}[{at}]", self.path), value, inner);
                }
            }
            (expected, value) => {
                if scalars::check(value, expected).is_err() {
                    self.found.push((self.path.clone(), Misfit { value, expected }));
                }
            }
        }
    }

    fn child(&mut self, path: &str, value: &'v Value, kind: &'v Kind) {
        let parent = std::mem::replace(&mut self.path, path.to_owned());
        self.value(value, kind);
        self.path = parent;
    }
}

fn member(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
