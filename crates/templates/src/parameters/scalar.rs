//! Values of the scalar types: read from a text, compared, and printed.

use std::{cmp::Ordering, fmt};

use injectd_gocompat::{duration, quantity};

use crate::object::ParameterType;

/// A value of a scalar type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScalarValue {
    /// A text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A boolean.
    Boolean(bool),
    /// A quantity as its author wrote it, without blanks around it.
    Quantity(String),
    /// A duration as Go prints it.
    Duration(String),
}

const TRUE: [&str; 6] = ["true", "t", "1", "yes", "y", "on"];
const FALSE: [&str; 6] = ["false", "f", "0", "no", "n", "off"];

impl ScalarValue {
    /// Reads a text. A String is the text itself; around other values, blanks do not count. `None` for List and
    /// Map, too.
    #[must_use]
    pub fn read(of: ParameterType, text: &str) -> Option<Self> {
        let trimmed = text.trim();
        match of {
            ParameterType::String => Some(Self::Text(text.to_owned())),
            ParameterType::Integer => trimmed.parse().ok().map(Self::Integer),
            ParameterType::Boolean => boolean(trimmed).map(Self::Boolean),
            ParameterType::Quantity => {
                quantity::parse(trimmed).map(|_| Self::Quantity(trimmed.to_owned()))
            }
            ParameterType::Duration => {
                duration::parse(trimmed).map(|nanos| Self::Duration(duration::text(nanos)))
            }
            ParameterType::List | ParameterType::Map => None,
        }
    }

    /// The order of two values of the same ordered type.
    #[must_use]
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => Some(one.cmp(other)),
            (Self::Quantity(one), Self::Quantity(other)) => {
                Some(quantity::parse(one)?.compare(&quantity::parse(other)?))
            }
            (Self::Duration(one), Self::Duration(other)) => {
                Some(duration::parse(one)?.cmp(&duration::parse(other)?))
            }
            _ => None,
        }
    }

    /// Whether two values are the same, however they are written: `1` and `1000m` are.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.order(other).map_or(self == other, Ordering::is_eq)
    }
}

impl fmt::Display for ScalarValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Quantity(text) | Self::Duration(text) => f.write_str(text),
            Self::Integer(value) => value.fmt(f),
            Self::Boolean(value) => value.fmt(f),
        }
    }
}

fn boolean(text: &str) -> Option<bool> {
    let is_in = |words: [&str; 6]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_in(TRUE) { Some(true) } else { is_in(FALSE).then_some(false) }
}

/// What a text must be to have the type.
#[must_use]
pub fn must_be(of: ParameterType) -> &'static str {
    match of {
        ParameterType::String => "must be a String",
        ParameterType::Integer => "must be an Integer: decimal digits, within 64 bits",
        ParameterType::Boolean => {
            "must be a Boolean: true, t, 1, yes, y, on, or false, f, 0, no, n, off"
        }
        ParameterType::Quantity => "must be a Quantity of Kubernetes, such as 100m or 64Mi",
        ParameterType::Duration => "must be a Duration of Go, such as 90s or 1h30m",
        ParameterType::List => "must be a List",
        ParameterType::Map => "must be a Map",
    }
}
