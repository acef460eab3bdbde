//! Annotations and labels that look as if they configured injection, and have no effect.

use crate::{
    explain::{
        Ignored, IgnoredList,
        keys::{Keys, Known, Words},
        places::{At, Place, Places},
    },
    linkerd::{
        annotations::{
            Annotation, CREATED_BY_ANNOTATION, NATIVE_SIDECAR, PROXY_VERSION_ANNOTATION,
        },
        overrides::Overrides,
        snapshot::Snapshot,
    },
    outcome::Outcome,
};

/// The label of namespaces by which they keep Linkerd's webhooks off, `disabled`.
const WEBHOOKS_LABEL: &str = "config.linkerd.io/admission-webhooks";

/// Where annotations are read.
const INHERITED: &[Place] = &[Place::PodAnnotations, Place::NamespaceAnnotations];

const WORDS: Words = Words {
    annotations: "Linkerd reads",
    labels: "the webhooks read",
    name: "linkerd",
    settings: &["config.linkerd.io", "config.alpha.linkerd.io", "config.beta.linkerd.io"],
    unknown: "the injector does not know it",
};

/// The keys that the release reads.
pub(super) fn keys(snapshot: &Snapshot) -> Keys<'static> {
    let known = Annotation::all().filter(|annotation| snapshot.supports(*annotation));
    let known = known.map(|annotation| Known { key: annotation.key(), places: INHERITED });
    let label = Known { key: WEBHOOKS_LABEL, places: &[Place::NamespaceLabels] };
    Keys::new(WORDS, known.chain([label]))
}

/// Every annotation and label without effect.
pub(super) fn of(
    snapshot: &Snapshot,
    places: &Places<'_>,
    overrides: &Overrides<'_>,
    outcome: &Outcome<'_>,
) -> Vec<Ignored> {
    let mut ignored = IgnoredList::default();
    for warning in outcome.warnings.kept() {
        let annotation = Annotation::of(warning.annotation);
        ignored.add(|| Ignored {
            layer: annotation.map(|annotation| overrides.layer(annotation)),
            key: warning.annotation.to_owned(),
            value: None,
            text: warning.problem.clone(),
        });
    }
    let keys = keys(snapshot);
    for at in places.iter() {
        // The same name is that of a setting; a person may have meant it.
        let is_injected = at.has(CREATED_BY_ANNOTATION);
        let is_written = |key: &str| is_injected && key == PROXY_VERSION_ANNOTATION;
        for &(key, value) in at.entries.iter().filter(|(key, _)| !is_written(key)) {
            match own(snapshot, overrides, at, key) {
                Own::HasEffect => continue,
                Own::Ignored(text) => {
                    ignored.add_at(at.place, key, value, Some(|| text));
                    continue;
                }
                Own::Elsewhere => {}
            }
            let problem = keys.problem(places, at, key, value);
            let text = problem.map(|problem| {
                let keys = &keys;
                move || keys.text(places, at, key, &problem)
            });
            ignored.add_at(at.place, key, value, text);
        }
    }
    ignored.finish()
}

/// What becomes of a key by Linkerd's own rules.
enum Own {
    /// It is a known annotation in its right place.
    HasEffect,
    /// The same, or one that the release does not read; why it has no effect.
    Ignored(String),
    /// It is something else.
    Elsewhere,
}

impl From<Option<String>> for Own {
    fn from(problem: Option<String>) -> Self {
        problem.map_or(Self::HasEffect, Self::Ignored)
    }
}

fn own(snapshot: &Snapshot, overrides: &Overrides<'_>, at: &At<'_>, key: &str) -> Own {
    let Some(annotation) = Annotation::of(key) else { return Own::Elsewhere };
    if !snapshot.supports(annotation) && !at.place.is_label() {
        let release = snapshot.release_choice.release;
        return Own::Ignored(format!("Linkerd {release} does not read it"));
    }
    match at.place {
        Place::PodAnnotations => yields_to_another(overrides, annotation).into(),
        Place::NamespaceAnnotations => of_namespace(overrides, annotation).into(),
        _ => Own::Elsewhere,
    }
}

fn of_namespace(overrides: &Overrides<'_>, annotation: Annotation) -> Option<String> {
    if annotation == Annotation::Inject {
        return None;
    }
    if overrides.of_pod(annotation).is_some() {
        return Some("the pod's own annotation wins".to_owned());
    }
    if overrides.get(annotation).is_none() {
        return Some(if overrides.is_own(annotation) {
            "the workload has the annotation too, so that the pod does not inherit it".to_owned()
        } else {
            "pods do not inherit it from their namespace; set it on the pod".to_owned()
        });
    }
    yields_to_another(overrides, annotation)
}

/// Of the annotations about native sidecars one decides.
fn yields_to_another(overrides: &Overrides<'_>, annotation: Annotation) -> Option<String> {
    let decides = NATIVE_SIDECAR.into_iter().find(|&key| overrides.get(key).is_some())?;
    let yields = NATIVE_SIDECAR.contains(&annotation) && decides != annotation;
    yields.then(|| format!("{} decides", decides.key()))
}

#[cfg(test)]
mod tests;
