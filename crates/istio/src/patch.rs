//! The RFC 6902 patch from the pod as received to the injected pod.
//!
//! Upstream compares lists by position, so that one new volume rewrites all volumes after it. Here
//! elements of lists with a key are compared with their own earlier version. The patch depends on
//! the two pods only, and its cost is linear in their size.
//!
//! Not for patches of other objects: which lists have keys is known from Kubernetes' pods.

#![expect(clippy::disallowed_types, reason = "templates are merged into trees")]

mod lists;
mod stay;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Write as _;

use injectd_core::json;
use serde_json::{Map, Value};

/// One operation of a patch. Paths are JSON pointers.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation<'a> {
    /// Adds a field, or inserts a list element before the one at the index.
    Add(String, &'a Value),
    /// Replaces a value that is there.
    Replace(String, &'a Value),
    /// Removes a value that is there.
    Remove(String),
}

/// The operations that turn `original` into `injected`; none if the two are equal.
///
/// If fields were dropped from `original` before, the patch neither removes nor needs them: on the
/// pod as received it leaves those that `injected` lacks, and overwrites the others.
#[must_use]
pub fn patch<'a>(original: &Value, injected: &'a Value) -> Vec<Operation<'a>> {
    let mut patch = Patch { path: String::new(), operations: Vec::new() };
    patch.compare(original, injected, "");
    patch.operations
}

/// A JSON patch of the operations, compact.
///
/// # Panics
/// Never: any value can be serialised into memory.
#[must_use]
pub fn encode(operations: &[Operation<'_>]) -> Vec<u8> {
    let mut out = b"[".to_vec();
    for operation in operations {
        if out.len() > 1 {
            out.push(b',');
        }
        let (name, path, value) = match operation {
            Operation::Add(path, value) => ("add", path, Some(value)),
            Operation::Replace(path, value) => ("replace", path, Some(value)),
            Operation::Remove(path) => ("remove", path, None),
        };
        out.extend_from_slice(br#"{"op":""#);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(br#"","path":"#);
        json::write_string(&mut out, path);
        if let Some(value) = value {
            out.extend_from_slice(br#","value":"#);
            serde_json::to_writer(&mut out, value).expect("a tree must serialise into memory");
        }
        out.push(b'}');
    }
    out.push(b']');
    out
}

/// The operations so far, and the pointer to the value that is being compared.
struct Patch<'a> {
    path: String,
    operations: Vec<Operation<'a>>,
}

impl<'a> Patch<'a> {
    /// `field` is the key of the value, which says how a list is compared.
    fn compare(&mut self, old: &Value, new: &'a Value, field: &str) {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.compare_objects(old, new),
            (Value::Array(old), Value::Array(list)) => self.compare_lists(old, (new, list), field),
            (old, new) if old != new => self.replace(new),
            _ => {}
        }
    }

    fn compare_objects(&mut self, old: &Map<String, Value>, new: &'a Map<String, Value>) {
        let is_prefix = old.len() <= new.len() && old.keys().eq(new.keys().take(old.len()));
        if !is_prefix {
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                self.at(key, Self::remove);
            }
        }
        let mut aligned = old.values().filter(|_| is_prefix);
        for (key, new) in new {
            // Usually keys are only appended, and a lookup costs more than the comparison.
            let old = aligned.next().or_else(|| old.get(key).filter(|_| !is_prefix));
            self.at(key, |patch| match old {
                Some(old) => patch.compare(old, new, key),
                None => patch.add(new),
            });
        }
    }

    fn add(&mut self, value: &'a Value) {
        self.operations.push(Operation::Add(self.path.clone(), value));
    }

    fn replace(&mut self, value: &'a Value) {
        self.operations.push(Operation::Replace(self.path.clone(), value));
    }

    fn remove(&mut self) {
        self.operations.push(Operation::Remove(self.path.clone()));
    }

    /// Does something with the item of a list.
    fn at_index(&mut self, index: usize, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        write!(self.path, "/{index}").expect("a text takes what is written");
        then(self);
        self.path.truncate(length);
    }

    /// Does something with the member of an object.
    fn at(&mut self, key: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        if key.contains(['~', '/']) {
            self.path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        } else {
            self.path.push_str(key);
        }
        then(self);
        self.path.truncate(length);
    }
}
