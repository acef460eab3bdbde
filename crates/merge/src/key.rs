//! Values by which list elements are compared.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
};

use serde_json::Value;

use crate::error::MergeError;

/// A scalar as Go compares it: by type and value. The integer 80, the float 80.0 and the text "80"
/// are three keys.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    Null,
    Boolean(bool),
    Integer(i64),
    /// The bits of a float.
    Float(u64),
    Text(String),
}

impl Key {
    /// The key of a scalar. Go panics if it compares lists or objects.
    pub(crate) fn new(value: &Value) -> Result<Self, MergeError> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Boolean(*truth),
            Value::String(text) => Self::Text(text.clone()),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Self::Integer(integer),
                // Adding zero makes -0.0 equal to 0.0.
                (None, float) => Self::Float((float.unwrap_or_default() + 0.0).to_bits()),
            },
            Value::Array(_) | Value::Object(_) => return Err(MergeError::NotComparable),
        })
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(test)]
        steps::count();
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(one), Self::Boolean(other)) => one == other,
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Float(one), Self::Float(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        #[cfg(test)]
        steps::count();
        match self {
            Self::Null => state.write_u8(0),
            Self::Boolean(truth) => truth.hash(state),
            Self::Integer(integer) => integer.hash(state),
            Self::Float(bits) => bits.hash(state),
            Self::Text(text) => text.hash(state),
        }
    }
}

/// The first position of each key in a list.
#[derive(Debug, Default)]
pub(crate) struct Positions(HashMap<Key, usize>);

impl Positions {
    pub(crate) fn add(&mut self, key: Key, position: usize) {
        self.0.entry(key).or_insert(position);
    }

    pub(crate) fn get(&self, key: &Key) -> Option<usize> {
        self.0.get(key).copied()
    }
}

impl FromIterator<Key> for Positions {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        let mut positions = Self::default();
        for (position, key) in keys.into_iter().enumerate() {
            positions.add(key, position);
        }
        positions
    }
}

/// Counts comparisons and hashes, for tests of the cost of a merge.
#[cfg(test)]
pub(crate) mod steps {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn count() {
        STEPS.set(STEPS.get() + 1);
    }

    /// The number since the last call.
    pub(crate) fn take() -> usize {
        STEPS.take()
    }
}
