//! Annotations and labels that look as if they configured injection, and have no effect.

use injectd_core::{
    explain::{Ignored, IgnoredList, Layer},
    outcome::Outcome,
};
use serde_json::Value;

use crate::{
    advice::NOTHING_READS_IT,
    decide::INJECT_ANNOTATION,
    fields::{annotation, annotations, label, labels},
    injector::Injector,
};

/// The label of namespaces that asks for injection.
const NAMESPACE_LABEL: &str = "istio-injection";
/// The label with the revision.
const REVISION_LABEL: &str = "istio.io/rev";

/// Every annotation and label without effect, after what the injection warned about.
pub(super) fn of(injector: &Injector, pod: &Value, outcome: &Outcome<'_>) -> Vec<Ignored> {
    let warning = |text: String| Ignored { layer: None, key: String::new(), value: None, text };
    let told = |text: &String| text.ends_with(NOTHING_READS_IT);
    let mut ignored = IgnoredList::default();
    for text in outcome.warnings.lines().filter(|text| !told(text)) {
        ignored.add(|| warning(text));
    }
    let mut add = |key: &str, value: &str, text: &dyn Fn() -> String| {
        ignored.add(|| {
            let (key, value, text) = (key.to_owned(), Some(value.to_owned()), text());
            Ignored { layer: Some(Layer::Pod), key, value, text }
        });
    };
    if let (Some(_), Some(value)) =
        (label(pod, INJECT_ANNOTATION), annotation(pod, INJECT_ANNOTATION))
    {
        add(INJECT_ANNOTATION, value, &|| "the label of the same name wins".to_owned());
    }
    for (key, value) in annotations(pod).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if key == NAMESPACE_LABEL || key == REVISION_LABEL {
            add(key, value, &|| "is an annotation; the webhooks read the label".to_owned());
        } else if injector.known_annotations.ignores(key, injector.release) {
            add(key, value, &|| {
                let known = injector.known_annotations.like(key);
                let known = known.map(|known| format!("; did you mean {known}?"));
                format!("nothing reads it{}", known.unwrap_or_default())
            });
        }
    }
    for (key, value) in labels(pod).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if key == NAMESPACE_LABEL {
            add(key, value, &|| "is read of namespaces, not of pods".to_owned());
        } else if key != INJECT_ANNOTATION && injector.known_annotations.reads(key) {
            add(key, value, &|| "is a label; Istio reads the annotation".to_owned());
        }
    }
    ignored.finish()
}
