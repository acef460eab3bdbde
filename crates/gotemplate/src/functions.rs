//! The tables of functions.

mod builtin;
mod cast;
mod compare;
mod defaults;
mod dicts;
mod escape;
mod lists;
mod merge;
mod numbers;
mod strings;
mod types;
mod words;

use crate::function::Functions;

impl Functions {
    /// Go's own functions.
    #[must_use]
    pub fn builtin() -> Self {
        Self::default().with(builtin::TABLE)
    }

    /// Go's own functions and those of sprig 3.3, `sprig.TxtFuncMap`.
    #[must_use]
    pub fn sprig() -> Self {
        Self::builtin()
            .with(defaults::TABLE)
            .with(dicts::TABLE)
            .with(lists::TABLE)
            .with(numbers::TABLE)
            .with(strings::TABLE)
            .with(types::TABLE)
            .with(words::TABLE)
    }
}
