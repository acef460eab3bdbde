//! The RFC 6902 patch from the pod as received to the injected pod.
//!
//! Upstream compares lists by position, so that one new volume rewrites all volumes after it. Here
//! elements of lists with a key are compared with their own earlier version. The patch depends on
//! the two pods only, and its cost is linear in their size. It leaves `metadata.managedFields` alone.
//!
//! Not for patches of other objects: which lists have keys is known from Kubernetes' pods.

mod before;
mod lists;
mod stay;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;

use injectd_core::json;
use serde_json::{Map, Value};

use before::Before;

const METADATA: &str = "/metadata";
const MANAGED_FIELDS: &str = "managedFields";

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

/// The operations that turn `original` into `injected`; no operations if the two are equal.
///
/// If fields were dropped from `original` before, the patch neither removes nor needs them: on the
/// pod as received it leaves those that `injected` lacks, and overwrites the others.
#[must_use]
pub fn patch<'o, 'a>(original: impl Before<'o>, injected: &'a Value) -> Vec<Operation<'a>> {
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
    /// `field` is the key of the value, which decides how a list is compared.
    fn compare<'o>(&mut self, old: impl Before<'o>, new: &'a Value, field: &str) {
        match new {
            Value::Object(members) => match old.members() {
                Some(old) => self.compare_objects(old, members),
                None => self.replace(new),
            },
            Value::Array(list) => match old.items() {
                Some(old) => self.compare_lists(&old.collect::<Vec<_>>(), new, list, field),
                None => self.replace(new),
            },
            new if !old.is(new) => self.replace(new),
            _ => {}
        }
    }

    fn compare_objects<'o, B: Before<'o>>(
        &mut self,
        old: impl Iterator<Item = (&'o str, B)> + Clone,
        new: &'a Map<String, Value>,
    ) {
        let is_metadata = self.path == METADATA;
        let old = old.filter(|(key, _)| !(is_metadata && *key == MANAGED_FIELDS));
        let new = new.iter().filter(|(key, _)| !(is_metadata && *key == MANAGED_FIELDS));
        let mut added = new.clone();
        if old.clone().all(|(key, _)| added.next().is_some_and(|(other, _)| other == key)) {
            // Usually keys are only appended, and lookups cost more than the comparison.
            for ((_, old), (key, new)) in old.clone().zip(new) {
                self.at(key, |patch| patch.compare(old, new, key));
            }
            for (key, new) in added {
                self.at(key, |patch| patch.add(new));
            }
            return;
        }
        let mut values: HashMap<_, _> = old.clone().collect();
        let new: Vec<_> = new.map(|(key, new)| (key, values.remove(&**key), new)).collect();
        for (key, _) in old {
            if values.remove(key).is_some() {
                self.at(key, Self::remove);
            }
        }
        for (key, old, new) in new {
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

    /// Runs `then` at an item of a list.
    fn at_index(&mut self, index: usize, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(itoa::Buffer::new().format(index));
        then(self);
        self.path.truncate(length);
    }

    /// Runs `then` at a member of an object.
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
