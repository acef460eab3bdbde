//! The deliberate differences: from upstream's recorded answer to ours.
//!
//! Each row of the table for Istio in `docs/differences.md` is one function. Its input is the
//! expected answer so far, at first upstream's; it returns the answer that injectd must give
//! instead.

mod configuration;
mod pods;
mod requests;

use injectd_istio::release::Release;
use serde_json::Value;

use super::{
    answer::Answer,
    corpus::{Case, Corpus, Set},
};
use crate::differences::apply;

/// The input of a row.
pub(crate) struct Context<'a> {
    /// The release.
    pub(crate) release: Release,
    /// The config set.
    pub(crate) set: &'a Set,
    /// The recorded case.
    pub(crate) case: &'a Case,
    /// The body, if it is JSON.
    pub(crate) review: Option<Value>,
    /// The recordings of later releases, in order.
    pub(crate) later: &'a [Corpus],
    /// Our answer to another review with the same configuration.
    pub(crate) answer: &'a dyn Fn(&Value) -> Answer,
}

impl Context<'_> {
    /// Whether the release makes native sidecars where nothing says otherwise.
    fn is_native_by_default(&self) -> bool {
        self.release >= Release::new(27, 0)
    }

    /// The request, if there is one.
    fn request(&self) -> Option<&Value> {
        self.review.as_ref()?.get("request").filter(|request| request.is_object())
    }
}

/// The answer that injectd must give instead; `None` if the row does not apply.
pub(crate) type Expected = fn(&Context<'_>, &Answer) -> Option<Answer>;

/// All rows, in the order in which they are applied. The names are those of `docs/differences.md`.
pub(crate) const ROWS: &[(&str, Expected)] = &[
    ("refused-configuration", configuration::refused_configuration),
    ("no-panic", requests::no_panic),
    ("utf8-only", requests::utf8_only),
    ("json-only", requests::json_only),
    ("answer-type", requests::answer_type),
    ("no-object", requests::no_object),
    ("other-kinds", requests::other_kinds),
    ("exact-keys", pods::exact_keys),
    ("later-fields", pods::later_fields),
    ("newest-types", pods::newest_types),
    ("no-secrets", pods::no_secrets),
    ("patch-does-not-apply", pods::patch_does_not_apply),
    ("exact-integers", pods::exact_integers),
];

/// The answer that injectd must give, and the rows that make it differ from upstream's.
pub(crate) fn expected(context: &Context<'_>, recorded: Answer) -> (Vec<&'static str>, Answer) {
    apply(ROWS.iter().map(|(name, row)| (*name, |seen: &Answer| row(context, seen))), recorded)
}
