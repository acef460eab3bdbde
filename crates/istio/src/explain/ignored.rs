//! Annotations and labels that look as if they configured injection, and have no effect.

use injectd_core::{
    explain::{
        Ignored, IgnoredList,
        keys::{Keys, Known, Problem, Words},
        places::{At, Place, Places},
    },
    outcome::Outcome,
};

use crate::{
    advice::{NOTHING_READS_IT, PREFIXES},
    annotations::PROXY_CONFIG_ANNOTATION,
    decide::INJECT_ANNOTATION,
    process::names::{OVERRIDES_ANNOTATION, STATUS_ANNOTATION},
    proto::defaults,
    revision::Revision,
    taint::CHANGES_OTHER_FIELDS,
};

/// The label of namespaces that asks for injection.
const NAMESPACE_LABEL: &str = "istio-injection";
/// The label with the revision. Injected pods have an annotation with this key.
pub(super) const REVISION_KEY: &str = "istio.io/rev";

/// The label of the gateways that Istio's control plane deploys, with the revision as an annotation.
const GATEWAY_LABEL: &str = "gateway.istio.io/managed";

const WORDS: Words = Words {
    annotations: "Istio reads",
    labels: "the webhooks read",
    name: "istio",
    settings: &PREFIXES,
    unknown: "nothing reads it",
};

/// The keys that the webhooks and the injector read. The injector reads an annotation of pods where the
/// webhooks read the label; both count.
pub(super) fn keys(revision: &Revision) -> Keys<'_> {
    let is_note = |key: &&str| [STATUS_ANNOTATION, OVERRIDES_ANNOTATION].contains(key);
    let settings = revision.known_annotations.iter().filter(|key| !is_note(key));
    let settings = settings.filter(|key| *key != INJECT_ANNOTATION);
    let settings = settings.map(|key| Known { key, places: &[Place::PodAnnotations] });
    let inject =
        Known { key: INJECT_ANNOTATION, places: &[Place::PodLabels, Place::PodAnnotations] };
    let namespace = Known { key: NAMESPACE_LABEL, places: &[Place::NamespaceLabels] };
    let revision = Known { key: REVISION_KEY, places: &[Place::PodLabels, Place::NamespaceLabels] };
    Keys::new(WORDS, settings.chain([inject, namespace, revision]))
}

/// Every annotation and label without effect, after what the injection warned about.
pub(super) fn of(revision: &Revision, places: &Places<'_>, outcome: &Outcome<'_>) -> Vec<Ignored> {
    let warning = |text: String| Ignored { layer: None, key: String::new(), value: None, text };
    // What has a place of its own in the explanation.
    let is_named =
        |text: &String| text.ends_with(NOTHING_READS_IT) || text.ends_with(CHANGES_OTHER_FIELDS);
    let mut ignored = IgnoredList::default();
    for text in outcome.warnings.lines().filter(|text| !is_named(text)) {
        ignored.add(|| warning(text));
    }
    let entries = Entries { revision, keys: keys(revision), places };
    let label = |wanted: &str| {
        let labels = places.iter().filter(|at| at.place == Place::PodLabels);
        let mut entries = labels.flat_map(|at| &at.entries);
        entries.find(|(key, _)| *key == wanted).map(|(_, value)| *value)
    };
    let (inject, is_gateway) = (label(INJECT_ANNOTATION), label(GATEWAY_LABEL).is_some());
    for at in places.iter() {
        for &(key, value) in &at.entries {
            let is_annotation = at.place == Place::PodAnnotations;
            if is_annotation && key == INJECT_ANNOTATION && inject.is_some() {
                let text = || "the label of the same name wins".to_owned();
                // Charts write both.
                let text = Some(text).filter(|_| inject != Some(value));
                ignored.add_at(at.place, key, value, text);
                continue;
            }
            if is_annotation && key == REVISION_KEY && is_gateway {
                continue;
            }
            let problem = entries.problem(at, key, value);
            let text = problem.map(|problem| {
                let entries = &entries;
                move || entries.text(at, key, &problem)
            });
            ignored.add_at(at.place, key, value, text);
        }
    }
    ignored.finish()
}

/// The annotations and labels around a pod, and what is read of them.
struct Entries<'k> {
    revision: &'k Revision,
    keys: Keys<'k>,
    places: &'k Places<'k>,
}

impl<'k> Entries<'k> {
    fn problem(&self, at: &At<'_>, key: &str, value: &str) -> Option<Problem<'k>> {
        let is_note = [STATUS_ANNOTATION, OVERRIDES_ANNOTATION].contains(&key);
        let is_validated = at.place == Place::PodAnnotations
            && crate::annotations::validates(key, self.revision.release);
        (!is_note && !is_validated).then(|| self.keys.problem(self.places, at, key, value))?
    }

    /// The problem in words. A field of the `ProxyConfig` may be meant that has no annotation of its own.
    fn text(&self, at: &At<'_>, key: &str, problem: &Problem<'k>) -> String {
        let name = key.split_once('/').map_or(key, |(_, name)| name);
        let config = defaults::proxy_config(self.revision.release);
        let is_field = || config.fields().any(|(field, _)| field.json.eq_ignore_ascii_case(name));
        if !problem.is_misplaced() && !self.keys.has_name_of(key) && is_field() {
            return format!(
                "{}; {name} is a field of the ProxyConfig: did you mean {PROXY_CONFIG_ANNOTATION}?",
                WORDS.unknown
            );
        }
        self.keys.text(self.places, at, key, problem)
    }
}

#[cfg(test)]
mod tests;
