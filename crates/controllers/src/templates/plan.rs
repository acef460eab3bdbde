//! What a leader writes next. Pure: it is given what was read.

use std::collections::BTreeSet;

use injectd_profiles::template_plane::KnownTemplates;

use super::{
    revisions,
    status::{self, Facts},
    write::Write,
};

/// The writes that are due, the most important ones first: what is served is kept before status says so.
///
/// `gone`: uids of templates that are gone for good. Until the Leases were read there is no status.
pub(super) fn writes(
    known: &KnownTemplates,
    facts: Option<Facts<'_>>,
    gone: &BTreeSet<String>,
) -> Vec<Write> {
    let replicas = facts.map(|facts| facts.replicas).unwrap_or_default();
    let is_settled = !replicas.is_empty() && replicas.iter().all(|replica| replica.is_in_step);
    let mut writes = revisions::writes(known, is_settled, gone);
    if let Some(facts) = facts {
        writes.extend(status::writes(known, facts));
    }
    // Removals can wait.
    let (removals, others): (Vec<_>, Vec<_>) =
        writes.into_iter().partition(|write| matches!(write, Write::DeleteRevision(_)));
    others.into_iter().chain(removals).collect()
}
