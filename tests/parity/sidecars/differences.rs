//! The deliberate differences: from the recorded answer to ours.
//!
//! Each row of the table for sidecars in `docs/differences.md` is one function. Its input is the expected
//! answer so far, at first the recorded one; it returns the answer that injectd must give instead.

mod configurations;
mod names;
mod pods;
mod values;

use super::{answer::Answer, case::Case};

/// The input of a row.
pub(crate) struct Context<'a> {
    /// The name of the family.
    pub(crate) family: &'a str,
    /// The recorded case.
    pub(crate) case: &'a Case,
}

/// The answer that injectd must give instead; `None` if the row does not apply.
pub(crate) type Expected = fn(&Context<'_>, &Answer) -> Option<Answer>;

/// All rows, in the order in which they are applied. The names are those of `docs/differences.md`.
pub(crate) const ROWS: &[(&str, Expected)] = &[
    ("applied-patches", configurations::applied_patches),
    ("own-service-account", configurations::own_service_account),
    ("json-patches", configurations::json_patches),
    ("second-pass", pods::second_pass),
    ("short-names", names::short_names),
    ("one-of-a-name", names::one_of_a_name),
    ("one-of-a-path", names::one_of_a_path),
    ("volumes-are-there", names::volumes_are_there),
    ("free-host-ports", names::free_host_ports),
    ("own-labels", pods::own_labels),
    ("own-pull-secrets", pods::own_pull_secrets),
    ("owner-by-reference", pods::owner_by_reference),
    ("whole-bytes", values::whole_bytes),
    ("one-variable", values::one_variable),
    ("keys-of-annotations", values::keys_of_annotations),
];

/// All containers of a pod, init containers first.
fn containers(pod: &serde_json::Value) -> impl Iterator<Item = &serde_json::Value> {
    let spec = &pod["spec"];
    ["initContainers", "containers"].into_iter().filter_map(|list| spec[list].as_array()).flatten()
}

/// All containers of a pod, to be changed.
fn containers_mut(pod: &mut serde_json::Value) -> impl Iterator<Item = &mut serde_json::Value> {
    let spec = pod["spec"].as_object_mut().expect("a pod must have a spec");
    let lists = spec.iter_mut().filter(|(field, _)| field.ends_with("ontainers"));
    lists.flat_map(|(_, list)| list.as_array_mut().into_iter().flatten())
}
