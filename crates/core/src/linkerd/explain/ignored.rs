//! Annotations and labels that look as if they configured injection, and have no effect.

#![expect(clippy::disallowed_types, reason = "an explanation is not part of a review")]

use serde_json::{Map, Value};

use crate::{
    explain::{Ignored, IgnoredList, Layer, most_like},
    linkerd::{
        annotations::Annotation, overrides::Overrides, settings::NATIVE_SIDECAR, snapshot::Snapshot,
    },
    lookups::Annotations,
    outcome::Outcome,
};

/// What the keys of overrides begin with.
const PREFIXES: [&str; 3] =
    ["config.linkerd.io/", "config.alpha.linkerd.io/", "config.beta.linkerd.io/"];

/// The prefix of the inject annotation, and of keys that the injector writes.
const LINKERD: &str = "linkerd.io/";

/// Every annotation and label without effect.
pub(super) fn of(
    snapshot: &Snapshot,
    pod: &Value,
    namespace: &Annotations,
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
    let metadata = |map: &str| pod.pointer(&format!("/metadata/{map}")).and_then(Value::as_object);
    for (key, value) in texts(metadata("annotations")) {
        if let Some(annotation) = Annotation::of(key) {
            let text = of_pod(snapshot, overrides, annotation);
            add(&mut ignored, Layer::Pod, (key, value), text.map(|text| || text));
        } else {
            let text = is_unknown(key).then_some(|| unknown(snapshot, key));
            add(&mut ignored, Layer::Pod, (key, value), text);
        }
    }
    for (key, value) in texts(metadata("labels")) {
        let text =
            Annotation::of(key).map(|_| || "is a label; Linkerd reads the annotation".to_owned());
        add(&mut ignored, Layer::Pod, (key, value), text);
    }
    for (key, value) in namespace.iter() {
        if let Some(annotation) = Annotation::of(key) {
            let text = of_namespace(snapshot, overrides, annotation);
            add(&mut ignored, Layer::Namespace, (key, value), text.map(|text| || text));
        } else {
            let text = is_unknown(key).then_some(|| unknown(snapshot, key));
            add(&mut ignored, Layer::Namespace, (key, value), text);
        }
    }
    ignored.finish()
}

fn add(
    ignored: &mut IgnoredList,
    layer: Layer,
    (key, value): (&str, &str),
    text: Option<impl FnOnce() -> String>,
) {
    if let Some(text) = text {
        ignored.add(|| Ignored {
            layer: Some(layer),
            key: key.to_owned(),
            value: Some(value.to_owned()),
            text: text(),
        });
    }
}

fn of_pod(
    snapshot: &Snapshot,
    overrides: &Overrides<'_>,
    annotation: Annotation,
) -> Option<String> {
    if !snapshot.supports(annotation) {
        return Some(not_supported(snapshot));
    }
    yields_to_another(overrides, annotation)
}

fn of_namespace(
    snapshot: &Snapshot,
    overrides: &Overrides<'_>,
    annotation: Annotation,
) -> Option<String> {
    if annotation == Annotation::Inject {
        return None;
    }
    if !snapshot.supports(annotation) {
        return Some(not_supported(snapshot));
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

fn not_supported(snapshot: &Snapshot) -> String {
    format!("Linkerd {} does not read it", snapshot.release_choice.release)
}

/// Whether a key that is no annotation of the injector looks like one. The injector writes keys with
/// the prefix of the inject annotation, too.
fn is_unknown(key: &str) -> bool {
    is_override(key) || is_mistyped_inject(key)
}

fn is_override(key: &str) -> bool {
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Why such a key has no effect.
fn unknown(snapshot: &Snapshot, key: &str) -> String {
    if !is_override(key) {
        return format!("nothing reads it; did you mean {}?", Annotation::Inject.key());
    }
    let known = Annotation::all().filter(|annotation| snapshot.supports(*annotation));
    match most_like(known.map(Annotation::key), key) {
        Some(known) => format!("the injector does not know it; did you mean {known}?"),
        None => "the injector does not know it".to_owned(),
    }
}

fn is_mistyped_inject(key: &str) -> bool {
    const MISTAKES: usize = 2;
    let inject = Annotation::Inject.key();
    let (_, name) = key.split_once('/').unwrap_or(("", key));
    (key.starts_with(LINKERD) || name == "inject" && key.contains("linkerd"))
        && key.chars().count().abs_diff(inject.len()) <= MISTAKES
        && strsim::levenshtein(key, inject) <= MISTAKES
}

fn texts(map: Option<&Map<String, Value>>) -> impl Iterator<Item = (&str, &str)> {
    map.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
