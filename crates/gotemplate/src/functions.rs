//! The tables of functions.

#![expect(clippy::unnecessary_wraps, reason = "the functions of a table have one type")]

mod builtin;
mod cases;
mod cast;
mod compare;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod durations;
mod encode;
mod escape;
mod istio;
mod lists;
mod merge;
mod multus;
mod numbers;
mod outside;
mod paths;
mod random;
mod regex;
mod secrets;
mod semver;
mod sha1;
mod strings;
mod types;
mod urls;
mod words;

pub use durations::shown as duration_text;

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
            .with(cases::TABLE)
            .with(dates::TABLE)
            .with(decimal::TABLE)
            .with(defaults::TABLE)
            .with(dicts::TABLE)
            .with(encode::TABLE)
            .with(lists::TABLE)
            .with(numbers::TABLE)
            .with(outside::TABLE)
            .with(paths::TABLE)
            .with(random::TABLE)
            .with(regex::TABLE)
            .with(secrets::TABLE)
            .with(semver::TABLE)
            .with(strings::TABLE)
            .with(types::TABLE)
            .with(urls::TABLE)
            .with(words::TABLE)
    }

    /// Go's own functions, those of sprig, and those of Istio's webhook.
    #[must_use]
    pub fn istio() -> Self {
        Self::sprig().with(istio::TABLE)
    }

    /// With the `appendMultusNetwork` of older releases, which takes `ns/name` for a name (before
    /// Istio 1.23.6, 1.24.4 and 1.25.1).
    #[must_use]
    pub fn with_plain_networks(self) -> Self {
        self.with(istio::PLAIN_NETWORKS)
    }

    /// With a function that reaches out of the process: `expandenv` or `getHostByName`. Other names
    /// change nothing.
    #[must_use]
    pub fn with_outside(self, name: &str) -> Self {
        match name {
            "expandenv" => self.with(outside::EXPANDENV),
            "getHostByName" => self.with(outside::GET_HOST_BY_NAME),
            _ => self,
        }
    }
}
