//! The deliberate differences: from upstream's recorded answer to ours. "L§" and "T§" are sections
//! of `docs/spec/linkerd/injection.md` and `docs/spec/linkerd/template.md`.
//!
//! Each row of `docs/differences.md` is one function. Its input is the expected answer so far, at
//! first upstream's. It returns the answer that injectd must give instead; if upstream has no
//! usable answer, that is the reference renderer's.

mod configuration;
mod edges;
mod events;
mod leaves;
mod reading;
mod requests;
mod text;

use serde_json::Value;

use super::corpus::{Case, ConfigSet};
use super::subject::Seen;
use injectd_testkit::reference::Release;

/// The input of a row.
pub(crate) struct Context<'a> {
    /// The release.
    pub(crate) release: Release,
    /// The mounted configuration.
    pub(crate) config: &'a ConfigSet,
    /// The recorded case.
    pub(crate) case: &'a Case,
    /// The body as JSON, if it is JSON; see `reference_subject::review_of`.
    pub(crate) review: Option<Value>,
    /// The reference renderer's answer.
    pub(crate) reference: Seen,
}

/// The answer that injectd must give instead; `None` if the row does not apply.
pub(crate) type Expected = fn(&Context<'_>, &Seen) -> Option<Seen>;

/// All rows, in the order in which they are applied. The names are those of `docs/differences.md`.
pub(crate) const ROWS: &[(&str, Expected)] = &[
    ("refused-configuration", configuration::refused_configuration),
    ("unread-values", configuration::unread_values),
    ("optional-sections", configuration::optional_sections),
    ("empty-body", reading::empty_body),
    ("json-only", reading::json_only),
    ("exact-keys", reading::exact_keys),
    ("exact-types", reading::exact_types),
    ("unread-fields", reading::unread_fields),
    ("any-json-text", reading::any_json_text),
    ("half-surrogates", reading::half_surrogates),
    ("no-object", requests::no_object),
    ("namespace-by-get", requests::namespace_by_get),
    ("panic", requests::panic),
    ("reverted-edge", edges::reverted_edge),
    ("invalid-patch", text::invalid_patch),
    ("invalid-container", text::invalid_container),
    ("scientific-numbers", text::scientific_numbers),
    ("exact-integers", text::exact_integers),
    ("yaml-typed-text", text::yaml_typed_text),
    ("unescaped-text", text::unescaped_text),
    ("html-escapes", text::html_escapes),
    ("line-breaks", text::line_breaks),
    ("dry-run-event", events::dry_run_event),
    ("pod-event", events::pod_event),
    ("nameless-owner-event", events::nameless_owner_event),
    ("owner-by-get-event", events::owner_by_get_event),
    ("long-namespace-event", events::long_namespace_event),
];

/// The answer that injectd must give, and the rows that make it differ from upstream's.
pub(crate) fn expected(context: &Context<'_>, recorded: Seen) -> (Vec<&'static str>, Seen) {
    apply(ROWS.iter().map(|(name, row)| (*name, |seen: &Seen| row(context, seen))), recorded)
}

/// Applies rows in order to a recorded answer; the names are of those that change it.
pub(crate) fn apply<A: PartialEq>(
    rows: impl Iterator<Item = (&'static str, impl Fn(&A) -> Option<A>)>,
    recorded: A,
) -> (Vec<&'static str>, A) {
    let mut names = Vec::new();
    let mut expected = recorded;
    for (name, row) in rows {
        if let Some(ours) = row(&expected)
            && ours != expected
        {
            names.push(name);
            expected = ours;
        }
    }
    (names, expected)
}

/// The recorded message of a denial.
fn recorded_message<'a>(context: &'a Context<'_>) -> &'a str {
    let review = context.case.response.as_ref();
    let message = review.map(|review| &review["response"]["status"]["message"]);
    message.and_then(Value::as_str).unwrap_or_default()
}
