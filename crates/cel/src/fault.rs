//! Why an expression has no value.

use std::rc::Rc;

use super::limits::{MAX_BYTES, MAX_COST};

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The evaluation fails; `&&` and `||` may not need the value.
    Error(Rc<str>),
    /// It depends on what is not known here; `&&` and `||` may not need it.
    Unknown(Rc<str>),
    /// The evaluation ends: it costs too much, and an API server ends it as well.
    Cost,
    /// The evaluation ends: it reads and writes more than is allowed here.
    Bytes,
}

pub(super) type Res<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn error<T>(text: impl Into<Rc<str>>) -> Res<T> {
        Err(Self::Error(text.into()))
    }

    pub(super) fn unknown<T>(text: impl Into<Rc<str>>) -> Res<T> {
        Err(Self::Unknown(text.into()))
    }

    /// No overload of a function for the values.
    pub(super) fn overload<T>() -> Res<T> {
        Self::error("no such overload")
    }

    /// What it says.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Error(text) | Self::Unknown(text) => text.to_string(),
            Self::Cost => {
                format!("it costs more than {MAX_COST}, the limit of an API server")
            }
            Self::Bytes => format!("it reads and writes more than {} MiB", MAX_BYTES >> 20),
        }
    }

    /// Whether nothing is evaluated after it.
    pub(super) fn is_end(&self) -> bool {
        matches!(self, Self::Cost | Self::Bytes)
    }
}
