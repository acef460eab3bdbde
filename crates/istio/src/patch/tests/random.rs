//! Random numbers that are the same everywhere, and documents with an error.

use serde_json::{Value, json};

/// xorshift.
pub(crate) struct Random(u64);

impl Random {
    /// `seed` must not be 0.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// `end` must not be 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// `list` must not be empty.
    pub(crate) fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    /// Replaces a part of the document by something else.
    pub(crate) fn spoil(&mut self, document: &mut Value) {
        match document {
            Value::Array(list) if !list.is_empty() && self.below(8) != 0 => {
                let index = self.index(list.len());
                match self.below(6) {
                    0 => _ = list.remove(index),
                    1 => list.push(list[index].clone()),
                    _ => self.spoil(&mut list[index]),
                }
            }
            Value::Object(map) if !map.is_empty() && self.below(16) != 0 => {
                let index = self.index(map.len());
                let key = map.keys().nth(index).cloned().unwrap_or_default();
                match map.get_mut(&key) {
                    Some(value) if self.below(8) != 0 => self.spoil(value),
                    _ => _ = map.shift_remove(&key),
                }
            }
            other => {
                let values = [
                    json!(null),
                    json!(0),
                    json!(-1),
                    json!(1.5),
                    json!(u64::MAX),
                    json!(""),
                    json!("-u"),
                    json!("istio-proxy"),
                    json!("15020"),
                    json!("{"),
                    json!(true),
                    json!([]),
                    json!([null]),
                    json!({}),
                    json!({"name": "istio-proxy"}),
                ];
                *other = self.one_of(&values).clone();
            }
        }
    }
}
