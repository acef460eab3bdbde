//! A value before its injection: of a tree, or of the index of the text that the API server sent.

use std::borrow::Cow;

use injectd_core::json::{Node, Shape};
use serde_json::Value;

use crate::object::json;

/// A value that is compared with what became of it.
pub trait Before<'o>: Copy {
    /// The members of an object; `None` for other values.
    fn members(self) -> Option<impl Iterator<Item = (&'o str, Self)> + Clone>;

    /// The items of a list; `None` for other values.
    fn items(self) -> Option<impl Iterator<Item = Self>>;

    /// A member of an object.
    fn get(self, key: &str) -> Option<Self>;

    /// A string; `None` for other values.
    fn text(self) -> Option<Cow<'o, str>>;

    /// The value as a tree.
    fn tree(self) -> Cow<'o, Value>;

    /// Whether it is this value.
    fn is(self, other: &Value) -> bool {
        match (self.text(), other) {
            (Some(text), Value::String(other)) => text == *other,
            (None, Value::String(_)) | (Some(_), _) => false,
            _ => *self.tree() == *other,
        }
    }
}

impl<'o> Before<'o> for &'o Value {
    fn members(self) -> Option<impl Iterator<Item = (&'o str, Self)> + Clone> {
        Some(self.as_object()?.iter().map(|(key, value)| (key.as_str(), value)))
    }

    fn items(self) -> Option<impl Iterator<Item = Self>> {
        Some(self.as_array()?.iter())
    }

    fn get(self, key: &str) -> Option<Self> {
        Value::get(self, key)
    }

    fn text(self) -> Option<Cow<'o, str>> {
        self.as_str().map(Cow::Borrowed)
    }

    fn tree(self) -> Cow<'o, Value> {
        Cow::Borrowed(self)
    }
}

impl<'t: 'a, 'a> Before<'a> for Node<'t, 'a> {
    fn members(self) -> Option<impl Iterator<Item = (&'a str, Self)> + Clone> {
        (self.shape() == Shape::Object).then(|| Node::members(self))
    }

    fn items(self) -> Option<impl Iterator<Item = Self>> {
        (self.shape() == Shape::List).then(|| Node::items(self))
    }

    fn get(self, key: &str) -> Option<Self> {
        Node::get(self, key)
    }

    fn text(self) -> Option<Cow<'a, str>> {
        Node::text(self)
    }

    fn tree(self) -> Cow<'a, Value> {
        Cow::Owned(json(self).unwrap_or_default())
    }
}
