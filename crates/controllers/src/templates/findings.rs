//! What is found when all templates are looked at together. It is the same until what is served changes.

use std::collections::BTreeMap;

use injectd_profiles::template_plane::KnownTemplates;
use injectd_templates::{Template, conflicts::conflicts, object::Identity, scope::Scope};

/// What is found about templates, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Conflicts with templates that are applied before.
    pub(super) conflicts: BTreeMap<Identity, Vec<String>>,
    /// Why the webhook is called for more pods than the template changes.
    pub(super) scope: BTreeMap<Identity, Vec<String>>,
}

impl Findings {
    /// What is found about the templates that are served.
    pub(super) fn of(known: &KnownTemplates, own_namespace: &str) -> Self {
        // A replica that starts later does not know orphans.
        let there = known.templates.values().filter(|template| !template.is_orphan);
        let served: Vec<&Template> =
            there.filter_map(|template| template.served.as_deref()).collect();
        let mut findings = Self::default();
        for conflict in conflicts(&served) {
            let identity = served[conflict.template].identity.clone();
            let texts = findings.conflicts.entry(identity).or_default();
            texts.push(conflict.problem.to_string());
        }
        let scope = Scope::of(served.iter().copied(), Some(own_namespace));
        for note in scope.all_pods.into_iter().chain(scope.notes) {
            if let Some(identity) = note.template {
                findings.scope.entry(identity).or_default().push(note.problem.to_string());
            }
        }
        findings
    }
}
